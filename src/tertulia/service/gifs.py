"""Services at which animated pictures are looked for. Clients ask them, with the operator's key."""

from typing import Final, NamedTuple

from tertulia.service.config import Config


class GifService(NamedTuple):
    """A service, as browsers are let to ask it."""

    name: str
    """As the setting of its key begins, and the field that clients are told it in."""
    asked: str
    """Where it answers."""
    pictures: tuple[str, ...]
    """Where its pictures are."""

    def key(self, config: Config) -> str:
        """The operator's; empty where there is none."""
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


def offered(config: Config) -> tuple[GifService, ...]:
    """Those for which the operator has a key."""
    return tuple(service for service in SERVICES if service.key(config))
