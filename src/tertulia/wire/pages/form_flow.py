"""Pages with forms, and pages that show a message."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tertulia.domain.accounts.signup import MAX_LENGTH, HasAccount, LinkExpired
from tertulia.model.errors import OrganizationDeactivated, Refused, Unavailable
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.wire.api.organization.objects import picture_url
from tertulia.wire.http.authentication import require_own_page, session_of
from tertulia.wire.http.errors import error_response
from tertulia.wire.http.forms import received
from tertulia.wire.http.limiters import RateLimiter
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import client_network, site_of
from tertulia.wire.pages.html import Speech, from_template, speech_for

MAX_BODY: Final = 64 * 1024
"""Maximum size of a submitted form, in bytes."""
TRIES: Final = 60
MAILS: Final = 10
TRIES_SECONDS: Final = 600.0
"""The period of the limits `TRIES` (forms) and `MAILS` (emails) for one address."""
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
_ADDRESS: Final = re.compile(r"[^\s@,;:]+@[^\s@,;:]+")


class Field(Struct, frozen=True, kw_only=True):
    """A field of a form."""

    name: str
    label: str
    type: str = "text"
    value: str = ""
    autocomplete: str = "off"
    fixed: bool = False
    focused: bool = False
    is_code: bool = False
    min: int = 0
    max: int = 0
    hint: str = ""


class Link(Struct, frozen=True, kw_only=True):
    """A link to another page."""

    path: str
    words: str
    lead: str = ""
    """Text before the link."""
    icon: str | None = None
    """The path of an icon in the link."""


def new_password_field(config: Config, say: Speech) -> Field:
    """Return the field for choosing a new password."""
    shortest = config.password_min_length
    return Field(
        name="password",
        label=say("password"),
        type="password",
        autocomplete="new-password",
        min=shortest,
        max=MAX_LENGTH,
        hint=say("password_hint", shortest=shortest, longest=MAX_LENGTH),
    )


def to_sign_in(say: Speech, lead: str = "") -> Link:
    """Return a link to the sign-in page."""
    return Link(path=LOGIN, words=say("sign_in"), lead=lead)


class PageRequest:
    """A request for a page."""

    def __init__(
        self, node: HttpNode, request: Request, sent: Mapping[str, str], mails: RateLimiter
    ) -> None:
        self.node = node
        self.request = request
        self._mails = mails
        self.sent = sent
        self.is_post = request.method == "POST"
        self.token = str(request.path_params.get("token", ""))
        self.site = site_of(node.config, request)
        self.say = _speech(node, request)
        self.opened = node.links.opened(node.state, self.token)

    @property
    def signed_in_user(self) -> User | None:
        """Return the user signed in with the browser's session, or None."""
        session = session_of(self.node, self.request)
        user = None if session is None else self.node.state.users[session.user_id]
        return user if user is not None and user.is_active else None

    def count_mail(self) -> None:
        """Count an email that the client requested. Raises TooManyTries above the limit."""
        self._mails.require(client_network(self.request))

    def count_unknown(self) -> None:
        """Count an invalid link. Raises TooManyTries after too many."""
        self.node.sign_in_limits.require_code(client_network(self.request))

    def value(self, name: str) -> str:
        """Return the value of a form field, or an empty text."""
        return self.sent.get(name, "")

    def form(
        self,
        title: str,
        fields: list[Field],
        *,
        button: str,
        paragraphs: tuple[str, ...] = (),
        error: str = "",
        hidden: Mapping[str, str] | None = None,
        back: Link | None = None,
    ) -> Response:
        """Return a page with a form. With `error`, an error above the fields, its status is 400."""
        return organization_page(
            self.node,
            self.say,
            "form.html",
            status=400 if error else 200,
            title=title,
            paragraphs=paragraphs,
            fields=fields,
            button=button,
            error=error,
            hidden=hidden or {},
            back=back,
        )

    def note(
        self,
        title: str,
        *paragraphs: str,
        status: int = 200,
        facts: Mapping[str, str] | None = None,
        back: Link | None = None,
    ) -> Response:
        """Return a page with a message."""
        return note_page(
            self.node, self.say, title, *paragraphs, status=status, facts=facts, back=back
        )

    def sign_in(self, user: User) -> Mapping[str, str]:
        """Return the facts that the user needs to sign in with another client."""
        return {self.say("server"): self.site, self.say("email"): user.address}

    @staticmethod
    def go(path: str) -> Response:
        """Redirect to another page of this server with GET."""
        return RedirectResponse(path, status_code=303, headers={"Cache-Control": "no-store"})


Page = Callable[[PageRequest], Awaitable[Response]]


def organization_page(
    node: HttpNode, say: Speech, template: str, *, status: int = 200, **facts: Any
) -> Response:
    """Render a template with the organization's name and icon."""
    realm = node.state.realm
    return from_template(
        template,
        status=status,
        speech=say,
        organization=realm.name,
        icon=picture_url(realm, "icon"),
        contact=_contact(node.config.support_contact),
        **facts,
    )


def _contact(contact: str) -> Link | None:
    """Return a link to the contact. Its path is empty for a text that isn't an address."""
    if not contact:
        return None
    if contact.startswith(("http://", "https://")):
        return Link(path=contact, words=contact)
    is_address = _ADDRESS.fullmatch(contact) is not None
    return Link(path=f"mailto:{quote(contact, safe='@')}" if is_address else "", words=contact)


def note_page(
    node: HttpNode,
    say: Speech,
    title: str,
    *paragraphs: str,
    status: int,
    facts: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    back: Link | None = None,
) -> Response:
    """Return a page with a message. `links` maps labels to URLs."""
    return organization_page(
        node,
        say,
        "note.html",
        status=status,
        title=title,
        paragraphs=paragraphs,
        facts=facts or {},
        links=links or {},
        back=back,
    )


def error_page(node: HttpNode, request: Request, status: int) -> Response:
    """Return the page for an HTTP error."""
    say = _speech(node, request)
    text = say({404: "not_found_text", 405: "not_allowed"}.get(status, "cannot_now"))
    title = say("not_found" if status == 404 else "failed")
    return note_page(node, say, title, text, status=status, back=Link(path="/", words=say("home")))


def _speech(node: HttpNode, request: Request) -> Speech:
    return speech_for(request, node.state.realm.default_language)


async def _form(
    node: HttpNode, request: Request, forms: RateLimiter | None, *, own_pages: bool
) -> Mapping[str, str]:
    if request.method == "POST":
        if own_pages:
            require_own_page(node.config, request)
        if forms is not None:
            forms.require(client_network(request))
    sent, _ = await received(request, MAX_BODY)
    return sent


def _refused(node: HttpNode, request: Request, error: Refused | Unavailable) -> Response:
    """Return the page for an error that resubmitting the form can't fix."""
    say = _speech(node, request)
    title, status, back = say("failed"), error_response(error)[0], None
    match error:
        case LinkExpired():
            title, status = say("link_over"), 410
        case HasAccount():
            title, status, back = say("has_account"), 409, to_sign_in(say)
    return note_page(node, say, title, say.refusal(error), status=status, back=back)


class RouteMaker(Protocol):
    """Makes a route to a page. Forms that are `counted` count toward the rate limit; other pages
    count themselves. With `own_pages`, only pages of this server can send forms; otherwise, the
    page must check where a form comes from."""

    def __call__(
        self, path: str, show: Page, *, counted: bool = True, own_pages: bool = True
    ) -> Route: ...


def route_maker(node: HttpNode, pages: str) -> RouteMaker:
    """Return a function that makes routes to pages without credentials. Routes with the same
    `pages` share their rate limits."""
    limiter = node.limits.limiters.limiter
    forms = limiter(f"{pages}: forms", TRIES, TRIES_SECONDS)
    mails = limiter(f"{pages}: mails", MAILS, TRIES_SECONDS)

    def route(path: str, show: Page, *, counted: bool = True, own_pages: bool = True) -> Route:
        async def answer(request: Request) -> Response:
            try:
                if node.state.realm.deactivated:
                    raise OrganizationDeactivated("This organization is deactivated.")
                sent = await _form(node, request, forms if counted else None, own_pages=own_pages)
                response = await show(PageRequest(node, request, sent, mails))
                await node.log.durability.settled()
            except (Refused, Unavailable) as refusal:
                return _refused(node, request, refusal)
            return response

        return Route(path, answer, methods=["GET", "POST"])

    return route
