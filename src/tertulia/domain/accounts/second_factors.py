"""Second factors: setting them up, signing in with them, and removing them. Encrypted secrets are
checked before the command runs. The command makes sure that a code works only once, across all
nodes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain import names, permissions
from tertulia.domain.accounts import users
from tertulia.model.changes import (
    AnyChange,
    RecoveryCodesChanged,
    RecoveryCodeUsed,
    SecondFactorAdded,
    SecondFactorPrepared,
    SecondFactorsRemoved,
    SecondFactorUsed,
)
from tertulia.model.errors import NoSuchItem, Refused, WrongCode
from tertulia.model.mail import Mail, MailKind
from tertulia.model.second_factors import Passkey, RecoveryCodes, SecondFactor, Totp
from tertulia.model.sessions import Session
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_FACTORS: Final = 20
"""Per account."""
MAX_NAME: Final = 40
MAX_CHALLENGES: Final = 60
"""The most challenges that a passkey can answer before the first one expires."""
UNKNOWN_PASSKEY: Final = (
    "This passkey doesn't work here. Sign in another way, then add it again in your settings."
)
PENDING_SECONDS: Final = 3600
"""The time for setting up an authenticator app, in seconds."""


def factors_of(state: State, user_id: int) -> list[SecondFactor]:
    """Return the account's second factors in use, oldest first."""
    factors = [factor for factor in state.second_factors.of_user[user_id] if not factor.is_pending]
    return sorted(factors, key=lambda factor: factor.id)


def passkeys_of(state: State, user_id: int) -> list[Passkey]:
    """Return the account's passkeys, oldest first."""
    return [one.proof for one in factors_of(state, user_id) if isinstance(one.proof, Passkey)]


def has_any(state: State, user_id: int) -> bool:
    """Whether the account needs a second factor to sign in."""
    return any(not factor.is_pending for factor in state.second_factors.of_user[user_id])


def required_from(state: State, user: User) -> int | None:
    """Return the UNIX time from which the organization requires a second factor of an account that
    signs in with a password; None if it doesn't."""
    realm = state.realm
    if user.is_bot or not _REQUIRED_OF[realm.second_factor_required_for](state, user):
        return None
    begun = max(realm.second_factor_required_since, user.joined_at)
    return begun + realm.second_factor_grace_days * 86400


_REQUIRED_OF: Final[Mapping[str, Callable[[State, User], bool]]] = {
    "nobody": lambda state, user: False,
    "administrators": permissions.is_administrator,
    "members": lambda state, user: not permissions.is_guest(state, user),
    "everyone": lambda state, user: True,
}


def is_missing(state: State, user: User, now: float) -> bool:
    """Whether the account must set up a second factor before it can sign in with a password."""
    due = required_from(state, user)
    return due is not None and now >= due and not has_any(state, user.id)


def ends_session(state: State, session: Session, now: float) -> bool:
    """Whether the session ended when a second factor became required, because the account had none.
    Later sessions come from a sign-in through a provider, and stay."""
    if state.realm.second_factor_required_for == "nobody":
        return False
    user = state.users[session.user_id]
    due = required_from(state, user)
    return due is not None and session.created_at < due and is_missing(state, user, now)


def pending_app(state: State, user_id: int, now: float) -> SecondFactor | None:
    """Return the authenticator app that the account is setting up, if any."""
    for factor in state.second_factors.of_user[user_id]:
        if factor.is_pending and now < factor.created_at + PENDING_SECONDS:
            return factor
    return None


def _own(context: CommandContext, factor_id: int) -> SecondFactor:
    factor = context.state.second_factors.get(factor_id)
    if factor is None or factor.user_id != context.actor.id:
        raise NoSuchItem("second factor")
    return factor


# Setting up


def prepare_totp(context: CommandContext, sealed: str, name: str) -> Decision[SecondFactor]:
    """Begin setting up an authenticator app with this encrypted secret for the actor. Raise
    NotPermitted for bots; Refused for an invalid name and too many factors."""
    state, actor = context.state, context.actor
    require_room(context)
    factor = SecondFactor(
        id=state.second_factors.next_id(),
        user_id=actor.id,
        name=checked_name(name),
        created_at=int(context.now),
        proof=Totp(sealed=sealed),
        is_pending=True,
    )
    begun = [factor.id for factor in state.second_factors.of_user[actor.id] if factor.is_pending]
    changed = SecondFactorPrepared(factor=factor, replaced_ids=tuple(sorted(begun)))
    return Decision(factor, (changed,))


def require_room(context: CommandContext) -> None:
    """Raise as `prepare_totp` unless the actor can add a factor."""
    users.require_person(context.actor)
    if len(factors_of(context.state, context.actor.id)) >= MAX_FACTORS:
        raise Refused(f"You can have at most {MAX_FACTORS} second factors.")


def checked_name(text: str) -> str:
    """Return the normalized name of a factor. Raise Refused if it's invalid."""
    name = text.strip()
    if len(name) > MAX_NAME or not names.is_plain(name):
        raise Refused(f"The name can have at most {MAX_NAME} visible characters.")
    return name


class NewCodes(Struct, frozen=True, kw_only=True):
    """New recovery codes, for an account that might not have any yet."""

    digests: tuple[str, ...]
    site: str
    """The server's URL, for the email."""


def confirm_totp(
    context: CommandContext, factor_id: int, step: int, codes: NewCodes
) -> Decision[bool]:
    """Finish setting up the actor's authenticator app, whose code for that time step was correct.
    Return whether the new recovery codes are used; an account that already has codes keeps them.

    Raise Refused if the app isn't being set up anymore, and for too many factors.
    """
    require_room(context)
    factor = pending_app(context.state, context.actor.id, context.now)
    if factor is None or factor.id != factor_id:
        raise Refused("This authenticator app's setup is no longer valid. Start again.")
    confirmed = msgspec.structs.replace(
        factor,
        is_pending=False,
        created_at=int(context.now),
        proof=Totp(sealed=totp_of(factor).sealed, used_step=step),
    )
    return add_factor(context, confirmed, codes)


def add_passkey(
    context: CommandContext, passkey: Passkey, name: str, codes: NewCodes
) -> Decision[bool]:
    """Add a passkey to the actor's account. Return as `confirm_totp`. Raise NotPermitted for bots;
    Refused for an invalid name, too many factors, and a passkey that an account already has."""
    state = context.state
    require_room(context)
    if state.second_factors.by_credential.get(passkey.credential_id) is not None:
        raise Refused("This passkey was already added.")
    factor = SecondFactor(
        id=state.second_factors.next_id(),
        user_id=context.actor.id,
        name=checked_name(name),
        created_at=int(context.now),
        proof=passkey,
    )
    return add_factor(context, factor, codes)


def add_factor(context: CommandContext, factor: SecondFactor, codes: NewCodes) -> Decision[bool]:
    """Add a checked factor to the actor's account. Return as `confirm_totp`."""
    actor = context.actor
    changes: list[AnyChange] = [SecondFactorAdded(factor=factor)]
    is_first = actor.id not in context.state.recovery_codes
    if is_first:
        changes.append(_codes_change(context, codes.digests))
    mails = users.emails_to(MailKind.SECOND_FACTOR_ADDED, actor, codes.site)
    return Decision(is_first, changes, mails)


def _codes_change(context: CommandContext, digests: tuple[str, ...]) -> RecoveryCodesChanged:
    now = int(context.now)
    return RecoveryCodesChanged(
        codes=RecoveryCodes(user_id=context.actor.id, digests=digests, created_at=now)
    )


def replace_codes(context: CommandContext, codes: NewCodes) -> Decision[None]:
    """Replace the actor's recovery codes. Raise Refused for an account without a second factor."""
    if not has_any(context.state, context.actor.id):
        raise Refused("Recovery codes replace a second factor, and you don't have one.")
    mails = users.emails_to(MailKind.RECOVERY_CODES_REPLACED, context.actor, codes.site)
    return Decision(None, (_codes_change(context, codes.digests),), mails)


# Signing in


def use_totp(context: CommandContext, factor_id: int, step: int) -> Decision[None]:
    """Mark the authenticator app's code for that time step as used. Raise WrongCode if that code,
    or a newer one, was used before, and if the app was removed."""
    factor = context.state.second_factors.get(factor_id)
    if factor is None or factor.user_id != context.actor.id or factor.is_pending:
        raise WrongCode("This authenticator app was removed from your account.")
    totp = totp_of(factor)
    if step <= totp.used_step:
        raise WrongCode("This code was already used. Wait for the next one.")
    proof = msgspec.structs.replace(totp, used_step=step)
    return Decision(None, (use_change(context, factor, proof),))


def totp_of(factor: SecondFactor) -> Totp:
    """Return the factor's authenticator app. Raise NoSuchItem for other kinds."""
    if not isinstance(factor.proof, Totp):
        raise NoSuchItem("second factor")
    return factor.proof


class PasskeyUse(Struct, frozen=True, kw_only=True):
    """A challenge that a passkey answered correctly, and its new counter."""

    factor_id: int
    challenge: str
    expires_at: int
    """UNIX seconds."""
    sign_count: int


def use_passkey(context: CommandContext, use: PasskeyUse) -> Decision[None]:
    """Record that the actor signed in with a passkey. Raise WrongCode if it answered the challenge
    before, if its counter shows that it was copied, and if it was removed."""
    factor = context.state.second_factors.get(use.factor_id)
    if factor is None or factor.user_id != context.actor.id:
        raise WrongCode(UNKNOWN_PASSKEY)
    passkey = factor.proof
    if not isinstance(passkey, Passkey) or passkey.sign_count >= max(use.sign_count, 1):
        raise WrongCode(UNKNOWN_PASSKEY)
    lasting = [challenge for challenge in passkey.used_challenges if challenge[1] >= context.now]
    if any(challenge == use.challenge for challenge, _ in lasting):
        raise WrongCode("This sign-in was already used. Try again.")
    if len(lasting) >= MAX_CHALLENGES:
        raise WrongCode("This passkey was used too often within an hour. Try again later.")
    proof = msgspec.structs.replace(
        passkey,
        sign_count=use.sign_count,
        used_challenges=(*lasting, (use.challenge, use.expires_at)),
    )
    return Decision(None, (use_change(context, factor, proof),))


def use_change(
    context: CommandContext, factor: SecondFactor, proof: Totp | Passkey
) -> SecondFactorUsed:
    """Return the change that records the use of a factor."""
    at = int(context.now)
    return SecondFactorUsed(user_id=factor.user_id, factor_id=factor.id, at=at, proof=proof)


def use_recovery_code(context: CommandContext, digest: str, site: str) -> Decision[int]:
    """Mark one of the actor's recovery codes as used, and email the person. Return how many codes
    are left. Raise WrongCode if it was used before."""
    codes, user_id = context.state.recovery_codes.get(context.actor.id), context.actor.id
    if codes is None or digest not in codes.digests or not has_any(context.state, user_id):
        raise WrongCode("This code was already used.")
    left = len(codes.digests) - 1
    changed = RecoveryCodeUsed(user_id=user_id, digest=digest, at=int(context.now))
    mails = users.emails_to(MailKind.RECOVERY_CODE_USED, context.actor, site, left=str(left))
    return Decision(left, (changed,), mails)


def warn_of_guesses(context: CommandContext, site: str) -> Decision[None]:
    """Email the actor that someone who knows their password is guessing codes."""
    return Decision(None, (), users.emails_to(MailKind.CODES_GUESSED, context.actor, site))


# Removing


def remove(context: CommandContext, factor_id: int, site: str) -> Decision[None]:
    """Remove one of the actor's second factors, and email the person. Raise NoSuchItem."""
    factor = _own(context, factor_id)
    return _remove(context.state, context.actor, [factor], site)


def remove_all(context: CommandContext, user_id: int, site: str) -> Decision[int]:
    """Remove all second factors of an account that the actor manages, for someone who lost theirs,
    and email the person. Return how many factors it had. Raise Refused for unknown accounts and
    accounts that the actor can't manage."""
    target = users.managed_user(context, user_id)
    factors = list(context.state.second_factors.of_user[target.id])
    removed = _remove(context.state, target, factors, site)
    return Decision(len(factors_of(context.state, target.id)), removed.changes, removed.mails)


def _remove(state: State, user: User, factors: Sequence[SecondFactor], site: str) -> Decision[None]:
    mails: list[Mail] = []
    if any(not factor.is_pending for factor in factors):
        mails = users.emails_to(MailKind.SECOND_FACTOR_REMOVED, user, site)
    return Decision(None, removal_changes(state, user.id, factors), mails)


def removal_changes(state: State, user_id: int, factors: Sequence[SecondFactor]) -> list[AnyChange]:
    """Return the changes that remove the factors. Removing the last one also removes the recovery
    codes."""
    ids = {factor.id for factor in factors}
    changes: list[AnyChange] = []
    if ids:
        changes.append(SecondFactorsRemoved(user_id=user_id, factor_ids=tuple(sorted(ids))))
    left = any(factor.id not in ids for factor in factors_of(state, user_id))
    if user_id in state.recovery_codes and not left:
        none = RecoveryCodes(user_id=user_id, digests=(), created_at=0)
        changes.append(RecoveryCodesChanged(codes=none))
    return changes
