"""Accounts that a company's directory creates and updates. The server's operator configures the
directory, so the actor is an owner."""

import contextlib
from typing import Any, Final

import msgspec
from msgspec import Struct

from tertulia.domain import names
from tertulia.domain.accounts import admission, deactivation, identities, personal, users
from tertulia.domain.accounts.identities import NotRecognized
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.changes import AnyChange, IdentityLinked, IdentityRevised
from tertulia.model.errors import Refused
from tertulia.model.identities import Identity, ProvenIdentity, RecognitionRules
from tertulia.model.users import Credential, NewApiKey, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

USER_NAME: Final = "scim.name"
"""The method of identity links that hold people's names in the directory, in lowercase, where they
differ from the email address. No sign-in method can have this name."""


class AlreadyProvisioned(Refused):
    """Another account has the address, the name, or the ID."""


class DirectoryPerson(Struct, frozen=True, kw_only=True):
    """A person as the directory describes them. Empty texts are unknown."""

    method: str
    """The sign-in method that has the same IDs as the directory."""
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
    """Create the person's account, with what their invitation grants if they have one, or
    reactivate the account with their address.

    `credential` (without a password) and `site` (the server's URL) are for a new account, and `key`
    for a reactivated one. Raise AlreadyProvisioned; NotAdmitted; and Refused for invalid values.
    """
    state = context.state
    address = names.address(person.address)
    user = state.user_with_address(address)
    if user is not None:
        if user.is_active or user.is_bot:
            raise AlreadyProvisioned(f"An account with the address {address} already exists.")
        reactivated = deactivation.reactivate(context, user.id, key)
        return Decision(user, [*reactivated.changes, *_link_changes(context, user, person)])
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
    links = _link_changes(ahead, created.result, person, len(made))
    return msgspec.structs.replace(created, changes=[*created.changes, *links])


def update(context: CommandContext, user_id: int, person: DirectoryPerson) -> Decision[None]:
    """Set an account's name, address, and IDs to those in the directory. Raise AlreadyProvisioned,
    and as `users.change`."""
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
    account_update = users.AccountUpdate(full_name=full_name, address=address)
    changed = users.change(context, user_id, account_update)
    changes = [*changed.changes, *_link_changes(context, user, person)]
    return msgspec.structs.replace(changed, changes=changes)


def _link_changes(
    context: CommandContext, user: User, person: DirectoryPerson, made: int = 0
) -> list[AnyChange]:
    """Return the changes that link the account to the person's ID and name. `made` is the number of
    links that the same command has already made."""
    state, changes = context.state, list[AnyChange]()
    name, address = person.user_name.casefold(), (person.address or user.address).casefold()
    for method, subject in ((person.method, person.external_id), (USER_NAME, name)):
        if subject in {"", linked_id(state, user.id, method)}:
            continue
        if (method, subject) in state.identities.by_subject:
            raise AlreadyProvisioned(f"Another account has the ID or name '{subject[:100]}'.")
        changes += identities.unlink_changes(state, user.id, method)
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


def linked_id(state: State, user_id: int, method: str) -> str:
    """Return the account's ID at the sign-in method, or an empty string if it isn't linked."""
    identities = state.identities.of_user[user_id]
    return next((identity.subject for identity in identities if identity.method == method), "")


# Directories that are read


class DirectoryPicture(Struct, frozen=True, kw_only=True):
    """A person's picture in a directory."""

    digest: str
    file: str
    """The file name of the stored avatar."""


def wants_picture(state: State, identity: Identity, digest: str | None = None) -> bool:
    """Whether the directory's picture should become the account's avatar: the person hasn't
    uploaded another one, and the picture, if its digest is given, is new."""
    user = state.users[identity.user_id]
    is_directorys = bool(identity.picture) and identity.avatar_version == user.avatar_version
    return (user.avatar_source != "U" or is_directorys) and digest != identity.picture


def sync_from_directory(
    context: CommandContext,
    identity_id: int,
    proven: ProvenIdentity,
    rules: RecognitionRules,
    picture: DirectoryPicture | None = None,
) -> Decision[str]:
    """Sync a person's active account with the directory: its name, address, avatar, role, and
    groups. Return the name of the avatar file that is no longer used, or an empty string."""
    state = context.state
    identity = state.identities.get(identity_id)
    user = None if identity is None else state.users[identity.user_id]
    if identity is None or user is None or not user.is_active:
        return Decision("" if picture is None else picture.file)
    values: dict[str, Any] = {}
    plain = identities.plain_name(proven.full_name)
    if plain and plain != user.full_name:
        with contextlib.suppress(NotRecognized):  # A name that can't be used here.
            values["full_name"] = identities.free_name(state, plain, user.address, user.id)
    changes, unused = list[AnyChange](), ""
    if address := _new_address(state, user, proven):
        values["address"] = address
        changes += admission.invitation_acceptance_changes(state, address)
    if picture is not None and wants_picture(state, identity, picture.digest):
        unused = user.avatar_file
        values |= personal.avatar_values(context, user, picture.file)
        shown = values["avatar_version"]
        new = msgspec.structs.replace(identity, picture=picture.digest, avatar_version=shown)
        changes.append(IdentityRevised(identity=new))
    elif picture is not None:
        unused = picture.file
    changes += users.account_changes(context, user, values)
    return Decision(
        unused, [*changes, *identities.sync_changes(context, user, proven.groups, rules)]
    )


def _new_address(state: State, user: User, proven: ProvenIdentity) -> str:
    """Return the person's address in the directory if the account can change to it; otherwise an
    empty string."""
    if not proven.is_address_verified or proven.address.casefold() in {"", user.address.casefold()}:
        return ""
    try:
        address = names.address(proven.address)
        admission.require_allowed_email(state, address)
    except Refused:
        return ""
    return "" if state.user_with_address(address) is not None else address


def deactivate_departed(context: CommandContext, identity_id: int) -> Decision[bool]:
    """Deactivate the account of a person who was removed from the directory, and return whether it
    was active. Raise as `deactivation.deactivate`."""
    identity = context.state.identities[identity_id]
    if not context.state.users[identity.user_id].is_active:
        return Decision(False)
    over = deactivation.deactivate(context, identity.user_id)
    gone = IdentityRevised(identity=msgspec.structs.replace(identity, is_gone=True))
    return Decision(True, [*over.changes, gone], over.mails)


def reactivate_returned(
    context: CommandContext, identity_id: int, key: NewApiKey
) -> Decision[bool]:
    """Reactivate the account of a person who is in the directory again, if `deactivate_departed`
    deactivated it, and return whether it did. Raise as `deactivation.reactivate`."""
    identity = context.state.identities.get(identity_id)
    if identity is None or not identity.is_gone:
        return Decision(False)
    back = deactivation.reactivate(context, identity.user_id, key)
    return Decision(True, back.changes)


def remove(context: CommandContext, user_id: int) -> Decision[None]:
    """Deactivate an account that was removed from the directory, if it's active. Raise as
    `deactivation.deactivate`."""
    if not users.managed_user(context, user_id).is_active:
        return Decision(None)
    return deactivation.deactivate(context, user_id)
