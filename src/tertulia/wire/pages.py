"""What is fetched outside of the interface: pictures, the emoji, and where an avatar is."""

from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.domain import permissions
from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.wire.caching import unless_known
from tertulia.wire.call import Node
from tertulia.wire.emoji import EMOJI_PATH, emoji_data
from tertulia.wire.http import authenticate
from tertulia.wire.objects.realm import ICON_PATH, LOGO_PATH, NIGHT_LOGO_PATH
from tertulia.wire.objects.users import UNKNOWN_AVATAR, avatar_address

DAY_SECONDS: Final = 86400
_PICTURES: Final = {
    ICON_PATH: "icon.svg",
    LOGO_PATH: "logo.svg",
    NIGHT_LOGO_PATH: "logo-night.svg",
    UNKNOWN_AVATAR: "person.svg",
}


def public_pages(node: Node) -> tuple[BaseRoute, ...]:
    """The pages of a node, all of which anybody may fetch."""

    async def avatar(request: Request) -> Response:
        """To the picture of an account; to one of nobody for whom it is none of theirs."""
        user = node.state.users.get(request.path_params["user_id"])
        shown = user is not None and _may_see(node, request, user)
        medium = request.url.path.endswith("/medium")
        address = avatar_address(user, medium=medium) if user and shown else UNKNOWN_AVATAR
        # What is shown depends on who asks.
        headers = {"Cache-Control": "private, no-cache", "Vary": "Authorization"}
        return RedirectResponse(address, status_code=302, headers=headers)

    return (
        static(EMOJI_PATH, emoji_data, "application/json"),
        *(static(path, packaged(name), "image/svg+xml") for path, name in _PICTURES.items()),
        Route("/avatar/{user_id:int}", avatar),
        Route("/avatar/{user_id:int}/medium", avatar),
    )


def _may_see(node: Node, request: Request, user: User) -> bool:
    """Whether the one who asks may know of the account. Without credentials, that is for
    spectators, where the organization admits them."""
    header = request.headers.get("authorization")
    if header is None:
        return node.state.realm.enable_spectator_access
    try:
        viewer = authenticate(node, header)
    except Refused:
        return False
    return permissions.sees_user(node.state, viewer, user, node.clock())


def packaged(name: str) -> Callable[[], bytes]:
    """The file of that name among our own."""

    @cache
    def content() -> bytes:
        return resources.files("tertulia.wire").joinpath("assets", name).read_bytes()

    return content


def static(path: str, content: Callable[[], bytes], media_type: str) -> Route:
    """A page that changes only with the server's release. It may be kept for a day, and is told
    apart by its ETag afterwards."""

    headers = {
        "Cache-Control": f"public, max-age={DAY_SECONDS}",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        # Other origins may show the pictures: web clients are not always at home here.
        "Access-Control-Allow-Origin": "*",
    }

    async def get(request: Request) -> Response:
        return unless_known(request, content(), media_type, headers)

    return Route(path, get)
