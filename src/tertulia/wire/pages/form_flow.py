"""Pages with forms: what was filled in, and what is shown in return."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

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
"""Bytes of a form."""
TRIES: Final = 60
MAILS: Final = 10
TRIES_SECONDS: Final = 600.0
"""So many forms may come from one address in that time, and ask for so many mails."""
LOGIN: Final = "/login"


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
    """Where one can go from a page."""

    path: str
    words: str
    lead: str = ""
    """What is said before it."""


def new_password_field(config: Config, say: Speech) -> Field:
    """For a password that somebody makes up."""
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
    """To where one signs in."""
    return Link(path=LOGIN, words=say("sign_in"), lead=lead)


class PageRequest:
    """One request for one of these pages."""

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
        """The user whom the browser's session is of; None without a session."""
        session = session_of(self.node, self.request)
        user = None if session is None else self.node.state.users[session.user_id]
        return user if user is not None and user.is_active else None

    def count_mail(self) -> None:
        """Count a mail that is asked for. TooManyTries where it was asked for too often."""
        self._mails.require(client_network(self.request))

    def count_unknown(self) -> None:
        """Count a link that opens nothing. TooManyTries after too many of them."""
        self.node.sign_in_limits.require_code(client_network(self.request))

    def value(self, name: str) -> str:
        """What was filled in under that name."""
        return self.sent.get(name, "")

    def form(
        self,
        title: str,
        fields: list[Field],
        *,
        button: str,
        paragraphs: tuple[str, ...] = (),
        trouble: str = "",
        hidden: Mapping[str, str] | None = None,
        back: Link | None = None,
    ) -> Response:
        """A page to fill in, once more where there was trouble."""
        return organization_page(
            self.node,
            self.say,
            "form.html",
            status=400 if trouble else 200,
            title=title,
            paragraphs=paragraphs,
            fields=fields,
            button=button,
            trouble=trouble,
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
        """A page that says something."""
        return note_page(
            self.node, self.say, title, *paragraphs, status=status, facts=facts, back=back
        )

    def sign_in(self, user: User) -> Mapping[str, str]:
        """What one needs to sign in with a client."""
        return {self.say("server"): self.site, self.say("email"): user.address}

    @staticmethod
    def go(path: str) -> Response:
        """On to another page of ours, whatever this was."""
        return RedirectResponse(path, status_code=303, headers={"Cache-Control": "no-store"})


Page = Callable[[PageRequest], Awaitable[Response]]


def organization_page(
    node: HttpNode, say: Speech, template: str, *, status: int = 200, **facts: Any
) -> Response:
    """A page of the organization."""
    realm = node.state.realm
    return from_template(
        template,
        status=status,
        speech=say,
        organization=realm.name,
        icon=picture_url(realm, "icon"),
        **facts,
    )


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
    """A page of the organization that says something. `links` are addresses by what they are
    called."""
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
    """What a browser is shown where there is nothing that it may see."""
    say = _speech(node, request)
    said = say({404: "not_found_text", 405: "not_allowed"}.get(status, "cannot_now"))
    title = say("not_found" if status == 404 else "failed")
    return note_page(node, say, title, said, status=status, back=Link(path="/", words=say("home")))


def _speech(node: HttpNode, request: Request) -> Speech:
    return speech_for(request, node.state.realm.default_language)


async def _form(node: HttpNode, request: Request, forms: RateLimiter | None) -> Mapping[str, str]:
    if request.method == "POST":
        require_own_page(node.config, request)
        if forms is not None:
            forms.require(client_network(request))
    sent, _ = await received(request, MAX_BODY)
    return sent


def _refused(node: HttpNode, request: Request, error: Refused | Unavailable) -> Response:
    """A page for what cannot be mended by filling in the form once more."""
    say = _speech(node, request)
    title, status, back = say("failed"), error_response(error)[0], None
    match error:
        case LinkExpired():
            title, status = say("link_over"), 410
        case HasAccount():
            title, status, back = say("has_account"), 409, to_sign_in(say)
    return note_page(node, say, title, say.refusal(error), status=status, back=back)


class RouteMaker(Protocol):
    """Makes a route to a page. Forms are `counted`, unless the page does that by itself."""

    def __call__(self, path: str, show: Page, *, counted: bool = True) -> Route: ...


def route_maker(node: HttpNode, pages: str) -> RouteMaker:
    """Makes routes to such pages, which need no credentials. Those with the same name (`pages`)
    count their forms together."""
    limiter = node.limits.limiters.limiter
    forms = limiter(f"{pages}: forms", TRIES, TRIES_SECONDS)
    mails = limiter(f"{pages}: mails", MAILS, TRIES_SECONDS)

    def route(path: str, show: Page, *, counted: bool = True) -> Route:
        async def answer(request: Request) -> Response:
            try:
                if node.state.realm.deactivated:
                    raise OrganizationDeactivated("This organization is deactivated.")
                sent = await _form(node, request, forms if counted else None)
                response = await show(PageRequest(node, request, sent, mails))
                await node.log.settled()
            except (Refused, Unavailable) as error:
                return _refused(node, request, error)
            return response

        return Route(path, answer, methods=["GET", "POST"])

    return route
