"""Where every interactive sign-in ends: in the browser, a mobile app, or the desktop app.

A mobile app opens a page of this server with a one-time pad (`mobile_flow_otp`) and receives the
account's API key, XORed with the pad, in a `zulip://` URL. The desktop app opens the user's browser
with an AES key (`desktop_flow_otp`). The browser then shows a short-lived token, encrypted with
that key, which the app takes from the clipboard and exchanges for a session.
"""

import math
import re
import secrets
from typing import Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from tertulia.domain.accounts import second_factors as factor_verbs
from tertulia.model.errors import Refused, WrongCode
from tertulia.model.users import Credential, User
from tertulia.service import links, qr_codes
from tertulia.service import second_factors as factor_codes
from tertulia.service.links import Links
from tertulia.wire.http import sign_in
from tertulia.wire.http.authentication import require_own_page
from tertulia.wire.http.errors import TooManyTries
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import client_network
from tertulia.wire.http.sign_in import CheckedPassword
from tertulia.wire.pages.form_flow import (
    LOGIN,
    LOGOUT,
    Field,
    Link,
    PageRequest,
    organization_page,
    route_maker,
    to_sign_in,
)
from tertulia.wire.pages.passkeys import SCRIPT as PASSKEY_SCRIPT
from tertulia.wire.pages.passkeys import (
    has_answer,
    new_passkey,
    new_passkey_form,
    passkey_form,
    passkey_routes,
    use_passkey,
)
from tertulia.wire.pages.public import packaged, static

HOME: Final = "/"
MAX_INVITATION: Final = 100
"""Longest token of an invitation, in characters."""
SECOND_STEP: Final = "/login/second-factor"
SECOND_STEP_SECONDS: Final = 600
"""How long the second step may take."""
_WITH_SECOND_STEP: Final = frozenset({"password", "link"})
"""Methods that a second factor adds to. Providers and directories ask for their own."""
SET_UP: Final = "/login/set-up"
_SECOND_STEP: Final = "second step"
_SET_UP: Final = "second factor setup"
_FINISH: Final = "second factor set up"
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
    invitation: str = ""
    """The token of a reusable invitation that the person has opened; may be empty."""
    provider_session: str = ""
    """The identity provider's ID of the session there, once people come back; may be empty."""

    @property
    def is_for_app(self) -> bool:
        """Whether an app waits for the result, rather than this browser."""
        return bool(self.mobile_flow_otp or self.desktop_flow_otp)

    def with_path(self, path: str) -> str:
        """The path with a query that continues this flow there."""
        values = {
            "next": self.next if self.next != HOME else "",
            "mobile_flow_otp": self.mobile_flow_otp,
            "desktop_flow_otp": self.desktop_flow_otp,
            "invitation": self.invitation,
        }
        query = {name: value for name, value in values.items() if value}
        return f"{path}?{urlencode(query, safe='/', quote_via=quote)}" if query else path


def requested_flow(page: PageRequest) -> SignInFlow:
    """Return the flow that the request's parameters ask for. A `next` outside of this site is
    ignored. Raises Refused for malformed one-time pads."""
    mobile, desktop = page.value("mobile_flow_otp"), page.value("desktop_flow_otp")
    if any(otp and not _OTP.fullmatch(otp) for otp in (mobile, desktop)) or (mobile and desktop):
        raise Refused("The app's sign-in request isn't valid. Start again in the app.")
    return SignInFlow(
        next=own_path(page.value("next")),
        mobile_flow_otp=mobile,
        desktop_flow_otp=desktop,
        invitation=page.value("invitation")[:MAX_INVITATION],
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
    """Sign the user in, and continue in the browser or the app, after the second step if the method
    and the account need one. `method` is for the log; `checked` is the result of a password
    sign-in.

    Raises WrongPassword if the checked password has changed since; AccountDeactivated,
    OrganizationDeactivated.
    """
    user = sign_in.require_usable(page.node, user.id)
    if method not in _WITH_SECOND_STEP:
        return await _complete(page, user, method, flow, checked)
    if sign_in.needs_code(page.node, user):
        step = _step(page, _SECOND_STEP, user, method, flow, checked)
        return await _second_step_page(page, user, step)
    due = factor_verbs.required_from(page.node.state, user)
    if due is None:
        return await _complete(page, user, method, flow, checked)
    if due <= page.node.clock():
        return await _set_up_page(page, user, _step(page, _SET_UP, user, method, flow, checked))
    response = await _complete(page, user, method, flow, checked)
    return response if flow.is_for_app else _reminder(page, due, flow)


async def _complete(
    page: PageRequest,
    user: User,
    method: str,
    flow: SignInFlow,
    checked: CheckedPassword | None,
) -> Response:
    if flow.mobile_flow_otp:
        return await _to_mobile_app(page, user, method, flow.mobile_flow_otp, checked)
    if flow.desktop_flow_otp:
        return _to_desktop_app(page, user, method, flow, checked)
    await sign_in.sign_in(
        page.node,
        page.request,
        user,
        checked,
        method=method,
        provider_session=flow.provider_session,
    )
    return page.go(flow.next)


async def _to_mobile_app(
    page: PageRequest, user: User, method: str, otp: str, checked: CheckedPassword | None
) -> Response:
    # The request comes from the browser, not from the app.
    api_key = await sign_in.sign_in_program(
        page.node, page.request, user, method, checked, client="Mobile app"
    )
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
    provider_session: str
    nonce: str
    is_new_place: bool | None = None
    """As in `CheckedPassword`; None for other methods."""


def _to_desktop_app(
    page: PageRequest,
    user: User,
    method: str,
    flow: SignInFlow,
    checked: CheckedPassword | None,
) -> Response:
    """The page with the encrypted token to copy."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # Rarely needed.

    node = page.node
    text = msgspec.json.encode(
        _DesktopSignIn(
            user.id,
            Links.password_mark(node.state.credentials[user.id]),
            method,
            flow.next,
            flow.provider_session,
            secrets.token_hex(8),
            None if checked is None else checked.is_new_place,
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


class _FirstStep(Struct, frozen=True, array_like=True):
    """What the first step has proven, while the second one is taken."""

    user_id: int
    password_mark: str
    method: str
    flow: SignInFlow
    is_new_place: bool | None
    """As in `CheckedPassword`; None for other methods."""


def _step(
    page: PageRequest,
    purpose: str,
    user: User,
    method: str,
    flow: SignInFlow,
    checked: CheckedPassword | None,
) -> str:
    """Return a ticket for what remains of the sign-in."""
    node = page.node
    mark = Links.password_mark(node.state.credentials[user.id])
    is_new_place = None if checked is None else checked.is_new_place
    step = msgspec.json.encode(_FirstStep(user.id, mark, method, flow, is_new_place)).decode()
    return node.vault.ticket(purpose, step, int(node.clock()) + SECOND_STEP_SECONDS)


class _Continued(Struct, frozen=True):
    """A sign-in that continues on another page."""

    user: User
    method: str
    flow: SignInFlow
    checked: CheckedPassword | None


def _continued(page: PageRequest, purpose: str) -> _Continued | None:
    """Return the sign-in of the page's ticket; None if it has expired, or the password changed."""
    node = page.node
    text = node.vault.text_of(purpose, page.value("step"), node.clock()) if page.is_post else None
    if text is None:
        return None
    first = msgspec.json.decode(text, type=_FirstStep)
    credential = node.state.credentials[first.user_id]
    if Links.password_mark(credential) != first.password_mark:
        return None
    user = sign_in.require_usable(node, first.user_id)
    checked = _checked_before(user, credential, first.is_new_place)
    return _Continued(user, first.method, first.flow, checked)


def _checked_before(
    user: User, credential: Credential, is_new_place: bool | None
) -> CheckedPassword | None:
    """Return the result of a password sign-in that a ticket stands for; None for other methods. The
    password must be the same as then."""
    if is_new_place is None:
        return None
    return CheckedPassword(
        user=user, password_hash=credential.password_hash, is_new_place=is_new_place
    )


async def _second_step_page(
    page: PageRequest, user: User, step: str, error: str = "", status: int = 200
) -> Response:
    say, passkey = page.say, await passkey_form(page, user)
    code = Field(
        name="code",
        label=say("verification_code"),
        autocomplete="one-time-code",
        focused=True,
        is_code=True,
        max=40,
        hint=say("verification_code_hint"),
    )
    return organization_page(
        page.node,
        say,
        "second_step.html",
        status=status,
        title=say("second_step"),
        action=SECOND_STEP,
        step=step,
        fields=[code],
        error=error,
        passkey=passkey,
        script=PASSKEY_SCRIPT if passkey else "",
        back=to_sign_in(say, say("second_step_lost")),
    )


async def _take_second_step(page: PageRequest) -> Response:
    """Check the second factor, and finish the sign-in that it belongs to."""
    node, found = page.node, _continued(page, _SECOND_STEP)
    if found is None:
        return page.go(LOGIN)
    user = found.user
    try:
        if has_answer(page):
            await use_passkey(page, user)
        else:
            await sign_in.use_code(node, page.request, user, page.value("code"))
    except (TooManyTries, WrongCode) as refusal:
        status = 429 if isinstance(refusal, TooManyTries) else 403
        error = page.say.refusal(refusal)
        return await _second_step_page(page, user, page.value("step"), error, status)
    node.sign_in_limits.remember(client_network(page.request), user.address)
    return await _complete(page, user, found.method, found.flow, found.checked)


# Setting up the second factor that the organization requires


async def _set_up_page(page: PageRequest, user: User, step: str, error: str = "") -> Response:
    """The page for setting up an authenticator app, or a passkey, before signing in."""
    node, say = page.node, page.say
    factor = factor_verbs.pending(node.state, user.id, node.clock()) if error else None
    if factor is None:
        secret = factor_codes.new_totp_secret()
        await node.log.submit(user.id, factor_verbs.prepare_totp, node.vault.sealed(secret), "")
    else:
        secret = node.vault.unsealed(factor_verbs.totp_of(factor).sealed)
    code = Field(
        name="code",
        label=say("verification_code"),
        autocomplete="one-time-code",
        is_code=True,
        max=40,
    )
    url = factor_codes.otpauth_url(secret, user.address, node.state.realm.name)
    return organization_page(
        node,
        say,
        "set_up_factor.html",
        status=403 if error else 200,
        title=say("set_up_title"),
        action=SET_UP,
        step=step,
        qr_code=qr_codes.svg_element(url),
        secret=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        fields=[code],
        error=error,
        passkey=await new_passkey_form(page, user),
        script=PASSKEY_SCRIPT,
    )


async def _set_up(page: PageRequest) -> Response:
    """Check the new app's code, or the passkey, and show the recovery codes; then, finish the
    sign-in."""
    node = page.node
    if page.value("done"):
        found = _continued(page, _FINISH)
        step = page.value("step")
        if found is None or not await node.uses_first(_FINISH, step, SECOND_STEP_SECONDS):
            return page.go(LOGIN)
        return await _complete(page, found.user, found.method, found.flow, found.checked)
    found = _continued(page, _SET_UP)
    if found is None or sign_in.needs_code(node, found.user):
        return page.go(LOGIN)
    user = found.user
    shown, codes = factor_codes.new_recovery_codes(node.vault, user.id, node.config.mail_site)
    try:
        if has_answer(page):
            passkey = await new_passkey(page, user)
            await node.log.submit(user.id, factor_verbs.add_passkey, passkey, "", codes)
        else:
            factor, counted = factor_codes.confirmed(
                node.state, node.vault, user.id, page.value("code"), node.clock()
            )
            await node.log.submit(user.id, factor_verbs.confirm_totp, factor, counted, codes)
    except WrongCode as refusal:
        return await _set_up_page(page, user, page.value("step"), page.say.refusal(refusal))
    step = _step(page, _FINISH, user, found.method, found.flow, found.checked)
    return organization_page(
        node,
        page.say,
        "recovery_codes.html",
        title=page.say("recovery_codes"),
        action=SET_UP,
        step=step,
        codes=shown,
    )


def _reminder(page: PageRequest, due: int, flow: SignInFlow) -> Response:
    """The page, after signing in, that asks to set up a second factor before it's required."""
    days = max(1, math.ceil((due - page.node.clock()) / 86400))
    return page.note(
        page.say("set_up_title"),
        page.say("set_up_reminder", count=days),
        back=Link(path=flow.next, words=page.say("continue")),
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
        route_maker(node, "login")(SET_UP, _set_up, counted=False),
        route_maker(node, "login")(SECOND_STEP, _take_second_step, counted=False),
        *passkey_routes(),
        static(SCRIPT, packaged("desktop.js"), "text/javascript"),
    )


async def _from_desktop_app(page: PageRequest) -> Response:
    """Begin a session in the desktop app with the token from the browser."""
    node = page.node
    # Another site must not sign the app in to an account of its choice.
    require_own_page(node.config, page.request)
    text = node.vault.text_of(_DESKTOP, page.token, node.clock())
    if text is None or not await node.uses_first(_DESKTOP, page.token, DESKTOP_SECONDS):
        page.count_unknown()
        return _expired(page)
    signed_in = msgspec.json.decode(text, type=_DesktopSignIn)
    user = sign_in.require_usable(node, signed_in.user_id)
    credential = node.state.credentials[user.id]
    if Links.password_mark(credential) != signed_in.password_mark:
        return _expired(page)
    await sign_in.sign_in(
        node,
        page.request,
        user,
        _checked_before(user, credential, signed_in.is_new_place),
        method=signed_in.method,
        provider_session=signed_in.provider_session,
    )
    return page.go(signed_in.next)


def _expired(page: PageRequest) -> Response:
    return page.note(
        page.say("desktop_over"),
        page.say("desktop_over_text"),
        status=410,
        back=to_sign_in(page.say),
    )
