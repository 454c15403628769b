"""GIF services that clients contact."""

from typing import Final, NamedTuple

from tertulia.service.config import Config


class GifService(NamedTuple):
    """A GIF service that browsers contact."""

    name: str
    """Prefix of the setting and the API field with its key."""
    asked: str
    """Origin of its API."""
    pictures: tuple[str, ...]
    """Origins of its images."""

    def key(self, config: Config) -> str:
        """The API key; may be empty."""
        key: str = getattr(config, f"{self.name}_api_key")
        return key


SERVICES: Final = (
    GifService(
        "giphy",
        "https://api.giphy.com",
        ("https://i.giphy.com", *(f"https://media{n}.giphy.com" for n in ("", *range(5)))),
    ),
    GifService("klipy", "https://api.klipy.com", ("https://static.klipy.com",)),
)


def gif_services(config: Config) -> tuple[GifService, ...]:
    """The services whose API key is set."""
    return tuple(service for service in SERVICES if service.key(config))
