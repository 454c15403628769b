"""Accounts that a company's directory creates and changes. Its requests come from the operator, so
the actor is an owner."""

from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain import names
from tertulia.domain.accounts import deactivation, identities, users
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.changes import AnyChange, IdentityLinked
from tertulia.model.errors import Refused
from tertulia.model.identities import Identity, ProvenIdentity, RecognitionRules
from tertulia.model.users import Credential, NewApiKey, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

USER_NAME: Final = "scim.name"
"""The method of links to names that the directory has for people, in lowercase, where they differ
from the email address. No sign-in method can have this name."""


class AlreadyProvisioned(Refused):
    """Another account has the address, the name, or the ID."""


class DirectoryPerson(Struct, frozen=True, kw_only=True):
    """A person as the directory describes them. Empty texts are unknown."""

    method: str
    """The method whose IDs the directory knows people by."""
    external_id: str = ""
    user_name: str = ""
    address: str = ""
    full_name: str = ""


def provision(
    context: CommandContext,
    person: DirectoryPerson,
    credential: Credential,
    key: NewApiKey,
    site: str,
    render: Render,
) -> Decision[User]:
    """Create the person's account, as their invitation says if they have one, or reactivate the
    account with their address.

    `credential`, without a password, and `site`, the server's URL, are for a new account, `key` for
    a reactivated one. Raise AlreadyProvisioned; NotAdmitted; and Refused for invalid values.
    """
    state = context.state
    address = names.address(person.address)
    user = state.user_with_address(address)
    if user is not None:
        if user.is_active or user.is_bot:
            raise AlreadyProvisioned(f"An account with the address {address} already exists.")
        reactivated = deactivation.reactivate(context, user.id, key)
        return Decision(user, [*reactivated.changes, *_links(context, user, person)])
    if identities.invitation_for(state, address, context.now) is not None:
        proven = ProvenIdentity(
            method=person.method,
            subject=person.external_id or person.user_name,
            address=address,
            is_address_verified=True,
            full_name=person.full_name,
        )
        rules = RecognitionRules(title="The directory")
        joined = identities.recognize(context, proven, rules, credential, site, render)
        return _with_links(context, joined, person)
    new = users.NewUser(
        address=address,
        full_name=identities.free_name(state, person.full_name, address),
        credential=credential,
        awaits_arrival=True,
    )
    users.check_new(context, address, new.full_name)
    return _with_links(context, users.create(context, new), person)


def _with_links(
    context: CommandContext, created: Decision[User], person: DirectoryPerson
) -> Decision[User]:
    made = [change.identity for change in created.changes if isinstance(change, IdentityLinked)]
    ahead = msgspec.structs.replace(context, state=context.state.with_changes(*made))
    links = _links(ahead, created.result, person, len(made))
    return msgspec.structs.replace(created, changes=[*created.changes, *links])


def revise(context: CommandContext, user_id: int, person: DirectoryPerson) -> Decision[None]:
    """Give an account the name, the address, and the IDs that the directory has. Raise
    AlreadyProvisioned, and as `users.change`."""
    state = context.state
    user = users.managed_user(context, user_id)
    full_name = address = None
    if person.address and person.address.casefold() != user.address.casefold():
        address = names.address(person.address)
        other = state.user_with_address(address)
        if other is not None:
            raise AlreadyProvisioned(f"An account with the address {address} already exists.")
    if person.full_name and person.full_name != user.full_name:
        full_name = identities.free_name(state, person.full_name, address or user.address, user_id)
    revision = users.AccountUpdate(full_name=full_name, address=address)
    changed = users.change(context, user_id, revision)
    changes = [*changed.changes, *_links(context, user, person)]
    return msgspec.structs.replace(changed, changes=changes)


def _links(
    context: CommandContext, user: User, person: DirectoryPerson, made: int = 0
) -> list[AnyChange]:
    """Return the changes that link the account to the person's ID and name. `made` is the number of
    links that the same command makes before."""
    state, changes = context.state, list[AnyChange]()
    name, address = person.user_name.casefold(), (person.address or user.address).casefold()
    for method, subject in ((person.method, person.external_id), (USER_NAME, name)):
        if subject in {"", linked(state, user.id, method)}:
            continue
        if (method, subject) in state.identities.by_subject:
            raise AlreadyProvisioned(f"Another account has the ID or name '{subject[:100]}'.")
        changes += identities.unlinked(state, user.id, method)
        if (method, name) == (USER_NAME, address):
            continue  # The address is the name.
        identity = Identity(
            id=state.identities.next_id() + made,
            user_id=user.id,
            method=method,
            subject=subject,
            linked_at=int(context.now),
        )
        changes.append(IdentityLinked(identity=identity))
        made += 1
    return changes


def linked(state: State, user_id: int, method: str) -> str:
    """Return the account's ID at the method; empty if there is none."""
    identities = state.identities.of_user[user_id]
    return next((identity.subject for identity in identities if identity.method == method), "")


def remove(context: CommandContext, user_id: int) -> Decision[None]:
    """Deactivate an account that is gone from the directory, if it's active. Raise as
    `deactivation.deactivate`."""
    if not users.managed_user(context, user_id).is_active:
        return Decision(None)
    return deactivation.deactivate(context, user_id)
