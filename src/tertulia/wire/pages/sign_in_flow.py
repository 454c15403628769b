"""Where every interactive sign-in ends: in the browser, a mobile app, or the desktop app.

A mobile app opens a page of this server with a one-time pad (`mobile_flow_otp`) and receives the
account's API key, XORed with the pad, in a `zulip://` URL. The desktop app opens the user's browser
with an AES key (`desktop_flow_otp`). The browser then shows a short-lived token, encrypted with
that key, which the app takes from the clipboard and exchanges for a session.
"""

import re
import secrets
from typing import Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service import links
from tertulia.service.links import Links
from tertulia.wire.http import sign_in
from tertulia.wire.http.authentication import require_own_page
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.sign_in import CheckedPassword
from tertulia.wire.pages.form_flow import (
    LOGOUT,
    PageRequest,
    organization_page,
    route_maker,
    to_sign_in,
)
from tertulia.wire.pages.public import packaged, static

HOME: Final = "/"
SCRIPT: Final = "/static/desktop.js"
DESKTOP_SECONDS: Final = 60
"""How long the desktop app can exchange a token for a session. The token works once."""
_DESKTOP: Final = "desktop sign-in"
_APP: Final = "ZulipElectron/"
"""How the desktop app's user agent is recognized."""
_OTP: Final = re.compile(r"[0-9a-fA-F]{64}")
_OWN_PATH: Final = re.compile(r"/(?![/\\])[^\\\x00-\x1f\x7f]{0,2000}")


class SignInFlow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a sign-in continues once the user is known."""

    next: str = HOME
    """The path on this server to continue at in the browser."""
    mobile_flow_otp: str = ""
    """A mobile app's one-time pad: 64 hexadecimal digits, or empty."""
    desktop_flow_otp: str = ""
    """The desktop app's AES key: 64 hexadecimal digits, or empty."""

    @property
    def is_for_app(self) -> bool:
        """Whether an app waits for the result, rather than this browser."""
        return bool(self.mobile_flow_otp or self.desktop_flow_otp)

    def with_path(self, path: str) -> str:
        """The path with a query that continues this flow there."""
        query = {
            name: value
            for name, value in msgspec.structs.asdict(self).items()
            if value and value != HOME
        }
        return f"{path}?{urlencode(query, safe='/', quote_via=quote)}" if query else path


def requested_flow(page: PageRequest) -> SignInFlow:
    """Return the flow that the request's parameters ask for. A `next` outside of this site is
    ignored. Raises Refused for malformed one-time pads."""
    mobile, desktop = page.value("mobile_flow_otp"), page.value("desktop_flow_otp")
    if any(otp and not _OTP.fullmatch(otp) for otp in (mobile, desktop)) or (mobile and desktop):
        raise Refused("The app's sign-in request isn't valid. Start again in the app.")
    return SignInFlow(
        next=own_path(page.value("next")), mobile_flow_otp=mobile, desktop_flow_otp=desktop
    )


def own_path(text: str) -> str:
    """The path to continue at: `text` if it's a safe path on this server, else the home page."""
    return text if _OWN_PATH.fullmatch(text) and not text.startswith(LOGOUT) else HOME


async def finish_sign_in(
    page: PageRequest,
    user: User,
    method: str,
    flow: SignInFlow,
    checked: CheckedPassword | None = None,
) -> Response:
    """Sign the user in, and continue in the browser or the app. `method` is for the log; `checked`
    is the result of a password sign-in.

    Raises WrongPassword if the checked password has changed since; AccountDeactivated,
    OrganizationDeactivated.
    """
    user = sign_in.require_usable(page.node, user.id)
    if flow.mobile_flow_otp:
        return await _to_mobile_app(page, user, method, flow.mobile_flow_otp, checked)
    if flow.desktop_flow_otp:
        return _to_desktop_app(page, user, method, flow)
    await sign_in.sign_in(page.node, page.request, user, checked, method=method)
    return page.go(flow.next)


async def _to_mobile_app(
    page: PageRequest, user: User, method: str, otp: str, checked: CheckedPassword | None
) -> Response:
    api_key = await sign_in.sign_in_program(page.node, page.request, user, method, checked)
    encrypted = bytes(
        a ^ b for a, b in zip(api_key.encode(), bytes.fromhex(otp), strict=True)
    ).hex()
    facts = {
        "otp_encrypted_api_key": encrypted,
        "email": user.address,
        "user_id": user.id,
        "realm": page.site,
    }
    return RedirectResponse(
        f"zulip://login?{urlencode(facts)}", status_code=302, headers={"Cache-Control": "no-store"}
    )


class _DesktopSignIn(Struct, frozen=True, array_like=True):
    """What the desktop app's token stands for."""

    user_id: int
    password_mark: str
    method: str
    next: str
    nonce: str


def _to_desktop_app(page: PageRequest, user: User, method: str, flow: SignInFlow) -> Response:
    """The page with the encrypted token to copy."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # Rarely needed.

    node = page.node
    text = msgspec.json.encode(
        _DesktopSignIn(
            user.id,
            Links.password_mark(node.state.credentials[user.id]),
            method,
            flow.next,
            secrets.token_hex(8),
        )
    ).decode()
    token = node.vault.ticket(_DESKTOP, text, int(node.clock()) + DESKTOP_SECONDS)
    nonce = secrets.token_bytes(12)
    key = AESGCM(bytes.fromhex(flow.desktop_flow_otp))
    code = (nonce + key.encrypt(nonce, token.encode(), b"")).hex()
    return organization_page(
        node,
        page.say,
        "desktop_end.html",
        script=SCRIPT,
        title=page.say("desktop_end"),
        code=code,
        app=f"zulip://login?{urlencode({'realm': page.site})}",
    )


def needs_browser(page: PageRequest, flow: SignInFlow) -> bool:
    """Whether the request comes from inside the desktop app, which can't show other sites: the
    sign-in must continue in the user's browser."""
    return not flow.is_for_app and _APP in page.request.headers.get("user-agent", "")


def to_browser(page: PageRequest) -> Response:
    """The page, shown inside the desktop app, that opens the browser and waits for the code."""
    return organization_page(
        page.node, page.say, "desktop_start.html", script=SCRIPT, title=page.say("desktop_start")
    )


def sign_in_flow_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes that the desktop app needs."""
    return (
        route_maker(node, "login")(links.DESKTOP + "{token}", _from_desktop_app, counted=False),
        static(SCRIPT, packaged("desktop.js"), "text/javascript"),
    )


async def _from_desktop_app(page: PageRequest) -> Response:
    """Begin a session in the desktop app with the token from the browser."""
    node = page.node
    # Another site must not sign the app in to an account of its choice.
    require_own_page(node.config, page.request)
    text = node.vault.text_of(_DESKTOP, page.token, node.clock())
    if text is None or not node.limits.uses_first(_DESKTOP, page.token, DESKTOP_SECONDS):
        page.count_unknown()
        return _expired(page)
    signed_in = msgspec.json.decode(text, type=_DesktopSignIn)
    user = sign_in.require_usable(node, signed_in.user_id)
    if Links.password_mark(node.state.credentials[user.id]) != signed_in.password_mark:
        return _expired(page)
    await sign_in.sign_in(node, page.request, user, method=signed_in.method)
    return page.go(signed_in.next)


def _expired(page: PageRequest) -> Response:
    return page.note(
        page.say("desktop_over"),
        page.say("desktop_over_text"),
        status=410,
        back=to_sign_in(page.say),
    )
