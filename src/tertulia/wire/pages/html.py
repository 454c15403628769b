"""Pages for people: plain HTML that needs no script."""

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import HTMLResponse, Response

from tertulia.wire.pages.speaking import ENGLISH, Speech
from tertulia.wire.pages.web_client import TOKENS

if TYPE_CHECKING:
    import jinja2

STYLES: Final = "/static/page.css"
MARK: Final = "/static/icon.svg"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    ),
    # Browsers say where a form comes from only if they may say it to us.
    "Referrer-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}


@cache
def _templates() -> "jinja2.Environment":
    import jinja2  # Only where there are pages.

    return jinja2.Environment(
        loader=jinja2.PackageLoader("tertulia.wire"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def from_template(
    template: str, *, status: int = 200, speech: Speech = ENGLISH, **facts: Any
) -> Response:
    """The page that the template makes of the facts."""
    page = _templates().get_template(template)
    text = page.render(styles=(TOKENS, STYLES), mark=MARK, say=speech, **facts)
    return HTMLResponse(text, status_code=status, headers=_HEADERS)
