"""Secrets and codes of second factors."""

import base64
import hmac
import secrets
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tertulia.domain.accounts import second_factors
from tertulia.domain.accounts.second_factors import NewCodes
from tertulia.model.errors import Refused, WrongCode
from tertulia.model.second_factors import Totp
from tertulia.service.credentials import Vault
from tertulia.state.state import State

if TYPE_CHECKING:
    import pyotp

STEP_SECONDS: Final = 30
CLOCK_SKEW: Final = 1
"""The number of time steps that a code can be early or late, because clocks differ."""
RECOVERY_CODES: Final = 10
_RECOVERY_LENGTH: Final = 10
_RECOVERY: Final = "recovery code"


class TotpMatch(Struct, frozen=True):
    """A correct code of an authenticator app."""

    factor_id: int
    step: int


class RecoveryMatch(Struct, frozen=True):
    """One of the account's recovery codes."""

    digest: str


def new_totp_secret() -> str:
    """Return a random secret for an authenticator app, in Base32."""
    import pyotp  # Imported when the first person sets up an app.

    return pyotp.random_base32()


def otpauth_url(secret: str, address: str, organization: str) -> str:
    """Return the URL that authenticator apps scan."""
    return _totp(secret).provisioning_uri(name=address, issuer_name=organization)


def confirmed(state: State, vault: Vault, user_id: int, code: str, now: float) -> tuple[int, int]:
    """Return the ID of the authenticator app that the account is setting up, and the time step of
    its code. Raise WrongCode; Refused if none is being set up."""
    factor = second_factors.pending_app(state, user_id, now)
    if factor is None:
        raise Refused("You aren't setting up an authenticator app. Start again.")
    secret = vault.unsealed(second_factors.totp_of(factor).sealed)
    step = matching_step(secret, plain_code(code), now)
    if step is None:
        raise WrongCode(
            "The code is wrong. Check that your device's clock is right, and try the next one."
        )
    return factor.id, step


def matching_step(secret: str, code: str, now: float) -> int | None:
    """Return the time step whose code this is; None if it's wrong. All steps are compared, so that
    the time doesn't reveal which one."""
    totp, current, result = _totp(secret), int(now) // STEP_SECONDS, None
    for step in range(current - CLOCK_SKEW, current + CLOCK_SKEW + 1):
        if hmac.compare_digest(totp.generate_otp(step), code):
            result = step
    return result


def is_short(code: str) -> bool:
    """Whether the code looks like an authenticator app's, which is short enough to guess."""
    return len(code) < _RECOVERY_LENGTH


def plain_code(text: str) -> str:
    """Return the code in lowercase, with only letters and digits."""
    return "".join(name for name in text if name.isascii() and name.isalnum()).lower()


def match(
    state: State, vault: Vault, user_id: int, code: str, now: float
) -> TotpMatch | RecoveryMatch | None:
    """Return the account's code that matches (as returned by `plain_code`), or None if it's wrong.
    Raise VaultError if a secret was encrypted with another one."""
    if is_short(code):
        for factor in second_factors.factors_of(state, user_id):
            if not isinstance(factor.proof, Totp):
                continue
            secret = vault.unsealed(factor.proof.sealed)
            step = matching_step(secret, code, now)
            if step is not None:
                return TotpMatch(factor.id, step)
        return None
    codes, digest = state.recovery_codes.get(user_id), _recovery_digest(vault, user_id, code)
    return RecoveryMatch(digest) if codes is not None and digest in codes.digests else None


def new_recovery_codes(vault: Vault, user_id: int, site: str) -> tuple[list[str], NewCodes]:
    """Return new recovery codes, and the digests to store."""
    plain = [_random_code() for _ in range(RECOVERY_CODES)]
    digests = tuple(_recovery_digest(vault, user_id, code) for code in plain)
    half = _RECOVERY_LENGTH // 2
    shown = [f"{code[:half]}-{code[half:]}" for code in plain]
    return shown, NewCodes(digests=digests, site=site)


def _random_code() -> str:
    return base64.b32encode(secrets.token_bytes(10)).decode().lower()[:_RECOVERY_LENGTH]


def _recovery_digest(vault: Vault, user_id: int, code: str) -> str:
    # Keyed, because codes are short enough to be found from a stolen database otherwise.
    return vault.token(_RECOVERY, user_id, code)


def _totp(secret: str) -> "pyotp.TOTP":
    import pyotp  # Imported with the first code.

    return pyotp.TOTP(secret, interval=STEP_SECONDS)
