"""The second step of a sign-in: a code or a passkey, or setting one up if it's required."""

from typing import Final

from starlette.responses import Response

from tertulia.domain.accounts import second_factors as factor_verbs
from tertulia.model.errors import WrongCode
from tertulia.model.users import User
from tertulia.service import qr_codes
from tertulia.service import second_factors as factor_codes
from tertulia.wire.http import sign_in
from tertulia.wire.http.errors import TooManyTries
from tertulia.wire.http.request_head import client_network
from tertulia.wire.pages.form_flow import LOGIN, Field, PageRequest, organization_page, to_sign_in
from tertulia.wire.pages.passkeys import SCRIPT as PASSKEY_SCRIPT
from tertulia.wire.pages.passkeys import (
    has_answer,
    new_passkey,
    new_passkey_form,
    passkey_form,
    use_passkey,
)
from tertulia.wire.pages.sign_in_end import KnownSignIn, complete, continued, ticket_for
from tertulia.wire.pages.sign_in_flow import SECOND_STEP, SET_UP

SECOND_STEP_SECONDS: Final = 600
"""How long the second step may take."""
_SECOND_STEP: Final = "second step"
_SET_UP: Final = "second factor setup"
_FINISH: Final = "second factor set up"


def _step(page: PageRequest, purpose: str, known: KnownSignIn) -> str:
    """Return a ticket for the rest of the sign-in."""
    return ticket_for(page, purpose, known, SECOND_STEP_SECONDS)


def _continued(page: PageRequest, purpose: str) -> KnownSignIn | None:
    """Return the sign-in of the page's ticket; None if it has expired, or the password has
    changed."""
    return continued(page, purpose, page.value("step")) if page.is_post else None


async def ask(page: PageRequest, known: KnownSignIn) -> Response:
    """Show the page that asks for the second factor."""
    return await _second_step_page(page, known.user, _step(page, _SECOND_STEP, known))


async def ask_to_set_up(page: PageRequest, known: KnownSignIn) -> Response:
    """Show the page for setting up the second factor that the organization requires."""
    return await _set_up_page(page, known.user, _step(page, _SET_UP, known))


async def _second_step_page(
    page: PageRequest, user: User, step: str, error: str = "", status: int = 200
) -> Response:
    say, passkey = page.say, await passkey_form(page, user)
    code = Field(
        name="code",
        label=say("verification_code"),
        autocomplete="one-time-code",
        focused=True,
        is_code=True,
        max=40,
        hint=say("verification_code_hint"),
    )
    return organization_page(
        page.node,
        say,
        "second_step.html",
        status=status,
        title=say("second_step"),
        action=SECOND_STEP,
        step=step,
        fields=[code],
        error=error,
        passkey=passkey,
        script=PASSKEY_SCRIPT if passkey else "",
        back=to_sign_in(say, say("second_step_lost")),
    )


async def take(page: PageRequest) -> Response:
    """Check the second factor, and finish the sign-in."""
    node, found = page.node, _continued(page, _SECOND_STEP)
    if found is None:
        return page.go(LOGIN)
    user = found.user
    try:
        if has_answer(page):
            await use_passkey(page, user)
        else:
            await sign_in.use_code(node, page.request, user, page.value("code"))
    except (TooManyTries, WrongCode) as refusal:
        status = 429 if isinstance(refusal, TooManyTries) else 403
        error = page.say.refusal(refusal)
        return await _second_step_page(page, user, page.value("step"), error, status)
    node.sign_in_limits.remember(client_network(page.request), user.address)
    return await complete(page, found)


# Setting up the second factor that the organization requires


async def _set_up_page(page: PageRequest, user: User, step: str, error: str = "") -> Response:
    """Return the page for setting up an authenticator app, or a passkey, before signing in."""
    node, say = page.node, page.say
    factor = factor_verbs.pending_app(node.state, user.id, node.clock()) if error else None
    if factor is None:
        secret = factor_codes.new_totp_secret()
        await node.log.submit(user.id, factor_verbs.prepare_totp, node.vault.sealed(secret), "")
    else:
        secret = node.vault.unsealed(factor_verbs.totp_of(factor).sealed)
    code = Field(
        name="code",
        label=say("verification_code"),
        autocomplete="one-time-code",
        is_code=True,
        max=40,
    )
    url = factor_codes.otpauth_url(secret, user.address, node.state.realm.name)
    return organization_page(
        node,
        say,
        "set_up_factor.html",
        status=403 if error else 200,
        title=say("set_up_title"),
        action=SET_UP,
        step=step,
        qr_code=qr_codes.svg_element(url),
        secret=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        fields=[code],
        error=error,
        passkey=await new_passkey_form(page, user),
        script=PASSKEY_SCRIPT,
    )


async def set_up(page: PageRequest) -> Response:
    """Check the new app's code, or the passkey, and show the recovery codes. Then, finish the
    sign-in."""
    node = page.node
    if page.value("done"):
        found = _continued(page, _FINISH)
        step = page.value("step")
        if found is None or not await node.uses_first(_FINISH, step, SECOND_STEP_SECONDS):
            return page.go(LOGIN)
        return await complete(page, found)
    found = _continued(page, _SET_UP)
    if found is None or await sign_in.needs_code(node, found.user):
        return page.go(LOGIN)
    user = found.user
    shown, codes = factor_codes.new_recovery_codes(node.vault, user.id, node.config.mail_site)
    try:
        if has_answer(page):
            passkey = await new_passkey(page, user)
            await node.log.submit(user.id, factor_verbs.add_passkey, passkey, "", codes)
        else:
            factor, counted = factor_codes.confirmed(
                node.state, node.vault, user.id, page.value("code"), node.clock()
            )
            await node.log.submit(user.id, factor_verbs.confirm_totp, factor, counted, codes)
    except WrongCode as refusal:
        return await _set_up_page(page, user, page.value("step"), page.say.refusal(refusal))
    step = _step(page, _FINISH, found)
    return organization_page(
        node,
        page.say,
        "recovery_codes.html",
        title=page.say("recovery_codes"),
        action=SET_UP,
        step=step,
        codes=shown,
    )
