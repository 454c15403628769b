"""Video calls, through providers that the operator configures."""

from collections.abc import Callable, Mapping
from typing import Final

from tertulia.domain.organization.settings import (
    BIG_BLUE_BUTTON,
    HOSTED_CALLS,
    NEXTCLOUD_TALK,
    ZOOM,
    ZOOM_FOR_ALL,
)
from tertulia.service.calls import bigbluebutton, hosted, nextcloud, zoom
from tertulia.service.config import Config

_NEED_SETUP: Final[Mapping[int, Callable[[Config], bool]]] = {
    ZOOM: zoom.is_offered,
    ZOOM_FOR_ALL: zoom.is_offered_for_all,
    BIG_BLUE_BUTTON: bigbluebutton.is_offered,
    NEXTCLOUD_TALK: nextcloud.is_offered,
    HOSTED_CALLS: hosted.is_offered,
}


def is_offered(config: Config, provider: int) -> bool:
    """Whether organizations can choose the provider with this number."""
    is_set_up = _NEED_SETUP.get(provider)
    return is_set_up is None or is_set_up(config)
