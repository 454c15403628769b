"""Accounts that are deactivated for good: what was of their person is taken out of them."""

import msgspec

from tertulia.domain import profiles, users
from tertulia.model.changes import AnyChange, ConfirmationsEnded, CredentialChanged, StatusChanged
from tertulia.model.errors import Refused
from tertulia.model.profiles import NO_EMOJI
from tertulia.model.users import User
from tertulia.state.moment import Decision, Moment


def delete(moment: Moment, user_id: int, host: str) -> Decision[str]:
    """Deactivate an account that the actor manages, if it is not yet, and take its name, address,
    picture, profile and status away. `host` is of the address that it has then. Returns the name
    of its picture; empty for none. What it wrote stays.

    Refused as `users.deactivate`, and where it was deleted already.
    """
    target = users.managed_user(moment, user_id)
    if target.is_deleted:
        raise Refused("The account is deleted already.")
    changes: list[AnyChange] = []
    if target.is_active:
        changes += users.deactivate(moment, user_id).changes
    blank = {
        "is_deleted": True,
        "full_name": f"Deleted user {target.id}",
        "address": f"deleteduser{target.id}@{host}",
        "avatar_source": "J",
        "avatar_file": "",
        "avatar_version": target.avatar_version + 1,
        "timezone": "",
    }
    changes += [*users.changed(moment, target, blank), *_emptied(moment, target)]
    return Decision(target.avatar_file, changes)


def _emptied(moment: Moment, target: User) -> list[AnyChange]:
    state = moment.state
    changes: list[AnyChange] = []
    fields = [value.field_id for value in state.profile_of[target.id]]
    if fields:
        changes += profiles.emptied(moment, target, fields)
    if target.id in state.statuses:
        changes.append(StatusChanged(user_id=target.id, text="", emoji=NO_EMOJI))
    asked = tuple(sorted(one.id for one in state.confirmations if one.user_id == target.id))
    if asked:
        changes.append(ConfirmationsEnded(confirmation_ids=asked))
    credential = state.credentials[target.id]
    if credential.password_hash is not None:
        bare = msgspec.structs.replace(credential, password_hash=None)
        changes.append(CredentialChanged(credential=bare, same_key=True))
    return changes
