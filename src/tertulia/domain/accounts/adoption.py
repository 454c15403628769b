"""Adopting the password and API key of an imported account from its previous server."""

import msgspec

from tertulia.domain.accounts import users
from tertulia.model.changes import CredentialChanged
from tertulia.model.users import Credential, NewApiKey, User
from tertulia.state.decision import CommandContext, Decision


def adopts_key(user: User, credential: Credential) -> bool:
    """Whether the account can still adopt an API key."""
    return user.is_active and credential.adopts_key


def adopts_password(user: User, credential: Credential) -> bool:
    """Whether the account can still adopt a password."""
    return user.is_active and credential.adopts_password and credential.password_hash is None


def adopt(context: CommandContext, key: NewApiKey, password_hash: str | None) -> Decision[None]:
    """Give the actor's account this API key and, if given, this password, and let the actor join.
    The caller has verified both. A credential that the account can no longer adopt, or a key that
    another account has, is ignored."""
    user = context.actor
    credential = context.state.credentials[user.id]
    changed = credential
    is_taken = key.digest in context.state.credentials.by_key_digest
    if adopts_key(user, credential) and not is_taken:
        changed = users.with_key(changed, key)
    if password_hash is not None and adopts_password(user, credential):
        changed = msgspec.structs.replace(
            changed, password_hash=password_hash, adopts_password=False
        )
    if changed == credential:
        return Decision(None)
    same_key = changed.key_digest == credential.key_digest
    return Decision(
        None,
        [
            CredentialChanged(credential=changed, same_key=same_key),
            *users.arrive(context).changes,
        ],
    )
