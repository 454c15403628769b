"""Signing in with a link, by email or from the operator (`tertulia users sign-in-link`)."""

from typing import Final

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.domain import names, permissions
from tertulia.model.errors import Refused
from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import User
from tertulia.service import links
from tertulia.wire.http.limiters import RateLimiter
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import Field, Link, PageRequest, route_maker, to_sign_in
from tertulia.wire.pages.sign_in_flow import SignInFlow, requested_flow
from tertulia.wire.pages.sign_in_steps import finish_sign_in

LINK: Final = links.SIGN_IN.rstrip("/")
LINK_SECONDS: Final = 900
"""How long a link is valid. It works once."""
MAILS_PER_ACCOUNT: Final = 5
"""The most emails with a link per account in that time."""


class _EmailedFlow(SignInFlow, frozen=True, kw_only=True, omit_defaults=True):
    nonce: str = ""
    """Makes every link different, even within a second, because each works only once."""


def sign_in_link_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to these pages."""
    route = route_maker(node, "login")
    mails = node.limits.limiters.limiter("sign-in links", MAILS_PER_ACCOUNT, LINK_SECONDS)

    async def ask(page: PageRequest) -> Response:
        return await _ask(page, mails)

    return (
        route(LINK, ask),
        route(links.SIGN_IN + "{token}", _open_emailed),
        route(links.OPERATOR + "{token}", _open_printed),
    )


def is_offered(node: HttpNode) -> bool:
    """Whether anyone can sign in with a link."""
    return node.state.realm.sign_in_links != "nobody"


def _may_use(node: HttpNode, user: User) -> bool:
    policy = node.state.realm.sign_in_links
    if not user.is_active or user.is_bot:
        return False
    return policy == "everyone" or (policy == "guests" and permissions.is_guest(node.state, user))


async def _ask(page: PageRequest, mails: RateLimiter) -> Response:
    """Send a link. The response is the same for every address, so that it doesn't reveal who has an
    account."""
    node, say, flow, error = page.node, page.say, requested_flow(page), ""
    if not is_offered(node):
        return page.go(flow.with_path("/login"))
    if page.is_post:
        try:
            address = names.address(page.value("email"))
        except Refused as refusal:
            error = say.refusal(refusal)
        else:
            page.count_mail()
            _send(node, address, flow, mails)
            return page.note(
                say("look_into_mail"), say("link_sent", address=address), back=to_sign_in(say)
            )
    field = Field(
        name="email",
        label=say("email"),
        type="email",
        value=page.value("email"),
        autocomplete="username",
        focused=True,
        max=254,
    )
    return page.form(
        say("sign_in_link"),
        [field],
        button=say("continue"),
        paragraphs=(say("sign_in_link_text"),),
        error=error,
        back=to_sign_in(say),
    )


def _send(node: HttpNode, address: str, flow: SignInFlow, mails: RateLimiter) -> None:
    user = node.state.user_with_address(address)
    if user is None or not _may_use(node, user) or not mails.admits(user.id):
        return
    emailed = _EmailedFlow(**msgspec.structs.asdict(flow), nonce=node.vault.nonce())
    facts = {
        "expires_at": str(int(node.clock()) + LINK_SECONDS),
        "mark": node.links.password_mark(node.state.credentials[user.id]),
        "flow": msgspec.json.encode(emailed).decode(),
    }
    site = node.config.mail_site
    node.log.mail(
        Mail(kind=MailKind.SIGN_IN_LINK, to=user.address, site=site, about=user.id, facts=facts)
    )


async def _open_emailed(page: PageRequest) -> Response:
    node = page.node
    link = node.links.to_sign_in(node.state, page.token, node.clock())
    user = None if link is None else node.state.users[link[0].user_id]
    back = Link(path=LINK, words=page.say("ask_another"))
    over = page.note(page.say("link_over"), page.say("sign_in_link_over"), status=410, back=back)
    if link is None or user is None or not _may_use(node, user):
        page.count_unknown()
        return over
    flow = msgspec.json.decode(link[1], type=SignInFlow)
    return await _sign_in(page, user, flow, LINK_SECONDS, over)


async def _open_printed(page: PageRequest) -> Response:
    """Open a link of `tertulia users sign-in-link`. It works regardless of the organization's
    sign-in methods."""
    node, say = page.node, page.say
    credential = node.links.to_operator_sign_in(node.state, page.token, node.clock())
    over = page.note(say("link_over"), say("operator_link_over"), status=410, back=to_sign_in(say))
    if credential is None:
        page.count_unknown()
        return over
    user = node.state.users[credential.user_id]
    return await _sign_in(page, user, SignInFlow(), links.OPERATOR_SECONDS, over)


async def _sign_in(
    page: PageRequest, user: User, flow: SignInFlow, seconds: int, over: Response
) -> Response:
    """Sign in once, with a button, because programs that check emails open their links."""
    say = page.say
    if not page.is_post:
        as_whom = say("sign_in_link_as", name=user.full_name)
        return page.form(say("sign_in"), [], button=say("sign_in"), paragraphs=(as_whom,))
    if not await page.node.uses_first("sign-in link", page.token, seconds):
        return over
    return await finish_sign_in(page, user, "link", flow)
