"""Signing in and out with a browser, and a new password for a forgotten one."""

import re
from typing import Final
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.domain import channel_access, names
from tertulia.domain.accounts import sessions
from tertulia.domain.accounts.sessions import PasswordReset
from tertulia.model.errors import (
    AccountDeactivated,
    OrganizationDeactivated,
    PasswordSignInDisabled,
    Refused,
    WrongPassword,
)
from tertulia.model.mail import Mail, MailKind
from tertulia.service import links
from tertulia.service.accounts import good_password
from tertulia.wire.api.users.objects import avatar_address
from tertulia.wire.http import authentication, sign_in
from tertulia.wire.http.authentication import (
    CSRF_HEADER,
    authenticated,
    csrf_token,
    require_csrf_token,
    session_of,
)
from tertulia.wire.http.errors import TooManyTries
from tertulia.wire.http.limiters import RateLimiter
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import (
    LOGIN,
    Field,
    Link,
    PageRequest,
    new_password_field,
    organization_page,
    route_maker,
    to_sign_in,
)
from tertulia.wire.pages.web_client import client_page

LOGOUT: Final = "/logout"
HOME: Final = "/"
RESET_SECONDS: Final = 86400
"""How long the link to a new password lasts."""
MAILS_PER_ACCOUNT: Final = 5
"""Of those links, in that time. A node counts by itself."""
_OWN_PATH: Final = re.compile(r"/(?![/\\])[^\\\x00-\x1f\x7f]{0,2000}")


def login_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The pages of a node."""
    route = route_maker(node, "login")
    resets = node.limits.limiters.limiter("resets", MAILS_PER_ACCOUNT, RESET_SECONDS)

    async def home(request: Request) -> Response:
        """The web client, for browsers that are signed in, and for others where there is something
        that is open to everybody."""
        try:
            user = authenticated(node, request)
        except Refused:
            user = None
        if user is None and not _is_open(node):
            return RedirectResponse(LOGIN, status_code=302, headers={"Cache-Control": "no-store"})
        return client_page(node.config)

    async def to_home(_: Request) -> Response:
        """There is nothing to set up any more."""
        return RedirectResponse(HOME, status_code=302)

    async def forgot(page: PageRequest) -> Response:
        return await _forgot(page, resets)

    return (
        Route(HOME, home),
        Route("/setup", to_home, methods=["GET", "POST"]),
        route(LOGIN, _login, counted=False),
        route(LOGOUT, _logout, counted=False),
        route(links.RESET.rstrip("/"), forgot),
        route(links.RESET + "{token}", _reset),
    )


def _is_open(node: HttpNode) -> bool:
    """Whether there is something to read without an account."""
    return node.admits_spectators and any(
        map(channel_access.open_to_spectators, node.state.channels)
    )


# In and out


class _Resident(Struct, frozen=True, kw_only=True):
    """An account of the demonstration, as the login page shows it."""

    address: str
    full_name: str
    role: str
    picture: str


async def _login(page: PageRequest) -> Response:
    node, next_path = page.node, _own_path(page.value("next"))
    trouble, status = "", 200
    if not page.is_post:
        if page.signed_in_user is not None:
            return page.go(next_path)
    else:
        try:
            await _signed_in(page)
        except (WrongPassword, AccountDeactivated, PasswordSignInDisabled, TooManyTries) as error:
            trouble = page.say.refusal(error)
            status = 429 if isinstance(error, TooManyTries) else 403
        else:
            return page.go(next_path)
    realm = node.state.realm
    return organization_page(
        node,
        page.say,
        "login.html",
        status=status,
        title=page.say("sign_in"),
        description=realm.rendered_description,
        action=LOGIN if next_path == HOME else f"{LOGIN}?next={quote(next_path, safe='/')}",
        fields=_sign_in_fields(page) if realm.password_sign_in else [],
        trouble=trouble,
        forgot=links.RESET.rstrip("/") if realm.password_sign_in else "",
        residents=_residents(page),
        join="" if realm.invite_required else links.JOIN.rstrip("/"),
    )


async def _signed_in(page: PageRequest) -> None:
    node, request, resident = page.node, page.request, page.value("resident")
    if resident:
        user = node.state.user_with_address(resident) if resident in node.residents else None
        if user is None:
            raise WrongPassword("This account doesn't exist in this demo.")
        user = sign_in.require_usable(node, user.id)
        await sign_in.sign_in(node, request, user, way="demonstration")
        return
    checked = await sign_in.by_password(
        node, request, page.value("username"), page.value("password")
    )
    await sign_in.sign_in(node, request, checked.user, checked)


def _own_path(text: str) -> str:
    """Where to go afterwards: a path of ours, or the beginning."""
    return text if _OWN_PATH.fullmatch(text) and not text.startswith(LOGOUT) else HOME


def _sign_in_fields(page: PageRequest) -> list[Field]:
    typed = page.value("username")
    is_demonstration = bool(page.node.residents)  # Where a click is enough.
    return [
        Field(
            name="username",
            label=page.say("email"),
            type="email",
            value=typed,
            autocomplete="username",
            focused=not typed and not is_demonstration,
        ),
        Field(
            name="password",
            label=page.say("password"),
            type="password",
            autocomplete="current-password",
            focused=bool(typed),
        ),
    ]


def _residents(page: PageRequest) -> list[_Resident]:
    node = page.node
    found = (node.state.user_with_address(address) for address in node.residents)
    return [
        _Resident(
            address=user.address,
            full_name=user.full_name,
            role=page.say(user.role.name.lower()),
            # A page asks no other server for anything.
            picture=avatar_address(user, sees_address=False),
        )
        for user in found
        if user is not None and user.is_active
    ]


async def _logout(page: PageRequest) -> Response:
    """A link alone signs nobody out: it takes the button, or a page of ours."""
    node, request = page.node, page.request
    session = session_of(node, request)
    if session is None:
        authentication.clear_session_cookies(node, request)
        return page.go(LOGIN)
    if page.is_post:
        sent = request.headers.get(CSRF_HEADER) or page.value("csrf")
        require_csrf_token(node.vault, session, sent)
        await sign_in.sign_out(node, request)
        return page.go(LOGIN)
    user = node.state.users[session.user_id]
    return page.form(
        page.say("sign_out"),
        [],
        button=page.say("sign_out"),
        paragraphs=(page.say("signed_in_as", name=user.full_name),),
        hidden={"csrf": csrf_token(node.vault, session)},
        back=Link(path=HOME, words=page.say("stay")),
    )


# A new password


async def _forgot(page: PageRequest, resets: RateLimiter) -> Response:
    """The answer is the same for every address, so that it does not reveal who has an account."""
    node = page.node
    if not node.state.realm.password_sign_in:
        return page.note(page.say("no_passwords"), page.say("no_passwords_text"))
    trouble = ""
    if page.is_post:
        try:
            address = names.address(page.value("email"))
        except Refused as refusal:
            trouble = page.say.refusal(refusal)
        else:
            page.count_mail()
            _ask_for_reset(page, address, resets)
            return page.note(
                page.say("look_into_mail"),
                page.say("reset_sent", address=address),
                back=to_sign_in(page.say),
            )
    return page.form(
        page.say("forgot"),
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
        paragraphs=(page.say("forgot_text"),),
        trouble=trouble,
        back=to_sign_in(page.say),
    )


def _ask_for_reset(page: PageRequest, address: str, resets: RateLimiter) -> None:
    """The mail is stored after the answer, whose time so does not reveal who has an account."""
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
    trouble = ""
    if page.is_post:
        try:
            password = await good_password(
                node, page.value("password"), user.address, user.full_name
            )
            hashed = await node.vault.hash_password(password)
            token, new = sign_in.new_session(node, page.request)
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
            trouble = page.say.refusal(refusal)
        else:
            sign_in.note_signed_in(page.request, "link", user.id)
            authentication.set_session_cookies(node, page.request, session, token)
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
        trouble=trouble,
    )
