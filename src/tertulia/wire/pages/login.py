"""Pages for signing in and out, and for resetting a forgotten password."""

import hmac
import secrets
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.domain import channel_access, names
from tertulia.domain.accounts import sessions
from tertulia.domain.accounts.sessions import PasswordReset
from tertulia.identity.provider import ProviderDown
from tertulia.model.errors import (
    AccountDeactivated,
    OrganizationDeactivated,
    PasswordSignInDisabled,
    Refused,
    WrongCode,
    WrongPassword,
)
from tertulia.model.mail import Mail, MailKind
from tertulia.service import links
from tertulia.service.accounts import good_password
from tertulia.wire.api.users.objects import full_avatar_url
from tertulia.wire.http import cookies, sign_in
from tertulia.wire.http.authentication import (
    CSRF_HEADER,
    authenticated,
    csrf_token,
    require_csrf_token,
    session_of,
)
from tertulia.wire.http.errors import CsrfFailed, TooManyTries
from tertulia.wire.http.limiters import RateLimiter
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.archive import ARCHIVE, serves_archive
from tertulia.wire.pages.form_flow import (
    LOGIN,
    LOGOUT,
    Field,
    Link,
    PageRequest,
    new_password_field,
    organization_page,
    route_maker,
    to_sign_in,
)
from tertulia.wire.pages.passkeys import SCRIPT as PASSKEY_SCRIPT
from tertulia.wire.pages.passkeys import has_answer, passkey_form, use_passkey
from tertulia.wire.pages.public import static
from tertulia.wire.pages.sign_in_flow import (
    HOME,
    SignInFlow,
    finish_sign_in,
    requested_flow,
)
from tertulia.wire.pages.sign_in_link import LINK, is_offered, sign_in_link_pages
from tertulia.wire.pages.web_client import client_page

FIND: Final = "/accounts/find"
CSRF_FIELD: Final = "csrfmiddlewaretoken"
CSRF_FIELD_COOKIE: Final = "csrftoken"
RESET_SECONDS: Final = 86400
"""How long password reset links are valid."""
MAILS_PER_ACCOUNT: Final = 5
"""Password reset emails per account in that time, on each node."""


def login_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to these pages."""
    route = route_maker(node, "login")
    searches = node.limits.limiters.limiter("account searches", MAILS_PER_ACCOUNT, RESET_SECONDS)
    resets = node.limits.limiters.limiter("resets", MAILS_PER_ACCOUNT, RESET_SECONDS)

    async def home(request: Request) -> Response:
        """The web client for users, and for spectators if a channel is open to them."""
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

    async def forgot(page: PageRequest) -> Response:
        return await _forgot(page, resets)

    async def find(page: PageRequest) -> Response:
        return await _find(page, searches)

    async def deactivated(page: PageRequest) -> Response:
        """Send people on whose organization isn't deactivated, or is no longer."""
        return page.go(HOME)

    return (
        Route(HOME, home),
        *(route(f"{FIND}{end}", find) for end in ("", "/")),
        *(route(f"/accounts/deactivated{end}", deactivated) for end in ("", "/")),
        route(f"{LOGIN}/", _login_with_cookie, counted=False),
        Route("/setup", to_home, methods=["GET", "POST"]),
        route(LOGIN, _login, counted=False),
        route(LOGOUT, _logout, counted=False),
        route(links.RESET.rstrip("/"), forgot),
        route(links.RESET + "{token}", _reset),
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
    """The sign-in page at the address that Zulip's desktop app asks, with the cookie that it sends
    back. Forms of other sites' pages are refused without it."""
    sent, kept = page.value(CSRF_FIELD), page.request.cookies.get(CSRF_FIELD_COOKIE, "")
    if page.is_post and sent and not hmac.compare_digest(sent.encode(), kept.encode()):
        raise CsrfFailed("The request comes from an outdated page. Reload it.")
    token = kept or secrets.token_urlsafe(24)
    response = await _login(page, csrf=token)
    is_secure = page.site.startswith("https:")
    response.set_cookie(CSRF_FIELD_COOKIE, token, secure=is_secure, httponly=True, samesite="lax")
    return response


class _DemoUser(Struct, frozen=True, kw_only=True):
    """An account of the demo organization on the sign-in page."""

    address: str
    full_name: str
    role: str
    picture: str


async def _login(page: PageRequest, csrf: str = "") -> Response:
    node, flow = page.node, requested_flow(page)
    error, status = "", 200
    if not page.is_post:
        # An app gets its key only from someone who signs in now.
        if page.signed_in_user is not None and not flow.is_for_app:
            return page.go(flow.next)
    else:
        try:
            return await _sign_in(page, flow)
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
    return organization_page(
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
        signed_out=await _signed_out_of(page),
        fields=_sign_in_fields(page) if sign_in.takes_passwords(node) else [],
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
        residents=_residents(page),
        join="" if realm.invite_required else links.JOIN.rstrip("/"),
    )


async def _signed_out_of(page: PageRequest) -> Link | None:
    """A link to sign out at the identity provider too, after signing out here."""
    method = page.node.providers.method(page.value("signed_out"))
    if method is None or not method.HAS_LOGOUT:
        return None
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


async def _sign_in(page: PageRequest, flow: SignInFlow) -> Response:
    node, request, resident = page.node, page.request, page.value("resident")
    if resident:
        user = node.state.user_with_address(resident) if resident in node.residents else None
        if user is None:
            raise WrongPassword("This account doesn't exist in this demo.")
        return await finish_sign_in(page, user, "demonstration", flow)
    if has_answer(page):
        return await finish_sign_in(page, await use_passkey(page), "passkey", flow)
    checked = await sign_in.check_password(
        node, request, page.value("username"), page.value("password")
    )
    return await finish_sign_in(page, checked.user, "password", flow, checked)


def _sign_in_fields(page: PageRequest) -> list[Field]:
    typed, has_names = page.value("username"), bool(page.node.directories.methods)
    suggests_passkeys = bool(page.node.state.second_factors.passkeys.ids)
    is_demo = bool(page.node.residents)  # Demo users sign in with one click.
    return [
        Field(
            name="username",
            label=page.say("email_or_user_name" if has_names else "email"),
            type="text" if has_names else "email",
            value=typed,
            # Browsers suggest passkeys in this field.
            autocomplete="username webauthn" if suggests_passkeys else "username",
            focused=not typed and not is_demo,
        ),
        Field(
            name="password",
            label=page.say("password"),
            type="password",
            autocomplete="current-password",
            focused=bool(typed),
        ),
    ]


def _residents(page: PageRequest) -> list[_DemoUser]:
    node = page.node
    users = (node.state.user_with_address(address) for address in node.residents)
    return [
        _DemoUser(
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
    """Sign out with a button or from the web client, so that a link alone signs nobody out."""
    node, request = page.node, page.request
    session = session_of(node, request)
    if session is None:
        cookies.clear_session_cookies(node, request)
        return page.go(LOGIN)
    if page.is_post:
        sent = request.headers.get(CSRF_HEADER) or page.value("csrf")
        require_csrf_token(node.vault, session, sent)
        await sign_in.sign_out(node, request)
        method = node.providers.method(session.method)
        # Signing out at the provider ends other sessions there, so that's for the person to say.
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


async def _forgot(page: PageRequest, resets: RateLimiter) -> Response:
    """Send a password reset link."""
    if not page.node.state.realm.password_sign_in:
        return page.note(page.say("no_passwords"), page.say("no_passwords_text"))

    def ask(address: str) -> None:
        _ask_for_reset(page, address, resets)

    return _address_form(page, ask, "forgot", "forgot_text", "reset_sent")


async def _find(page: PageRequest, searches: RateLimiter) -> Response:
    """Send the organization's address to an account's."""

    def ask(address: str) -> None:
        user = page.node.state.user_with_address(address)
        if user is not None and user.is_active and not user.is_bot and searches.admits(user.id):
            site = page.node.config.mail_site
            mail = Mail(kind=MailKind.ACCOUNT_FOUND, to=user.address, site=site, about=user.id)
            page.node.log.mail(mail)

    return _address_form(page, ask, "find_account", "find_account_text", "account_sent")


def _address_form(
    page: PageRequest, ask: Callable[[str], None], title: str, text: str, sent: str
) -> Response:
    """Ask for an email address. The response is the same for every address, so that it doesn't
    reveal who has an account."""
    error = ""
    if page.is_post:
        try:
            address = names.address(page.value("email"))
        except Refused as refusal:
            error = page.say.refusal(refusal)
        else:
            page.count_mail()
            ask(address)
            return page.note(
                page.say("look_into_mail"),
                page.say(sent, address=address),
                back=to_sign_in(page.say),
            )
    return page.form(
        page.say(title),
        [
            Field(
                name="email",
                label=page.say("email"),
                type="email",
                value=page.value("email"),
                autocomplete="username",
                focused=True,
                max=254,
            )
        ],
        button=page.say("continue"),
        paragraphs=(page.say(text),),
        error=error,
        back=to_sign_in(page.say),
    )


def _ask_for_reset(page: PageRequest, address: str, resets: RateLimiter) -> None:
    """Queue the email after the response, so that its timing doesn't reveal who has an account."""
    node = page.node
    user = node.state.user_with_address(address)
    if user is None or not user.is_active or user.is_bot or not resets.admits(user.id):
        return
    credential = node.state.credentials[user.id]
    node.log.mail(
        Mail(
            kind=MailKind.FORGOTTEN,
            to=user.address,
            site=node.config.mail_site,
            about=user.id,
            facts={
                "expires_at": str(int(node.clock()) + RESET_SECONDS),
                "mark": node.links.password_mark(credential),
            },
        )
    )


async def _reset(page: PageRequest) -> Response:
    node = page.node
    credential = node.links.to_reset(node.state, page.token, node.clock())
    user = None if credential is None else node.state.users[credential.user_id]
    if credential is None or user is None or not user.is_active:
        page.count_unknown()
        return page.note(
            page.say("link_over"),
            page.say("reset_over_text"),
            status=410,
            back=Link(path=links.RESET.rstrip("/"), words=page.say("ask_another")),
        )
    if not node.state.realm.password_sign_in:
        return page.note(page.say("no_passwords"), page.say("no_passwords_text"))
    error = ""
    if page.is_post:
        try:
            password = await good_password(
                node, page.value("password"), user.address, user.full_name
            )
            hashed = await node.vault.hash_password(password)
            token, new = sign_in.new_session(node, page.request, method="link")
            session = await node.log.submit(
                user.id,
                sessions.reset_password,
                PasswordReset(
                    old_hash=credential.password_hash,
                    new_hash=hashed,
                    key=node.vault.new_key(),
                    site=node.config.mail_site,
                ),
                new,
            )
        except (WrongPassword, OrganizationDeactivated):
            raise
        except Refused as refusal:
            error = page.say.refusal(refusal)
        else:
            if session is None:
                return await finish_sign_in(page, user, "link", SignInFlow())
            sign_in.log_sign_in(page.request, "link", user.id, session)
            cookies.set_session_cookies(node, page.request, session, token)
            return page.go(HOME)
    return page.form(
        page.say("new_password"),
        [
            Field(
                name="username",
                label=page.say("email"),
                type="email",
                value=user.address,
                autocomplete="username",
                fixed=True,
            ),
            new_password_field(node.config, page.say),
        ],
        button=page.say("save_and_sign_in"),
        error=error,
    )
