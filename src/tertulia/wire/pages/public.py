"""Static files, avatars, and the organization's pictures, outside of the API's paths."""

import re
from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.domain import permissions
from tertulia.domain.accounts import access_keys, users
from tertulia.domain.accounts.access_keys import NOTHING
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.markup.addresses import extra_address
from tertulia.model.errors import Refused
from tertulia.model.reactions import EXTRA_NAMES
from tertulia.model.users import User
from tertulia.wire.api.emoji import EMOJI_PATH, emoji_data
from tertulia.wire.api.organization.objects import (
    LOGO_PATH,
    NIGHT_LOGO_PATH,
    PICTURES,
    picture_path,
)
from tertulia.wire.api.users.objects import UNKNOWN_AVATAR
from tertulia.wire.files.pictures import avatar_pages, emoji_pages
from tertulia.wire.http.authentication import authenticated, within_reach
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import PICTURE, unless_known

DAY_SECONDS: Final = 86400
_PICTURES: Final = {
    "/static/icon.svg": "icon.svg",
    LOGO_PATH: "logo.svg",
    NIGHT_LOGO_PATH: "logo-night.svg",
    UNKNOWN_AVATAR: "person.svg",
}

ICON: Final = "icon-192.png"
APP_ICONS: Final = (ICON, "icon-512.png", "icon-maskable-512.png")
"""The icon in PNG, for installed apps."""


def public_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes that need no credentials."""

    async def avatar(request: Request) -> Response:
        """Redirect to a user's avatar, or to a placeholder if the caller can't see the user."""
        user = _named(node, request)
        address = UNKNOWN_AVATAR
        if user is not None and _may_see(node, request, user):
            sees_address = permissions.sees_address(node.state, _viewer(node, request), user)
            medium = request.url.path.endswith("/medium")
            address = full_avatar_url(user, sees_address=sees_address, medium=medium)
        # The redirect depends on the caller.
        headers = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
        return RedirectResponse(address, status_code=302, headers=headers)

    async def picture(request: Request) -> Response:
        """Return one of the organization's pictures."""
        realm = node.state.realm
        for name in PICTURES:
            if request.url.path == picture_path(realm, name):
                content = await node.files.read(getattr(realm, name).file or "realm/none")
                if content is not None:
                    return unless_known(request, content, "image/png", _PICTURE_HEADERS)
        raise HTTPException(404)

    return (
        Route("/user_avatars/{realm_id:int}/realm/{name}", picture),
        *_files(),
        Route("/avatar/{user}", avatar),
        Route("/avatar/{user}/medium", avatar),
        *avatar_pages(node),
        *emoji_pages(node),
    )


@cache
def _files() -> tuple[BaseRoute, ...]:
    """The routes to files that are the same on every node."""
    return (
        static(EMOJI_PATH, emoji_data, "application/json"),
        *(static(path, packaged(name), "image/svg+xml") for path, name in _PICTURES.items()),
        *(static(f"/static/{name}", packaged(name), "image/png") for name in APP_ICONS),
        *(static(extra_address(name), packaged(ICON), "image/png") for name in EXTRA_NAMES),
    )


def _named(node: HttpNode, request: Request) -> User | None:
    """Return the account with the ID or API email address in the path."""
    name = request.path_params["user"]
    if re.fullmatch(r"\d{1,16}", name):
        return node.state.users.get(int(name))
    viewer = _viewer(node, request)
    return (
        None
        if viewer is None
        else users.find_by_address(node.state, viewer, name, node.config.address_host)
    )


def _viewer(node: HttpNode, request: Request) -> User | None:
    """Return the caller, or None without valid credentials."""
    try:
        return within_reach(request, authenticated(node, request, NOTHING))
    except Refused:
        return None


def _may_see(node: HttpNode, request: Request, user: User) -> bool:
    """Whether the caller can see the account. Callers without credentials are spectators."""
    viewer = _viewer(node, request)
    if viewer is None and "authorization" not in request.headers:
        return node.admits_spectators
    return viewer is not None and access_keys.reaches_user(node.state, viewer, user)


def packaged(*names: str) -> Callable[[], bytes]:
    """Return a function that reads assets of the package, joined by newlines."""
    return partial(_content, *names)


@cache
def _content(*names: str) -> bytes:
    assets = resources.files("tertulia.wire").joinpath("assets")
    return b"\n".join(assets.joinpath(name).read_bytes() for name in names)


_PICTURE_HEADERS: Final = {
    "Cache-Control": f"public, max-age={DAY_SECONDS}",
    "Content-Security-Policy": f"{PICTURE}; style-src 'unsafe-inline'",
    # Web clients may come from another origin.
    "Access-Control-Allow-Origin": "*",
}


def static(path: str, content: Callable[[], bytes], media_type: str) -> Route:
    """Return a route to a file of the release, cached for a day and then validated by its ETag."""

    async def get(request: Request) -> Response:
        return unless_known(request, content(), media_type, _PICTURE_HEADERS)

    return Route(path, get)
