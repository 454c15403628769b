"""Where every interactive sign-in ends: in the browser, a mobile app, or the desktop app.

A mobile app opens a page of this server with a one-time pad (`mobile_flow_otp`) and receives the
account's API key, XORed with the pad, in a `zulip://` URL. The desktop app opens the user's browser
with an AES key (`desktop_flow_otp`). The browser then shows a short-lived token, encrypted with
that key, which the app takes from the clipboard and exchanges for a session.
"""

import secrets
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from tertulia.model.users import User
from tertulia.service.links import Links
from tertulia.wire.http import sign_in
from tertulia.wire.http.authentication import require_own_page
from tertulia.wire.http.sign_in import CheckedPassword
from tertulia.wire.pages.form_flow import PageRequest, organization_page, to_sign_in
from tertulia.wire.pages.sign_in_flow import DESKTOP_SCRIPT, SignInFlow

DESKTOP_SECONDS: Final = 60
"""How long the desktop app can exchange a token for a session. The token works once."""
_DESKTOP: Final = "desktop app"


class KnownSignIn(Struct, frozen=True):
    """A sign-in whose first step has identified the user."""

    user: User
    method: str
    """The method's name for the log."""
    flow: SignInFlow
    checked: CheckedPassword | None
    """The result of a password sign-in."""


class _Ticketed(Struct, frozen=True, array_like=True):
    """The content of a ticket for the rest of a sign-in."""

    user_id: int
    password_mark: str
    method: str
    flow: SignInFlow
    is_new_place: bool | None
    """As in `CheckedPassword`; None for other methods."""
    nonce: str = ""
    """Makes equal tickets different."""


def ticket_for(page: PageRequest, purpose: str, known: KnownSignIn, seconds: int) -> str:
    """Return a ticket for the rest of the sign-in."""
    node, checked = page.node, known.checked
    text = msgspec.json.encode(
        _Ticketed(
            known.user.id,
            Links.password_mark(node.state.credentials[known.user.id]),
            known.method,
            known.flow,
            None if checked is None else checked.is_new_place,
            secrets.token_hex(8),
        )
    ).decode()
    return node.vault.ticket(purpose, text, int(node.clock()) + seconds)


def continued(page: PageRequest, purpose: str, ticket: str) -> KnownSignIn | None:
    """Return the ticket's sign-in; None if it has expired, or the password has changed. Raises
    AccountDeactivated, OrganizationDeactivated."""
    node = page.node
    text = node.vault.text_of(purpose, ticket, node.clock())
    if text is None:
        return None
    ticketed = msgspec.json.decode(text, type=_Ticketed)
    credential = node.state.credentials[ticketed.user_id]
    if Links.password_mark(credential) != ticketed.password_mark:
        return None
    user, is_new_place = sign_in.require_usable(node, ticketed.user_id), ticketed.is_new_place
    checked = (
        None
        if is_new_place is None
        else CheckedPassword(
            user=user, password_hash=credential.password_hash, is_new_place=is_new_place
        )
    )
    return KnownSignIn(user, ticketed.method, ticketed.flow, checked)


async def complete(page: PageRequest, known: KnownSignIn) -> Response:
    """Continue in the browser or the app after the user has completed all steps."""
    if known.flow.mobile_flow_otp:
        return await _to_mobile_app(page, known)
    if known.flow.desktop_flow_otp:
        return _to_desktop_app(page, known)
    return await _in_browser(page, known)


async def _in_browser(page: PageRequest, known: KnownSignIn) -> Response:
    await sign_in.sign_in(
        page.node,
        page.request,
        known.user,
        known.checked,
        method=known.method,
        provider_session=known.flow.provider_session,
    )
    return page.go(known.flow.next)


async def _to_mobile_app(page: PageRequest, known: KnownSignIn) -> Response:
    # The request comes from the browser, not from the app.
    user = known.user
    api_key = await sign_in.sign_in_program(
        page.node, page.request, user, known.method, known.checked, client="Mobile app"
    )
    otp = known.flow.mobile_flow_otp
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


def _to_desktop_app(page: PageRequest, known: KnownSignIn) -> Response:
    """Return the page with the encrypted token to copy."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # Rarely needed.

    flow = SignInFlow(next=known.flow.next, provider_session=known.flow.provider_session)
    rest = msgspec.structs.replace(known, flow=flow)
    token = ticket_for(page, _DESKTOP, rest, DESKTOP_SECONDS)
    nonce = secrets.token_bytes(12)
    key = AESGCM(bytes.fromhex(known.flow.desktop_flow_otp))
    code = (nonce + key.encrypt(nonce, token.encode(), b"")).hex()
    return organization_page(
        page.node,
        page.say,
        "desktop_end.html",
        script=DESKTOP_SCRIPT,
        title=page.say("desktop_end"),
        code=code,
        app=f"zulip://login?{urlencode({'realm': page.site})}",
    )


async def from_desktop_app(page: PageRequest) -> Response:
    """Begin a session in the desktop app with the token from the browser."""
    node = page.node
    # Another site must not sign the app in to an account of its choice.
    require_own_page(node.config, page.request)
    known = continued(page, _DESKTOP, page.token)
    if known is None or not await node.uses_first(_DESKTOP, page.token, DESKTOP_SECONDS):
        page.count_unknown()
        return page.note(
            page.say("desktop_over"),
            page.say("desktop_over_text"),
            status=410,
            back=to_sign_in(page.say),
        )
    return await _in_browser(page, known)
