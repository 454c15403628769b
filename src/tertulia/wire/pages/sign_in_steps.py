"""The steps of a sign-in after the first one, which proves who the user is."""

import math
from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from tertulia.domain.accounts import second_factors as factor_verbs
from tertulia.model.users import User
from tertulia.service import links
from tertulia.wire.http import sign_in
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.sign_in import CheckedPassword
from tertulia.wire.pages.form_flow import Link, PageRequest, route_maker
from tertulia.wire.pages.passkeys import passkey_routes
from tertulia.wire.pages.public import packaged, static
from tertulia.wire.pages.sign_in_end import KnownSignIn, complete, from_desktop_app
from tertulia.wire.pages.sign_in_flow import DESKTOP_SCRIPT, SECOND_STEP, SET_UP, SignInFlow

_WITH_SECOND_STEP: Final = frozenset({"password", "link"})
"""Methods that a second factor adds to. Providers and directories ask for their own."""


async def finish_sign_in(
    page: PageRequest,
    user: User,
    method: str,
    flow: SignInFlow,
    checked: CheckedPassword | None = None,
) -> Response:
    """Sign the user in, and continue in the browser or the app, after the second step if the method
    and the account need one. `method` is for the log; `checked` is the result of a password
    sign-in.

    Raises WrongPassword if the checked password has changed since; AccountDeactivated,
    OrganizationDeactivated.
    """
    user = sign_in.require_usable(page.node, user.id)
    known = KnownSignIn(user, method, flow, checked)
    if method not in _WITH_SECOND_STEP:
        return await complete(page, known)
    from tertulia.wire.pages import second_step  # Only if used.

    if await sign_in.needs_code(page.node, user):
        return await second_step.ask(page, known)
    due = factor_verbs.required_from(page.node.state, user)
    if due is None:
        return await complete(page, known)
    if due <= page.node.clock():
        return await second_step.ask_to_set_up(page, known)
    response = await complete(page, known)
    return response if flow.is_for_app else _reminder(page, due, flow)


def _reminder(page: PageRequest, due: int, flow: SignInFlow) -> Response:
    """Return the page, after signing in, that asks to set up a second factor before it's
    required."""
    days = max(1, math.ceil((due - page.node.clock()) / 86400))
    return page.note(
        page.say("set_up_title"),
        page.say("set_up_reminder", count=days),
        back=Link(path=flow.next, words=page.say("continue")),
    )


async def _second_step(page: PageRequest) -> Response:
    from tertulia.wire.pages import second_step  # Only if used.

    return await second_step.take(page)


async def _set_up(page: PageRequest) -> Response:
    from tertulia.wire.pages import second_step  # Only if used.

    return await second_step.set_up(page)


def sign_in_step_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """Return the routes of these steps, and of the apps that wait for their result."""
    return (
        route_maker(node, "login")(links.DESKTOP + "{token}", from_desktop_app, counted=False),
        route_maker(node, "login")(SET_UP, _set_up, counted=False),
        route_maker(node, "login")(SECOND_STEP, _second_step, counted=False),
        *passkey_routes(),
        static(DESKTOP_SCRIPT, packaged("desktop.js"), "text/javascript"),
    )
