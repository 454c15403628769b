"""Passkeys on sign-in pages: a challenge, and the script that passes it to the browser."""

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute

from tertulia.domain.accounts import second_factors
from tertulia.model.second_factors import Passkey
from tertulia.model.users import User
from tertulia.wire.http import sign_in
from tertulia.wire.pages.form_flow import PageRequest
from tertulia.wire.pages.public import packaged, static

if TYPE_CHECKING:
    from tertulia.service.passkeys import Answer, Passkeys

SCRIPT: Final = "/static/passkey.js"


class PasskeyForm(Struct, frozen=True, kw_only=True):
    """The data that the page's script needs."""

    options: str
    """As `Challenge.options`."""
    ticket: str


async def passkey_form(page: PageRequest, user: User | None = None) -> PasskeyForm | None:
    """Return a form for the user's passkeys or, without a user, for anyone's. Return None if nobody
    has a passkey."""
    node = page.node
    if user is not None:
        has_some = bool(second_factors.passkeys_of(node.state, user.id))
    else:
        has_some = bool(node.state.second_factors.passkeys.ids)
    if not has_some:
        return None
    challenge = await _passkeys(page).to_sign_in(node.state, page.site, user)
    options = msgspec.json.encode(challenge.options).decode()
    return PasskeyForm(options=options, ticket=challenge.ticket)


async def new_passkey_form(page: PageRequest, user: User) -> PasskeyForm:
    """Return a form with which the user adds a passkey."""
    node = page.node
    challenge = await _passkeys(page).to_set_up(node.state, user, page.site)
    options = msgspec.json.encode(challenge.options).decode()
    return PasskeyForm(options=options, ticket=challenge.ticket)


def has_answer(page: PageRequest) -> bool:
    """Whether the request contains a passkey's response."""
    return bool(page.value("passkey"))


async def use_passkey(page: PageRequest, user: User | None = None) -> User:
    """Return the user whose passkey signed the response. Raises as `sign_in.use_passkey`."""
    return await sign_in.use_passkey(page.node, page.request, _answer(page), user)


async def new_passkey(page: PageRequest, user: User) -> Passkey:
    """Return the passkey that the user adds. Raises WrongCode."""
    return await _passkeys(page).set_up(user, _answer(page))


def _passkeys(page: PageRequest) -> "Passkeys":
    from tertulia.service.passkeys import Passkeys  # Only if used.

    return Passkeys(page.node.vault, page.node.clock())


def _answer(page: PageRequest) -> "Answer":
    from tertulia.service.passkeys import Answer  # Only if used.

    return Answer(ticket=page.value("ticket"), credential=page.value("passkey"), site=page.site)


def passkey_routes() -> tuple[BaseRoute, ...]:
    """The route to the script."""
    return (static(SCRIPT, packaged("passkey.js"), "text/javascript"),)
