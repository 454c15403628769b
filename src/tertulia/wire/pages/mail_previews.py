"""All mails at a glance, for who works on their forms: only with `--dev`."""

from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.service.notices.examples import examples
from tertulia.wire.http.node import HttpNode

PREVIEWS: Final = "/dev/mails"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'",
}


def mail_previews(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The page, and one for each mail."""

    def found(request: Request) -> dict[str, str]:
        owner = node.state.users[min(node.state.users.rows)]
        people = [one for one in node.state.users if not one.is_bot and one.is_active]
        user = people[0] if people else owner
        return {
            name: mail.text if request.query_params.get("as") == "text" else mail.html
            for name, mail in examples(node, user, node.config.mail_site).items()
        }

    async def overview(request: Request) -> Response:
        parts = [
            f'<h2>{escape(name)}</h2><p><a href="?as=text">text</a></p>'
            f'<iframe src="{PREVIEWS}/{number}" style="width:100%;height:40em"></iframe>'
            if request.query_params.get("as") != "text"
            else f"<h2>{escape(name)}</h2><pre>{escape(text)}</pre>"
            for number, (name, text) in enumerate(found(request).items())
        ]
        page = f"<!doctype html><title>Mails</title><h1>Mails</h1>{''.join(parts)}"
        return HTMLResponse(page, headers=_HEADERS)

    async def one(request: Request) -> Response:
        mails = list(found(request).values())
        number = request.path_params["number"]
        if number >= len(mails):
            return Response(status_code=404)
        return HTMLResponse(mails[number], headers=_HEADERS)

    return (Route(PREVIEWS, overview), Route(PREVIEWS + "/{number:int}", one))
