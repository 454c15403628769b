"""What our cookies are called."""

from typing import Final

from tertulia.service.config import Config

SESSION_COOKIE: Final = "tertulia_session"
CSRF_COOKIE: Final = "tertulia_csrf"
DEVICE_COOKIE: Final = "tertulia_device"
POSITION_COOKIE: Final = "tertulia_position"


def cookie_name(config: Config, name: str) -> str:
    """What the cookie is called. Where the site is https, browsers take one of that name from
    nobody but us: not from another server below the same domain, nor over http."""
    return f"__Host-{name}" if config.is_https else name
