"""GIF services that clients use."""

from typing import Final, NamedTuple

from tertulia.service.config import Config


class GifService(NamedTuple):
    """A GIF service that browsers send requests to."""

    name: str
    """The prefix of the names of the setting and of the API field with its key."""
    asked: str
    """The origin of its API."""
    pictures: tuple[str, ...]
    """The origins of its images."""

    def key(self, config: Config) -> str:
        """Return the API key; may be empty."""
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
    """Return the services whose API key is configured."""
    return tuple(service for service in SERVICES if service.key(config))
