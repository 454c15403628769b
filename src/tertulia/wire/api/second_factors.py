"""Second factors. Changes to them don't create events."""

from typing import Annotated, Any

import msgspec
from msgspec import Struct

from tertulia.domain.accounts import second_factors as verbs
from tertulia.domain.accounts import users
from tertulia.model.second_factors import SecondFactor
from tertulia.service import qr_codes, second_factors
from tertulia.service.passkeys import Answer, Passkeys
from tertulia.wire.http import sign_in
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.routing import ApiResponse, Call

Name = Annotated[str, Doc("Your name for it, such as `Phone`.")]


class SecondFactorObject(Struct, kw_only=True):
    """A second factor of an account."""

    id: int
    kind: Annotated[str, Doc("`totp`: an authenticator app; `passkey`.")]
    name: Annotated[str, Doc("Given by the user; may be empty.")]
    created_at: int
    last_used_at: Annotated[int | None, Doc("Null if it was never used to sign in.")]


class SecondFactorsResponse(ApiResponse, kw_only=True):
    """An account's second factors, oldest first. If there are any, the password alone isn't enough
    to sign in."""

    second_factors: list[SecondFactorObject]
    recovery_codes_left: Annotated[int, Doc("The number of unused recovery codes.")]
    required_from: Annotated[
        int | None,
        Doc(
            "The UNIX time from which the organization requires a second factor of the account;"
            " null if it doesn't."
        ),
    ]


async def get_second_factors(call: Call) -> SecondFactorsResponse:
    """Get your second factors. This endpoint is a Tertulia extension."""
    return _response(call, call.user.id)


async def get_user_second_factors(call: Call, user_id: IntPath) -> SecondFactorsResponse:
    """Get the second factors of an account that you can change. Requires an administrator. This
    endpoint is a Tertulia extension."""
    call.consider(users.check_managed, user_id)
    return _response(call, user_id)


def _response(call: Call, user_id: int) -> SecondFactorsResponse:
    state = call.state
    codes = state.recovery_codes.get(user_id)
    return SecondFactorsResponse(
        second_factors=[_object(factor) for factor in verbs.factors_of(state, user_id)],
        recovery_codes_left=0 if codes is None else len(codes.digests),
        required_from=verbs.required_from(state, state.users[user_id]),
    )


def _object(factor: SecondFactor) -> SecondFactorObject:
    return SecondFactorObject(
        id=factor.id,
        kind=factor.kind,
        name=factor.name,
        created_at=factor.created_at,
        last_used_at=factor.used_at or None,
    )


class NewTotpResponse(ApiResponse, kw_only=True):
    """The secret of an authenticator app, which is shown only once."""

    id: int
    secret: Annotated[str, Doc("In Base32, for apps that can't scan a QR code.")]
    otpauth_url: Annotated[str, Doc("The content of the QR code.")]
    qr_code: Annotated[str, Doc("The QR code, as a `data:` URL of an SVG image.")]


async def begin_totp(call: Call, name: Name = "") -> NewTotpResponse:
    """Begin to set up an authenticator app.

    Confirm it with POST /users/me/second_factors/totp/confirm within an hour. Beginning again
    replaces the previous attempt. This endpoint is a Tertulia extension.
    """
    users.require_person(call.user)
    sign_in.require_confirmed(call)
    secret = second_factors.new_totp_secret()
    factor = await call.submit(verbs.prepare_totp, call.node.vault.sealed(secret), name)
    url = second_factors.otpauth_url(secret, call.user.address, call.state.realm.name)
    return NewTotpResponse(
        id=factor.id, secret=secret, otpauth_url=url, qr_code=qr_codes.data_url(url)
    )


class RecoveryCodesResponse(ApiResponse, kw_only=True):
    """Recovery codes, which are shown only once."""

    recovery_codes: Annotated[
        list[str],
        Doc(
            "Each replaces a second factor once. Empty if you already have some, which still work."
        ),
    ]


async def confirm_totp(
    call: Call, code: Annotated[str, Doc("The code that the app shows.")]
) -> RecoveryCodesResponse:
    """Finish setting up an authenticator app. This endpoint is a Tertulia extension."""
    node, user = call.node, call.user
    users.require_person(user)
    sign_in.require_confirmed(call)
    factor_id, step = second_factors.confirmed(call.state, node.vault, user.id, code, call.now)
    shown, codes = second_factors.new_recovery_codes(node.vault, user.id, node.config.mail_site)
    is_first = await call.submit(verbs.confirm_totp, factor_id, step, codes)
    return RecoveryCodesResponse(recovery_codes=shown if is_first else [])


class ChallengeResponse(ApiResponse, kw_only=True):
    """A challenge for a passkey."""

    options: Annotated[
        dict[str, Any],
        Doc("For `navigator.credentials`, as JSON (`PublicKeyCredential.parse…OptionsFromJSON`)."),
    ]
    ticket: Annotated[str, Doc("Send it with the passkey's response, within an hour.")]


async def begin_passkey(call: Call) -> ChallengeResponse:
    """Begin to add a passkey in a browser. This endpoint is a Tertulia extension."""
    users.require_person(call.user)
    sign_in.require_confirmed(call)
    challenge = await _passkeys(call).to_set_up(call.state, call.user, call.url)
    return ChallengeResponse(options=challenge.options, ticket=challenge.ticket)


async def add_passkey(
    call: Call,
    ticket: Annotated[str, Doc("As POST /users/me/second_factors/passkeys/challenge returned it.")],
    credential: Annotated[
        dict[str, Any],
        Doc("The passkey's response: the browser's `PublicKeyCredential` as JSON (`toJSON()`)."),
    ],
    name: Name = "",
) -> RecoveryCodesResponse:
    """Add a passkey. It's a second factor, and can replace your password. This endpoint is a
    Tertulia extension."""
    node, user = call.node, call.user
    users.require_person(user)
    sign_in.require_confirmed(call)
    text = msgspec.json.encode(credential).decode()
    answer = Answer(ticket=ticket, credential=text, site=call.url)
    passkey = await _passkeys(call).set_up(user, answer)
    shown, codes = second_factors.new_recovery_codes(node.vault, user.id, node.config.mail_site)
    is_first = await call.submit(verbs.add_passkey, passkey, name, codes)
    return RecoveryCodesResponse(recovery_codes=shown if is_first else [])


async def create_passkey_challenge(call: Call) -> ChallengeResponse:
    """Get a challenge for your passkeys, to confirm that it's you with POST /sessions/confirm. This
    endpoint is a Tertulia extension."""
    challenge = await _passkeys(call).to_sign_in(call.state, call.url, call.user)
    return ChallengeResponse(options=challenge.options, ticket=challenge.ticket)


def _passkeys(call: Call) -> Passkeys:
    return Passkeys(call.node.vault, call.now)


async def replace_recovery_codes(call: Call) -> RecoveryCodesResponse:
    """Replace your recovery codes. The previous codes stop working immediately. This endpoint is a
    Tertulia extension."""
    sign_in.require_confirmed(call)
    node = call.node
    shown, codes = second_factors.new_recovery_codes(
        node.vault, call.user.id, node.config.mail_site
    )
    await call.submit(verbs.replace_codes, codes)
    return RecoveryCodesResponse(recovery_codes=shown)


async def remove_second_factor(call: Call, factor_id: IntPath) -> None:
    """Remove one of your second factors. If it's the last one, your recovery codes stop working.
    This endpoint is a Tertulia extension."""
    sign_in.require_confirmed(call)
    await call.submit(verbs.remove, factor_id, call.node.config.mail_site)


async def remove_user_second_factors(call: Call, user_id: IntPath) -> None:
    """Remove all second factors of someone who lost theirs. They can then sign in with only their
    password. Requires an administrator; for an owner's account, an owner. This endpoint is a
    Tertulia extension."""
    sign_in.require_confirmed(call)
    await call.submit(verbs.remove_all, user_id, call.node.config.mail_site)
