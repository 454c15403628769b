"""Passkeys on sign-in pages: a challenge, and the script that passes it to the browser."""

from typing import Final

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute

from tertulia.model.second_factors import Passkey
from tertulia.model.users import User
from tertulia.service.passkeys import Answer, Passkeys, has_passkey
from tertulia.wire.http import sign_in
from tertulia.wire.pages.form_flow import PageRequest
from tertulia.wire.pages.public import packaged, static

SCRIPT: Final = "/static/passkey.js"


class PasskeyForm(Struct, frozen=True, kw_only=True):
    """What the page's script needs."""

    options: str
    """As `Challenge.options`."""
    ticket: str


async def passkey_form(page: PageRequest, user: User | None = None) -> PasskeyForm | None:
    """Return a form for the user's passkeys, or without a user, for anyone's; None if nobody has
    any."""
    node = page.node
    if not (has_passkey(node.state, user.id) if user else node.state.second_factors.passkeys.ids):
        return None
    challenge = await Passkeys(node.vault, node.clock()).to_sign_in(node.state, page.site, user)
    options = msgspec.json.encode(challenge.options).decode()
    return PasskeyForm(options=options, ticket=challenge.ticket)


async def new_passkey_form(page: PageRequest, user: User) -> PasskeyForm:
    """Return a form with which the user adds a passkey."""
    node = page.node
    challenge = await Passkeys(node.vault, node.clock()).to_set_up(node.state, user, page.site)
    options = msgspec.json.encode(challenge.options).decode()
    return PasskeyForm(options=options, ticket=challenge.ticket)


def has_answer(page: PageRequest) -> bool:
    """Whether the request has a passkey's answer."""
    return bool(page.value("passkey"))


async def use_passkey(page: PageRequest, user: User | None = None) -> User:
    """Return whose passkey answered. Raises as `sign_in.use_passkey`."""
    return await sign_in.use_passkey(page.node, page.request, _answer(page), user)


async def new_passkey(page: PageRequest, user: User) -> Passkey:
    """Return the passkey that the user adds. Raises WrongCode."""
    return await Passkeys(page.node.vault, page.node.clock()).set_up(user, _answer(page))


def _answer(page: PageRequest) -> Answer:
    return Answer(ticket=page.value("ticket"), credential=page.value("passkey"), site=page.site)


def passkey_routes() -> tuple[BaseRoute, ...]:
    """The route to the script."""
    return (static(SCRIPT, packaged("passkey.js"), "text/javascript"),)
