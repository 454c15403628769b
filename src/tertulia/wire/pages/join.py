"""Where people come in: the pages that the links in mails and invitations lead to."""

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.domain import names
from tertulia.domain.accounts import addresses, signup
from tertulia.domain.accounts.signup import HasAccount, LinkExpired, NewMember
from tertulia.model.errors import Refused
from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.users import User
from tertulia.service import links
from tertulia.service.passwords import good_password
from tertulia.wire.http import sign_in
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import (
    TO_SIGN_IN,
    Field,
    PageRequest,
    new_password_field,
    route_maker,
)
from tertulia.wire.pages.html import STYLES
from tertulia.wire.pages.public import packaged, static


def join_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The pages of a node."""
    route = route_maker(node, "join")
    return (
        route(links.JOIN.rstrip("/"), _open_join_page),
        route(links.JOIN + "{token}", _join),
        route(links.CONFIRM + "{token}", _confirm),
        static(STYLES, packaged("page.css"), "text/css"),
    )


# Joining


async def _open_join_page(page: PageRequest) -> Response:
    """To join without an invitation, where anybody may."""
    if page.node.state.realm.invite_required:
        return page.note(
            "You need an invitation",
            "Ask somebody who is here already to invite you. The invitation has a link by which"
            " you come in.",
            status=403,
        )
    return await _ask_address(page, None)


async def _join(page: PageRequest) -> Response:
    """To join with an invitation, or with an address that is confirmed by coming here."""
    state, now = page.node.state, page.node.clock()
    match page.opened:
        case Invitation(id=number):
            invitation = signup.usable_invitation(state, number, now)
            if invitation.is_reusable and page.node.config.smtp_host:
                return await _ask_address(page, invitation)
            return await _make_account(page, invitation, invitation.address)
        case Confirmation(id=number, user_id=None):
            confirmation = signup.usable_confirmation(state, number, now)
            return await _make_account(page, confirmation, confirmation.address)
        case _:
            return _unknown(page)


def _unknown(page: PageRequest) -> Response:
    page.count_unknown()
    return page.note(
        "This link is not valid",
        "It may have been used already, or it was not copied as a whole.",
        status=404,
    )


async def _ask_address(page: PageRequest, invitation: Invitation | None) -> Response:
    """An address, to which a link is mailed."""
    trouble = ""
    if page.is_post:
        page.count_mail()
        node, address = page.node, page.value("email")
        try:
            await node.log.submit(
                None,
                signup.sign_up,
                address,
                invitation.id if invitation else None,
                node.vault.nonce(),
                node.config.mail_site,
            )
        except LinkExpired:
            raise
        except Refused as refusal:
            trouble = str(refusal)
        else:
            return page.note(
                "Look into your mail",
                f"There is a letter under way to {address.strip()}, with a link by which you"
                " come in. It lasts for a day.",
            )
    return page.form(
        f"Join {page.node.state.realm.name}",
        [_address_field(page, None)],
        button="Continue",
        paragraphs=("Where can you be reached? A link is sent to this address.",),
        trouble=trouble,
    )


async def _make_account(
    page: PageRequest, by: Invitation | Confirmation, address: str | None
) -> Response:
    """A form for name and password; filled in, it makes the account."""
    state = page.node.state
    if address is not None and (known := state.user_with_address(address)) is not None:
        return page.note(
            "You have an account already",
            "Sign in here, or with any client of Zulip on the desktop or on the phone.",
            status=409,
            facts=page.sign_in(known),
            back=TO_SIGN_IN,
        )
    trouble = ""
    if page.is_post:
        try:
            user = await _joined(page, by, address or page.value("email"))
            await sign_in.sign_in(page.node, page.request, user, way="link")
        except (LinkExpired, HasAccount):
            raise
        except Refused as refusal:
            trouble = str(refusal)
        else:
            return page.go("/")
    return page.form(
        f"Join {state.realm.name}",
        [_address_field(page, address), _name_field(page), new_password_field(page.node.config)],
        button="Join",
        trouble=trouble,
    )


async def _joined(page: PageRequest, by: Invitation | Confirmation, address: str) -> User:
    node, full_name = page.node, page.value("full_name")
    signup.check(node.state, address, full_name)
    password = await good_password(node, page.value("password"), address, full_name)
    verb: Any = signup.join_invited if isinstance(by, Invitation) else signup.join_confirmed
    user: User = await node.log.submit(
        None,
        verb,
        by.id,
        NewMember(
            address=address,
            full_name=full_name,
            credential=await node.vault.credential(0, password),
            site=node.config.mail_site,
        ),
        node.renderer.render,
    )
    return user


def _address_field(page: PageRequest, address: str | None) -> Field:
    return Field(
        name="email",
        label="E-mail address",
        type="email",
        value=page.value("email") if address is None else address,
        autocomplete="email",
        fixed=address is not None,
        max=254,
    )


def _name_field(page: PageRequest) -> Field:
    return Field(
        name="full_name",
        label="Name",
        value=page.value("full_name"),
        autocomplete="name",
        min=names.MIN_FULL_NAME,
        max=names.MAX_FULL_NAME,
        hint="As the others know you.",
    )


# Confirming an account's new address


async def _confirm(page: PageRequest) -> Response:
    """The address is changed by the button: programs that look at a link do not press it."""
    state, now = page.node.state, page.node.clock()
    confirmation = page.opened
    if not isinstance(confirmation, Confirmation) or confirmation.user_id is None:
        return _unknown(page)
    if confirmation.expires_at <= now:
        raise LinkExpired("This link was not used in time.")
    user = state.users[confirmation.user_id]
    if page.is_post:
        await page.node.log.submit(
            None, addresses.confirm_change, confirmation.id, page.node.config.mail_site
        )
        return page.note(
            "Your address has changed",
            "From now on you sign in with it, and mails go there.",
            facts=page.sign_in(state.users[user.id]),
            back=TO_SIGN_IN,
        )
    return page.form(
        "Confirm your address",
        [],
        button="Confirm",
        paragraphs=(f"The account of {user.full_name} gets the address {confirmation.address}.",),
    )
