"""Where the link in a mail leads by which such mails are turned off: by a button, and by mail
programs with one click (RFC 8058), which need no page."""

import base64
from collections.abc import Mapping
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.domain.notifications.emails import unsubscribe
from tertulia.model.mail import Unsubscribing
from tertulia.outbound.mail_templates import RenderedMail
from tertulia.outbound.texts import LANGUAGES
from tertulia.service.links import UNSUBSCRIBE
from tertulia.service.notifications.examples import examples
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


PREVIEWS: Final = "/dev/mails"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
    " frame-src 'self'",
}


def mail_previews(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The page, and one for each mail by its name; `?language=` says in which language."""

    def found(request: Request) -> Mapping[str, RenderedMail]:
        return examples(node.links, node.config.mail_site, _language(request))

    async def overview(request: Request) -> Response:
        language = _language(request)
        as_text = request.query_params.get("as") == "text"
        others = " ".join(f'<a href="?language={one}">{one}</a>' for one in LANGUAGES)
        parts = [
            f"<h2>{escape(name)}</h2>"
            + (
                f"<pre>{escape(mail.text)}</pre>"
                if as_text
                else f'<iframe src="{PREVIEWS}/{name}?language={language}"'
                ' style="width:100%;height:40em"></iframe>'
            )
            for name, mail in found(request).items()
        ]
        head = f'<h1>Mails</h1><p>{others} <a href="?language={language}&amp;as=text">text</a></p>'
        page = f"<!doctype html><title>Mails</title>{head}{''.join(parts)}"
        return HTMLResponse(page, headers=_HEADERS)

    async def one(request: Request) -> Response:
        mail = found(request).get(request.path_params["name"])
        if mail is None:
            return Response(status_code=404)
        return HTMLResponse(_shown(mail), headers=_HEADERS)

    return (Route(PREVIEWS, overview), Route(PREVIEWS + "/{name}", one))


def _language(request: Request) -> str:
    wanted = request.query_params.get("language", "en")
    return wanted if wanted in LANGUAGES else "en"


def _shown(mail: RenderedMail) -> str:
    """Its HTML with the pictures that come along, as a browser shows them."""
    html = mail.html
    for one in mail.pictures:
        content = base64.b64encode(one.content).decode()
        html = html.replace(f"cid:{one.content_id}", f"data:{one.media_type};base64,{content}")
    return html
