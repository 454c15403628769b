"""Where the link in a mail leads by which such mails are turned off: by a button, and by mail
programs with one click (RFC 8058), which need no page."""

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.domain.notices.unsubscribing import unsubscribe
from tertulia.model.mail import Unsubscribing
from tertulia.service.links import UNSUBSCRIBE
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import PageRequest, route_maker, to_sign_in

NAMES: Final = {
    Unsubscribing.MISSED: "missed",
    Unsubscribing.DIGEST: "digest",
    Unsubscribing.SIGN_IN: "sign_in",
}
"""As the texts about such mails begin."""


def unsubscribe_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The pages of a node."""
    route = route_maker(node, "unsubscribe")
    # Programs of one provider come from few addresses, for everybody who has a mailbox there.
    return (route(UNSUBSCRIBE + "{token}", _unsubscribe, counted=False),)


async def _unsubscribe(page: PageRequest) -> Response:
    """The mails are turned off by the button: programs that look at a link do not press it."""
    node = page.node
    found = node.links.to_unsubscribe(page.token)
    user = None if found is None else node.state.users.get(found[0])
    if found is None or user is None or not user.is_active:
        page.count_unknown()
        return page.note(
            page.say("link_invalid"),
            page.say("unsubscribe_invalid_text"),
            status=404,
        )
    _, what = found
    facts = {"name": user.full_name, "organization": node.state.realm.name}
    if page.is_post:
        await node.log.submit(None, unsubscribe, user.id, what)
        return page.note(
            page.say("no_more_mails"),
            page.say(f"{NAMES[what]}_off", **facts),
            back=to_sign_in(page.say),
        )
    return page.form(
        page.say("no_more_mails_question"),
        [],
        button=page.say("turn_off"),
        paragraphs=(page.say(f"{NAMES[what]}_turn_off", **facts),),
    )
