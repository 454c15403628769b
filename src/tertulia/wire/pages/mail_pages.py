"""Unsubscribing from emails, by page or with one click (RFC 8058), and previews of all emails for
developers."""

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
from tertulia.service.links import UNSUBSCRIBE
from tertulia.service.notifications.examples import examples
from tertulia.texts import LANGUAGES
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import PageRequest, route_maker, to_sign_in

NAMES: Final = {
    Unsubscribing.MISSED: "missed",
    Unsubscribing.DIGEST: "digest",
    Unsubscribing.SIGN_IN: "sign_in",
}
"""The prefixes of the texts about each kind of email."""


def unsubscribe_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The route to the unsubscribe page."""
    route = route_maker(node, "unsubscribe")
    # Not counted, because an email provider's requests come from few addresses.
    return (route(UNSUBSCRIBE + "{token}", _unsubscribe, counted=False),)


async def _unsubscribe(page: PageRequest) -> Response:
    """Unsubscribe with a button, because programs that check links don't press it."""
    node = page.node
    link = node.links.to_unsubscribe(page.token)
    user = None if link is None else node.state.users.get(link[0])
    if link is None or user is None or not user.is_active:
        page.count_unknown()
        return page.note(
            page.say("link_invalid"),
            page.say("unsubscribe_invalid_text"),
            status=404,
        )
    _, kind = link
    facts = {"name": user.full_name, "organization": node.state.realm.name}
    if page.is_post:
        await node.log.submit(None, unsubscribe, user.id, kind)
        return page.note(
            page.say("no_more_mails"),
            page.say(f"{NAMES[kind]}_off", **facts),
            back=to_sign_in(page.say),
        )
    return page.form(
        page.say("no_more_mails_question"),
        [],
        button=page.say("turn_off"),
        paragraphs=(page.say(f"{NAMES[kind]}_turn_off", **facts),),
    )


PREVIEWS: Final = "/dev/mails"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
    " frame-src 'self'",
}


def mail_previews(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to previews of all emails. `?language=` selects the language."""

    def mails(request: Request) -> Mapping[str, RenderedMail]:
        return examples(node.links, node.config.mail_site, _language(request))

    async def overview(request: Request) -> Response:
        language = _language(request)
        as_text = request.query_params.get("as") == "text"
        others = " ".join(f'<a href="?language={text}">{text}</a>' for text in LANGUAGES)
        parts = [
            f"<h2>{escape(name)}</h2>"
            + (
                f"<pre>{escape(mail.text)}</pre>"
                if as_text
                else f'<iframe src="{PREVIEWS}/{name}?language={language}"'
                ' style="width:100%;height:40em"></iframe>'
            )
            for name, mail in mails(request).items()
        ]
        head = f'<h1>Mails</h1><p>{others} <a href="?language={language}&amp;as=text">text</a></p>'
        page = f"<!doctype html><title>Mails</title>{head}{''.join(parts)}"
        return HTMLResponse(page, headers=_HEADERS)

    async def preview(request: Request) -> Response:
        mail = mails(request).get(request.path_params["name"])
        if mail is None:
            return Response(status_code=404)
        return HTMLResponse(_with_pictures(mail), headers=_HEADERS)

    return (Route(PREVIEWS, overview), Route(PREVIEWS + "/{name}", preview))


def _language(request: Request) -> str:
    language = request.query_params.get("language", "en")
    return language if language in LANGUAGES else "en"


def _with_pictures(mail: RenderedMail) -> str:
    # Browsers can't load the attached pictures by `cid:`.
    html = mail.html
    for picture in mail.pictures:
        content = base64.b64encode(picture.content).decode()
        html = html.replace(
            f"cid:{picture.content_id}", f"data:{picture.media_type};base64,{content}"
        )
    return html
