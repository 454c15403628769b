"""Pages for joining, and for confirming a changed email address."""

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
from tertulia.service.accounts import good_password
from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages.form_flow import (
    Field,
    PageRequest,
    new_password_field,
    note_page,
    route_maker,
    to_sign_in,
)
from tertulia.wire.pages.html import STYLES
from tertulia.wire.pages.public import packaged, static
from tertulia.wire.pages.sign_in_flow import SignInFlow
from tertulia.wire.pages.sign_in_steps import finish_sign_in


def join_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes to these pages."""
    route = route_maker(node, "join")
    return (
        route(links.JOIN.rstrip("/"), _open_join_page),
        route(links.JOIN + "{token}", _join),
        route(links.CONFIRM + "{token}", _confirm),
        static(STYLES, packaged("fonts.css", "page.css"), "text/css"),
    )


async def _open_join_page(page: PageRequest) -> Response:
    """Join without an invitation, if the organization allows it."""
    if page.node.state.realm.invite_required:
        return page.note(
            page.say("need_invitation"),
            page.say("need_invitation_text"),
            status=403,
            back=to_sign_in(page.say),
        )
    return await _ask_address(page, None)


def _requires_provider(page: PageRequest, invitation: Invitation | None) -> Response | None:
    """Return the page of organizations where people can join only by signing in with a provider,
    which finds their invitation. Return None for other organizations."""
    if page.node.state.realm.password_sign_in or not page.node.config.sign_in:
        return None
    say = page.say
    token = page.token if invitation is not None and invitation.is_reusable else ""
    flow = SignInFlow(invitation=token)
    buttons = {
        say("sign_in_with", title=method.label): flow.with_path(method.path)
        for method in page.node.config.sign_in
        if method.HAS_BUTTON
    }
    return note_page(
        page.node,
        say,
        say("join_title", organization=page.node.state.realm.name),
        say("no_passwords_text"),
        status=403 if page.is_post or not buttons else 200,
        links=buttons,
        back=None if buttons else to_sign_in(say),
    )


async def _join(page: PageRequest) -> Response:
    """Join with an invitation, or with an email address confirmed by this link."""
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
        page.say("link_invalid"),
        page.say("link_invalid_text"),
        status=404,
    )


async def _ask_address(page: PageRequest, invitation: Invitation | None) -> Response:
    """Ask for an email address, and send a sign-up link to it."""
    if (refused := _requires_provider(page, invitation)) is not None:
        return refused
    error = ""
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
            error = page.say.refusal(refusal)
        else:
            return page.note(
                page.say("look_into_mail"),
                page.say("joining_sent", address=address.strip()),
            )
    return page.form(
        page.say("join_title", organization=page.node.state.realm.name),
        [_address_field(page, None)],
        button=page.say("continue"),
        paragraphs=(page.say("join_text"),),
        error=error,
        back=to_sign_in(page.say, page.say("account_already")),
    )


async def _make_account(
    page: PageRequest, by: Invitation | Confirmation, address: str | None
) -> Response:
    """Ask for a name and password, and create the account."""
    invitation = by if isinstance(by, Invitation) else None
    if (refused := _requires_provider(page, invitation)) is not None:
        return refused
    state = page.node.state
    if address is not None and (known := state.user_with_address(address)) is not None:
        return page.note(
            page.say("has_account"),
            page.say("has_account_text"),
            status=409,
            facts=page.sign_in(known),
            back=to_sign_in(page.say),
        )
    error = ""
    if page.is_post:
        try:
            user = await _joined(page, by, address or page.value("email"))
            return await finish_sign_in(page, user, "link", SignInFlow())
        except (LinkExpired, HasAccount):
            raise
        except Refused as refusal:
            error = page.say.refusal(refusal)
    return page.form(
        page.say("join_title", organization=state.realm.name),
        [
            _address_field(page, address),
            _name_field(page),
            new_password_field(page.node.config, page.say),
        ],
        button=page.say("join"),
        error=error,
        back=to_sign_in(page.say, page.say("account_already")),
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
        label=page.say("email"),
        type="email",
        value=page.value("email") if address is None else address,
        autocomplete="email",
        fixed=address is not None,
        max=254,
    )


def _name_field(page: PageRequest) -> Field:
    return Field(
        name="full_name",
        label=page.say("name"),
        value=page.value("full_name"),
        autocomplete="name",
        min=names.MIN_FULL_NAME,
        max=names.MAX_FULL_NAME,
        hint=page.say("name_hint"),
    )


async def _confirm(page: PageRequest) -> Response:
    """Confirm a changed address with a button, because programs that check links don't press it."""
    state, now = page.node.state, page.node.clock()
    confirmation = page.opened
    if not isinstance(confirmation, Confirmation) or confirmation.user_id is None:
        return _unknown(page)
    if confirmation.expires_at <= now:
        raise LinkExpired("This link has expired.")
    user = state.users[confirmation.user_id]
    if page.is_post:
        await page.node.log.submit(
            None, addresses.confirm_change, confirmation.id, page.node.config.mail_site
        )
        return page.note(
            page.say("address_changed"),
            page.say("address_changed_text"),
            facts=page.sign_in(state.users[user.id]),
            back=to_sign_in(page.say),
        )
    return page.form(
        page.say("confirm_address"),
        [],
        button=page.say("confirm"),
        paragraphs=(page.say("confirm_text", name=user.full_name, address=confirmation.address),),
    )
