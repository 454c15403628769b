"""A visit to a page for people: what was filled in, and what is shown in return."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tertulia.domain.joining import HasAccount, Over
from tertulia.model.errors import OrganizationDeactivated, Refused, Unavailable
from tertulia.model.users import User
from tertulia.wire.call import Node
from tertulia.wire.errors import told
from tertulia.wire.forms import received
from tertulia.wire.html import page
from tertulia.wire.http import host_of
from tertulia.wire.pacing import Pace

MAX_BODY: Final = 64 * 1024
"""Bytes of a form."""
TRIES: Final = 60
MAILS: Final = 10
TRIES_SECONDS: Final = 600.0
"""So many forms may come from one address in that time, and ask for so many mails."""


class TooManyTries(Refused):
    """Somebody tries again and again."""


class Field(Struct, frozen=True, kw_only=True):
    """A field of a form."""

    name: str
    label: str
    type: str = "text"
    value: str = ""
    autocomplete: str = "off"
    fixed: bool = False
    min: int = 0
    max: int = 0
    hint: str = ""


class Visit:
    """One request for one of these pages."""

    def __init__(self, node: Node, request: Request, sent: Mapping[str, str], mails: Pace) -> None:
        self.node = node
        self._who = _who(request)
        self._mails = mails
        self.sent = sent
        self.is_post = request.method == "POST"
        self.token = str(request.path_params.get("token", ""))
        self.site = node.config.external_url or host_of(request)
        self.opened = node.links.opened(node.state, self.token)

    def require_patience(self) -> None:
        """Count a mail that is asked for. TooManyTries where it was asked for too often."""
        _require_patience(self._mails, self._who)

    def said(self, name: str) -> str:
        """What was filled in."""
        return self.sent.get(name, "")

    def form(
        self,
        title: str,
        fields: list[Field],
        *,
        button: str,
        paragraphs: tuple[str, ...] = (),
        trouble: str = "",
    ) -> Response:
        """A page to fill in, once more where there was trouble."""
        return page(
            "form.html",
            status=400 if trouble else 200,
            organization=self.node.state.realm.name,
            title=title,
            paragraphs=paragraphs,
            fields=fields,
            button=button,
            trouble=trouble,
        )

    def note(
        self,
        title: str,
        *paragraphs: str,
        status: int = 200,
        facts: Mapping[str, str] | None = None,
    ) -> Response:
        """A page that says something."""
        return page(
            "note.html",
            status=status,
            organization=self.node.state.realm.name,
            title=title,
            paragraphs=paragraphs,
            facts=facts or {},
        )

    def sign_in(self, user: User) -> Mapping[str, str]:
        """What one needs to sign in with a client."""
        return {"Server": self.site, "E-mail address": user.address}


Page = Callable[[Visit], Awaitable[Response]]


async def _form(request: Request, pace: Pace) -> Mapping[str, str]:
    if request.method != "POST":
        return {}
    _require_patience(pace, _who(request))
    sent, _ = await received(request, MAX_BODY)
    return sent


def _who(request: Request) -> str | None:
    return request.client.host if request.client else None


def _require_patience(pace: Pace, who: str | None) -> None:
    if not pace.admits(who):
        raise TooManyTries("That was tried too often. Wait ten minutes, and try again.")


def _refused(node: Node, error: Refused | Unavailable) -> Response:
    """A page for what cannot be mended by filling in the form once more."""
    title, status = "That did not work", told(error)[0]
    match error:
        case Over():
            title, status = "This link is over", 410
        case HasAccount():
            title, status = "You have an account already", 409
        case TooManyTries():
            status = 429
    return page(
        "note.html",
        status=status,
        organization=node.state.realm.name,
        title=title,
        paragraphs=(str(error),),
        facts={},
    )


def door(node: Node) -> Callable[[str, Page], Route]:
    """Makes routes to pages of the node, which whoever has the link may open."""
    pace = Pace(TRIES, TRIES_SECONDS, node.clock)
    mails = Pace(MAILS, TRIES_SECONDS, node.clock)

    def route(path: str, show: Page) -> Route:
        async def answer(request: Request) -> Response:
            try:
                if node.state.realm.deactivated:
                    raise OrganizationDeactivated("This organization is closed.")
                sent = await _form(request, pace)
                visit = Visit(node, request, sent, mails)
                response = await show(visit)
                await node.log.settled()
            except (Refused, Unavailable) as error:
                return _refused(node, error)
            return response

        return Route(path, answer, methods=["GET", "POST"])

    return route
