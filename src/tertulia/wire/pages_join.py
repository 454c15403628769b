"""Where people come in: the pages that the links in mails and invitations lead to."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia import links
from tertulia.domain import addresses, joining, names
from tertulia.domain.joining import HasAccount, Joining, Over
from tertulia.model.errors import OrganizationDeactivated, Refused, Unavailable
from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.users import User
from tertulia.wire.call import Node
from tertulia.wire.errors import told
from tertulia.wire.forms import received
from tertulia.wire.html import STYLES, page
from tertulia.wire.http import host_of
from tertulia.wire.pacing import Pace
from tertulia.wire.pages import packaged, static

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
        self.who = _who(request)
        self.mails = mails
        self.sent = sent
        self.is_post = request.method == "POST"
        self.token = str(request.path_params.get("token", ""))
        self.site = node.config.external_url or host_of(request)
        self.opened = node.links.opened(node.state, self.token)

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


def joining_pages(node: Node) -> tuple[BaseRoute, ...]:
    """The pages of a node; whoever has the link may open them."""
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

    return (
        route(links.JOIN.rstrip("/"), _open_door),
        route(links.JOIN + "{token}", _join),
        route(links.CONFIRM + "{token}", _confirm),
        static(STYLES, packaged("page.css"), "text/css"),
    )


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


# Joining


async def _open_door(visit: Visit) -> Response:
    """To join without an invitation, where anybody may."""
    if visit.node.state.realm.invite_required:
        return visit.note(
            "You need an invitation",
            "Ask somebody who is here already to invite you. The invitation has a link by which"
            " you come in.",
            status=403,
        )
    return await _ask_address(visit, None)


async def _join(visit: Visit) -> Response:
    """To join with an invitation, or with an address that is confirmed by coming here."""
    state, now = visit.node.state, visit.node.clock()
    match visit.opened:
        case Invitation(id=number):
            invitation = joining.usable_invitation(state, number, now)
            if invitation.is_reusable and visit.node.config.smtp_host:
                return await _ask_address(visit, invitation)
            return await _make_account(visit, invitation, invitation.address)
        case Confirmation(id=number, user_id=None):
            confirmation = joining.usable_confirmation(state, number, now)
            return await _make_account(visit, confirmation, confirmation.address)
        case _:
            return _unknown(visit)


def _unknown(visit: Visit) -> Response:
    return visit.note(
        "This link is not valid",
        "It may have been used already, or it was not copied as a whole.",
        status=404,
    )


async def _ask_address(visit: Visit, invitation: Invitation | None) -> Response:
    """An address, to which a link is mailed."""
    trouble = ""
    if visit.is_post:
        _require_patience(visit.mails, visit.who)
        node, address = visit.node, visit.said("email")
        try:
            await node.log.submit(
                None,
                joining.sign_up,
                address,
                invitation.id if invitation else None,
                node.vault.nonce(),
                visit.site,
            )
        except Over:
            raise
        except Refused as refusal:
            trouble = str(refusal)
        else:
            return visit.note(
                "Look into your mail",
                f"There is a letter under way to {address.strip()}, with a link by which you"
                " come in. It lasts for a day.",
            )
    return visit.form(
        f"Join {visit.node.state.realm.name}",
        [_address_field(visit, None)],
        button="Continue",
        paragraphs=("Where can you be reached? A link is sent to this address.",),
        trouble=trouble,
    )


async def _make_account(
    visit: Visit, by: Invitation | Confirmation, address: str | None
) -> Response:
    """Name and password, and there is the account."""
    state = visit.node.state
    if address is not None and (known := state.user_with_address(address)) is not None:
        return visit.note(
            "You have an account already",
            "Sign in with any client of Zulip, on the web, on the desktop or on the phone.",
            status=409,
            facts=visit.sign_in(known),
        )
    trouble = ""
    if visit.is_post:
        try:
            user = await _joined(visit, by, address or visit.said("email"))
        except (Over, HasAccount):
            raise
        except Refused as refusal:
            trouble = str(refusal)
        else:
            return visit.note(
                f"Welcome, {user.full_name}!",
                "Your account is ready. Sign in with any client of Zulip: on the web, on the"
                " desktop or on the phone.",
                facts=visit.sign_in(user),
            )
    return visit.form(
        f"Join {state.realm.name}",
        [_address_field(visit, address), _name_field(visit), _password_field()],
        button="Join",
        trouble=trouble,
    )


async def _joined(visit: Visit, by: Invitation | Confirmation, address: str) -> User:
    node, full_name = visit.node, visit.said("full_name")
    joining.check(node.state, address, full_name)
    password = names.password(visit.said("password"))
    verb: Any = joining.join_invited if isinstance(by, Invitation) else joining.join_confirmed
    user: User = await node.log.submit(
        None,
        verb,
        by.id,
        Joining(
            address=address,
            full_name=full_name,
            credential=await node.vault.credential(0, password),
        ),
        node.renderer.render,
    )
    return user


def _address_field(visit: Visit, address: str | None) -> Field:
    return Field(
        name="email",
        label="E-mail address",
        type="email",
        value=visit.said("email") if address is None else address,
        autocomplete="email",
        fixed=address is not None,
        max=254,
    )


def _name_field(visit: Visit) -> Field:
    return Field(
        name="full_name",
        label="Name",
        value=visit.said("full_name"),
        autocomplete="name",
        min=names.MIN_FULL_NAME,
        max=names.MAX_FULL_NAME,
        hint="As the others know you.",
    )


def _password_field() -> Field:
    return Field(
        name="password",
        label="Password",
        type="password",
        autocomplete="new-password",
        min=names.MIN_PASSWORD,
        max=names.MAX_PASSWORD,
        hint=f"{names.MIN_PASSWORD} to {names.MAX_PASSWORD} characters. A few words that you can"
        " remember and nobody can guess are good.",
    )


# Confirming an account's new address


async def _confirm(visit: Visit) -> Response:
    """The address is changed by the button: programs that look at a link do not press it."""
    state, now = visit.node.state, visit.node.clock()
    confirmation = visit.opened
    if not isinstance(confirmation, Confirmation) or confirmation.user_id is None:
        return _unknown(visit)
    if confirmation.expires_at <= now:
        raise Over("This link was not used in time.")
    user = state.users[confirmation.user_id]
    if visit.is_post:
        await visit.node.log.submit(None, addresses.confirm_change, confirmation.id, visit.site)
        return visit.note(
            "Your address has changed",
            "From now on you sign in with it, and mails go there.",
            facts=visit.sign_in(state.users[user.id]),
        )
    return visit.form(
        "Confirm your address",
        [],
        button="Confirm",
        paragraphs=(f"The account of {user.full_name} gets the address {confirmation.address}.",),
    )
