"""Signing in with a link of the operator (`tertulia sign-in-link`), whatever the organization
offers: the way in when the identity provider fails."""

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.service import links
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import PageRequest, route_maker, to_sign_in
from tertulia.wire.pages.sign_in_flow import SignInFlow, finish_sign_in

_USED: Final = "operator sign-in"


def operator_link_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The route to the page."""
    return (route_maker(node, "login")(links.OPERATOR + "{token}", _open),)


async def _open(page: PageRequest) -> Response:
    """Sign in with a button, because programs that check links don't press it."""
    node, say = page.node, page.say
    credential = node.links.to_operator_sign_in(node.state, page.token, node.clock())
    if credential is None:
        page.count_unknown()
        return _expired(page)
    user = node.state.users[credential.user_id]
    if not page.is_post:
        return page.form(
            say("sign_in"),
            [],
            button=say("sign_in"),
            paragraphs=(say("operator_link_text", name=user.full_name),),
        )
    if not await node.uses_first(_USED, page.token, links.OPERATOR_SECONDS):
        return _expired(page)
    return await finish_sign_in(page, user, "link", SignInFlow())


def _expired(page: PageRequest) -> Response:
    say = page.say
    return page.note(say("link_over"), say("operator_link_over"), status=410, back=to_sign_in(say))
