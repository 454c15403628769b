"""Pages for resetting a forgotten password, and for finding an account's organization."""

from collections.abc import Callable
from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.domain import names
from tertulia.domain.accounts import sessions
from tertulia.domain.accounts.sessions import PasswordReset
from tertulia.model.errors import OrganizationDeactivated, Refused, WrongPassword
from tertulia.model.mail import Mail, MailKind
from tertulia.service import links
from tertulia.service.accounts import good_password
from tertulia.wire.http import cookies, sign_in
from tertulia.wire.http.limiters import RateLimiter
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import (
    Field,
    Link,
    PageRequest,
    RouteMaker,
    new_password_field,
    to_sign_in,
)
from tertulia.wire.pages.sign_in_flow import HOME, SignInFlow
from tertulia.wire.pages.sign_in_steps import finish_sign_in

FIND: Final = "/accounts/find"
RESET_SECONDS: Final = 86400
"""How long password reset links are valid."""
MAILS_PER_ACCOUNT: Final = 5
"""The most emails of each kind per account in that time, on each node."""


def password_reset_pages(node: HttpNode, route: RouteMaker) -> tuple[BaseRoute, ...]:
    """The routes to these pages, which share the rate limits of `route`."""
    searches = node.limits.limiters.limiter("account searches", MAILS_PER_ACCOUNT, RESET_SECONDS)
    resets = node.limits.limiters.limiter("resets", MAILS_PER_ACCOUNT, RESET_SECONDS)

    async def forgot(page: PageRequest) -> Response:
        return await _ask_for_link(page, resets)

    async def find(page: PageRequest) -> Response:
        return await _find(page, searches)

    return (
        *(route(f"{FIND}{end}", find) for end in ("", "/")),
        route(links.RESET.rstrip("/"), forgot),
        route(links.RESET + "{token}", _reset),
    )


async def _ask_for_link(page: PageRequest, resets: RateLimiter) -> Response:
    """Send a password reset link."""
    if not page.node.state.realm.password_sign_in:
        return page.note(page.say("no_passwords"), page.say("no_passwords_text"))

    def ask(address: str) -> None:
        _send_link(page, address, resets)

    return _address_form(page, ask, "forgot", "forgot_text", "reset_sent")


async def _find(page: PageRequest, searches: RateLimiter) -> Response:
    """Send the organization's address to the address of an account."""

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


def _send_link(page: PageRequest, address: str, resets: RateLimiter) -> None:
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
    """Set a new password with the link, and sign in."""
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
