"""HTML pages that work without scripts, in the browser's language."""

from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tertulia.texts import LANGUAGES, Texts, language_of, texts
from tertulia.wire.pages.web_client import TOKENS

if TYPE_CHECKING:
    import jinja2

_MAX_LANGUAGES: Final = 20
"""The most languages of the header that are considered."""


def preferred_language(request: Request, default: str) -> str:
    """Return the supported language that the browser prefers (RFC 9110, 12.5.4), else the one
    nearest to the tag `default`."""
    preferences: list[tuple[float, str]] = []
    for part in request.headers.get("Accept-Language", "").split(",")[:_MAX_LANGUAGES]:
        tag, _, weight = part.partition(";")
        base = tag.strip().lower().partition("-")[0]
        quality = _quality(weight)
        if base in LANGUAGES and quality > 0:
            preferences.append((quality, base))
    # `max` returns the first of equally preferred ones.
    return max(preferences, key=lambda item: item[0])[1] if preferences else language_of(default)


def _quality(weight: str) -> float:
    name, _, value = weight.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return min(max(float(value), 0.0), 1.0)
    except ValueError:
        return 0.0


class Speech:
    """The texts of pages in one language."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, name: str, /, **arguments: object) -> str:
        """Return the text with this name, with its arguments filled in."""
        return self._pages(name, **arguments)

    @cached_property
    def _pages(self) -> Texts:
        return texts(self.language, "pages")

    def refusal(self, error: Exception) -> str:
        """Return an error's message, in English if it isn't translated."""
        return str(texts(self.language, "errors").texts.get(str(error), error))


SPEECHES: Final[Mapping[str, Speech]] = {language: Speech(language) for language in LANGUAGES}
ENGLISH: Final = SPEECHES["en"]


def speech_for(request: Request, default: str) -> Speech:
    """Return the texts in the language that the request's browser prefers."""
    return SPEECHES[preferred_language(request, default)]


STYLES: Final = "/static/page.css"
MARK: Final = "/static/icon.svg"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self';"
        # A sign-in form may redirect to a mobile app.
        " form-action 'self' zulip:; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Browsers send the Origin of a form only if the policy allows it.
    "Referrer-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}


@cache
def _templates() -> "jinja2.Environment":
    import jinja2  # Imported only if used.

    return jinja2.Environment(
        loader=jinja2.PackageLoader("tertulia.wire"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_from_template(template: str, *, speech: Speech, **facts: Any) -> str:
    """Render a template to HTML."""
    return _templates().get_template(template).render(mark=MARK, say=speech, **facts)


def from_template(
    template: str,
    *,
    status: int = 200,
    speech: Speech = ENGLISH,
    script: str = "",
    **facts: Any,
) -> Response:
    """Render a template as an HTML response. `script` is the path of its script, if it has one."""
    text = page_from_template(
        template, speech=speech, styles=(TOKENS, STYLES), script=script, **facts
    )
    headers = _HEADERS
    if script:
        policy = _HEADERS["Content-Security-Policy"]
        headers = _HEADERS | {"Content-Security-Policy": f"{policy}; script-src 'self'"}
    return HTMLResponse(text, status_code=status, headers=headers)
