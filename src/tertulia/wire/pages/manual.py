"""The manual: the documentation as `make docs` builds it into the package, below `/help/`."""

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tertulia.wire.http.caching import unless_known
from tertulia.wire.pages.built_files import BuiltFiles

HELP: Final = "/help"
_MANUAL: Final = BuiltFiles("manual")
_FIRST: Final = "index.html"
_HEADERS: Final = {
    # Their names are the same in every release.
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
}
_SHOWN: Final = ("text/html", "text/css", "text/javascript", "image/")


def is_built() -> bool:
    """Whether there is a manual: a package of a release has it."""
    return _FIRST in _MANUAL.names


def manual_answer(request: Request, name: str) -> Response | None:
    """What the manual has at that path below `/help/`; None where it has nothing there."""
    if not is_built():
        return None
    if not name:
        if request.url.path == HELP:  # Links on the page begin from a folder.
            return RedirectResponse(f"{HELP}/", status_code=302)
        name = _FIRST
    if (found := _MANUAL.file(name)) is not None:
        content, headers = found.encoded(request)
        is_shown = found.media_type.startswith(_SHOWN)
        media_type = found.media_type if is_shown else "text/plain"
        return unless_known(request, content, media_type, {**headers, **_HEADERS})
    if f"{name}.html" in _MANUAL.names:
        return RedirectResponse(f"{HELP}/{name}.html", status_code=302)
    return None
