"""Pages for signing in and out."""

import hmac
import secrets
from collections.abc import Collection
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.domain import channel_access
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.model.errors import (
    AccountDeactivated,
    PasswordSignInDisabled,
    Refused,
    WrongCode,
    WrongPassword,
)
from tertulia.service import links
from tertulia.wire.http import cookies, sign_in
from tertulia.wire.http.authentication import (
    CSRF_HEADER,
    authenticated,
    csrf_token,
    require_csrf_token,
    session_of,
)
from tertulia.wire.http.errors import CsrfFailed, TooManyTries
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.archive import ARCHIVE, serves_archive
from tertulia.wire.pages.form_flow import (
    LOGIN,
    LOGOUT,
    Field,
    Link,
    PageRequest,
    organization_page,
    route_maker,
)
from tertulia.wire.pages.passkeys import SCRIPT as PASSKEY_SCRIPT
from tertulia.wire.pages.passkeys import has_answer, passkey_form, use_passkey
from tertulia.wire.pages.password_reset import password_reset_pages
from tertulia.wire.pages.public import static
from tertulia.wire.pages.sign_in_flow import HOME, SignInFlow, requested_flow
from tertulia.wire.pages.sign_in_link import LINK, is_offered, sign_in_link_pages
from tertulia.wire.pages.sign_in_steps import finish_sign_in
from tertulia.wire.pages.web_client import client_page

DEV_LOGIN: Final = "/devlogin"
CSRF_FIELD: Final = "csrfmiddlewaretoken"
CSRF_FIELD_COOKIE: Final = "csrftoken"


def login_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to these pages."""
    route = route_maker(node, "login")

    async def home(request: Request) -> Response:
        """Show the web client to users, and to spectators if a channel is open to them."""
        try:
            user = authenticated(node, request)
        except Refused:
            user = None
        if user is None and not _is_open(node):
            return RedirectResponse(LOGIN, status_code=302, headers={"Cache-Control": "no-store"})
        return client_page(node.config, ARCHIVE if serves_archive(node) else "")

    async def to_home(_: Request) -> Response:
        # Earlier versions had a setup page.
        return RedirectResponse(HOME, status_code=302)

    async def deactivated(page: PageRequest) -> Response:
        """Redirect people if the organization isn't deactivated, or not anymore."""
        return page.go(HOME)

    return (
        Route(HOME, home),
        *(route(f"/accounts/deactivated{end}", deactivated) for end in ("", "/")),
        route(f"{LOGIN}/", _login_with_cookie, counted=False),
        Route("/setup", to_home, methods=["GET", "POST"]),
        route(LOGIN, _login, counted=False),
        *(
            route(f"{DEV_LOGIN}{end}", _login_in_development, counted=False)
            for end in ("", "/")
            if node.config.dev
        ),
        route(LOGOUT, _logout, counted=False),
        *password_reset_pages(node, route),
        *sign_in_link_pages(node),
        *(
            static(method.icon_path, method.icon, "image/png")
            for method in node.config.sign_in
            if method.icon_path
        ),
    )


def _is_open(node: HttpNode) -> bool:
    """Whether spectators can read anything."""
    return node.admits_spectators and any(
        map(channel_access.open_to_spectators, node.state.channels)
    )


async def _login_with_cookie(page: PageRequest) -> Response:
    """Show the sign-in page at the address that Zulip's desktop app requests, with a cookie that
    the app sends back. Without the cookie, forms of other sites' pages are refused."""
    sent, kept = page.value(CSRF_FIELD), page.request.cookies.get(CSRF_FIELD_COOKIE, "")
    if page.is_post and sent and not hmac.compare_digest(sent.encode(), kept.encode()):
        raise CsrfFailed("The request comes from an outdated page. Reload it.")
    token = kept or secrets.token_urlsafe(24)
    response = await _login(page, csrf=token)
    is_secure = page.site.startswith("https:")
    response.set_cookie(CSRF_FIELD_COOKIE, token, secure=is_secure, httponly=True, samesite="lax")
    return response


async def _login_in_development(page: PageRequest) -> Response:
    """Show the sign-in page with all accounts, as in a demo."""
    return await _login(page, residents=[u.address for u in page.node.state.users if not u.is_bot])


class _Resident(Struct, frozen=True, kw_only=True):
    """An account on the sign-in page that needs no password."""

    address: str
    full_name: str
    role: str
    picture: str


async def _login(
    page: PageRequest, csrf: str = "", residents: Collection[str] | None = None
) -> Response:
    """Show the sign-in page. `residents` are the addresses of accounts that sign in without a
    password; by default those of the demo."""
    node, flow = page.node, requested_flow(page)
    residents = node.residents if residents is None else residents
    error, status = "", 200
    if not page.is_post:
        # An app gets its key only from a person who signs in now.
        if page.signed_in_user is not None and not flow.is_for_app:
            return page.go(flow.next)
    else:
        try:
            return await _sign_in(page, flow, residents)
        except (
            AccountDeactivated,
            PasswordSignInDisabled,
            TooManyTries,
            WrongCode,
            WrongPassword,
        ) as refusal:
            error = page.say.refusal(refusal)
            status = 429 if isinstance(refusal, TooManyTries) else 403
    realm, passkey = node.state.realm, await passkey_form(page)
    signed_out = await _signed_out_of(page)
    response = organization_page(
        node,
        page.say,
        "login.html",
        passkey=passkey,
        script=PASSKEY_SCRIPT if passkey else "",
        status=status,
        title=page.say("sign_in"),
        description=realm.rendered_description,
        action=flow.with_path(page.request.url.path),
        hidden={CSRF_FIELD: csrf} if csrf else {},
        signed_out=signed_out,
        fields=_sign_in_fields(page, is_focused=not residents)
        if sign_in.takes_passwords(node)
        else [],
        error=error,
        methods=[
            Link(
                words=page.say("sign_in_with", title=method.label),
                path=flow.with_path(method.path),
                icon=method.icon_path,
            )
            for method in node.config.sign_in
            if method.HAS_BUTTON
        ],
        link=flow.with_path(LINK) if is_offered(node) else "",
        forgot=links.RESET.rstrip("/") if realm.password_sign_in else "",
        residents=_shown(page, residents),
        join="" if realm.invite_required else links.JOIN.rstrip("/"),
    )
    method = node.config.sign_in_method(page.value("signed_out"))
    if signed_out is not None and method is not None and method.single_logout:
        # If the form were redirected afterwards, the target would have to be in the page's policy
        # for forms.
        response.headers["Refresh"] = f"0; url={signed_out.path}"
    return response


async def _signed_out_of(page: PageRequest) -> Link | None:
    """Return a link to sign out at the identity provider too, after signing out here."""
    method = page.node.config.sign_in_method(page.value("signed_out"))
    if method is None or not method.HAS_LOGOUT:
        return None
    from tertulia.identity.provider import ProviderDown  # Only if used.

    try:
        if not await page.node.providers.has_logout(method):
            return None
    except ProviderDown:
        return None
    say, title = page.say, method.label
    return Link(
        path=f"{method.path}/end",
        words=say("sign_out_there", title=title),
        lead=say("signed_out_here", title=title),
    )


async def _sign_in(page: PageRequest, flow: SignInFlow, residents: Collection[str]) -> Response:
    node, request, resident = page.node, page.request, page.value("resident")
    if resident:
        user = node.state.user_with_address(resident) if resident in residents else None
        if user is None:
            raise WrongPassword("This account doesn't exist in this demo.")
        method = "demonstration" if resident in node.residents else "development"
        return await finish_sign_in(page, user, method, flow)
    if has_answer(page):
        return await finish_sign_in(page, await use_passkey(page), "passkey", flow)
    checked = await sign_in.check_password(
        node, request, page.value("username"), page.value("password"), flow.invitation
    )
    return await finish_sign_in(page, checked.user, "password", flow, checked)


def _sign_in_fields(page: PageRequest, *, is_focused: bool) -> list[Field]:
    typed, has_names = page.value("username"), page.node.config.has_directories
    suggests_passkeys = bool(page.node.state.second_factors.passkeys.ids)
    return [
        Field(
            name="username",
            label=page.say("email_or_user_name" if has_names else "email"),
            type="text" if has_names else "email",
            value=typed,
            # Browsers suggest passkeys in this field.
            autocomplete="username webauthn" if suggests_passkeys else "username",
            focused=is_focused and not typed,
        ),
        Field(
            name="password",
            label=page.say("password"),
            type="password",
            autocomplete="current-password",
            focused=bool(typed),
        ),
    ]


def _shown(page: PageRequest, residents: Collection[str]) -> list[_Resident]:
    users = map(page.node.state.user_with_address, residents)
    return [
        _Resident(
            address=user.address,
            full_name=user.full_name,
            role=page.say(user.role.name.lower()),
            # No external avatars: pages load nothing from other servers.
            picture=full_avatar_url(user, sees_address=False),
        )
        for user in users
        if user is not None and user.is_active
    ]


async def _logout(page: PageRequest) -> Response:
    """Sign out with a button or from the web client, so that a link alone doesn't sign anyone
    out."""
    node, request = page.node, page.request
    session = session_of(node, request)
    if session is None:
        cookies.clear_session_cookies(node, request)
        return page.go(LOGIN)
    if page.is_post:
        sent = request.headers.get(CSRF_HEADER) or page.value("csrf")
        require_csrf_token(node.vault, session, sent)
        await sign_in.sign_out(node, request)
        method = node.config.sign_in_method(session.method)
        # Signing out at the provider ends other sessions there, so the person has to choose it.
        is_there = method is not None and method.HAS_LOGOUT
        return page.go(f"{LOGIN}?signed_out={session.method}" if is_there else LOGIN)
    user = node.state.users[session.user_id]
    return page.form(
        page.say("sign_out"),
        [],
        button=page.say("sign_out"),
        paragraphs=(page.say("signed_in_as", name=user.full_name),),
        hidden={"csrf": csrf_token(node.vault, session)},
        back=Link(path=HOME, words=page.say("stay")),
    )
