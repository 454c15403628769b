"""Where the link in a mail leads by which such mails are turned off: by a button, and by mail
programs with one click (RFC 8058), which need no page."""

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.domain.notices.unsubscribing import unsubscribe
from tertulia.model.mail import Unsubscribing
from tertulia.service.links import UNSUBSCRIBE
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import TO_SIGN_IN, PageRequest, route_maker

_WHAT: Final = {
    Unsubscribing.MISSED: "about messages that you have missed",
    Unsubscribing.DIGEST: "with a digest",
    Unsubscribing.SIGN_IN: "about new sign-ins",
}


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
            "This link is not valid",
            "It was not copied as a whole, or the account is gone.",
            status=404,
        )
    _, what = found
    organization = node.state.realm.name
    if page.is_post:
        await node.log.submit(None, unsubscribe, user.id, what)
        return page.note(
            "No more such mails",
            f"{user.full_name} gets no more mails {_WHAT[what]} from {organization}. They can be"
            " turned on again in the settings.",
            back=TO_SIGN_IN,
        )
    return page.form(
        "No more such mails?",
        [],
        button="Turn them off",
        paragraphs=(
            f"{user.full_name} would get no more mails {_WHAT[what]} from {organization}.",
        ),
    )
