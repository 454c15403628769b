"""`/Users`: people's accounts, including deactivated ones, without bots and deleted accounts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain.accounts import deactivation, identities, provisioning
from tertulia.domain.accounts.provisioning import USER_NAME, AlreadyProvisioned, DirectoryPerson
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.scim import lists
from tertulia.wire.scim.call import ScimAnswer, ScimCall, ScimRefused
from tertulia.wire.scim.requests import (
    USER,
    AttributePath,
    attributes_of,
    conditions_of,
    flag_of,
    items_of,
    operations_of,
    text_of,
)

_WORK: Final = "work"


class _SentPerson(Struct):
    """The content of a request about a person. Empty texts are unknown."""

    user_name: str = ""
    external_id: str = ""
    display_name: str = ""
    formatted: str = ""
    given: str = ""
    family: str = ""
    email: str = ""
    active: bool | None = None
    loses_email: bool = False
    loses_external_id: bool = False
    lost_names: set[str] = set()
    """Parts of the name that are removed: `given`, `family`."""

    def full_name(self, before: str = "") -> str:
        """Return the name. `before` is the current one, because a client may change only a part of
        it."""
        if whole := self.display_name or self.formatted:
            return whole
        given, family = _parts(before)
        given = self.given or ("" if "given" in self.lost_names else given)
        family = self.family or ("" if "family" in self.lost_names else family)
        if before and not (given or family):
            raise _always_has("name")
        return " ".join(filter(None, (given, family)))

    def person(self, call: ScimCall, before: User | None = None) -> DirectoryPerson:
        email = self.email
        # If the name was the address, it stays when the address changes.
        user_name = self.user_name or ("" if before is None else _user_name(call, before))
        if before is not None and self.loses_email and not email:
            email = user_name
            if "@" not in email:
                raise _always_has("email address")
        address = email or (user_name if "@" in user_name else "")
        if not email and before is not None and _has_own_user_name(call, before):
            address = ""  # A new user name doesn't change an address that differs from it.
        return DirectoryPerson(
            method=_method(call),
            external_id=_subject(call, self.external_id),
            user_name=user_name,
            address=address,
            full_name=self.full_name(before.full_name if before else ""),
        )


def _has_own_user_name(call: ScimCall, user: User) -> bool:
    return bool(provisioning.linked_id(call.state, user.id, USER_NAME))


def _always_has(what: str) -> ScimRefused:
    return ScimRefused(
        400, f"{what} can't be removed from an account. Replace it instead.", "mutability"
    )


async def find(call: ScimCall, _: str) -> ScimAnswer:
    bitmap = call.state.users.people.ids
    if text := call.query.get("filter", ""):
        bitmap = _matching(call, conditions_of(text)) & bitmap
    page = lists.page_of(call.query)
    users = map(call.state.users.__getitem__, bitmap[page])
    resources = [_object(call, user) for user in users]
    return ScimAnswer(lists.listed(resources, len(bitmap), page.start))


async def read(call: ScimCall, resource_id: str) -> ScimAnswer:
    return ScimAnswer(_object(call, _existing(call.state, resource_id)))


async def create(call: ScimCall, _: str) -> ScimAnswer:
    sent = _of_resource(call.body)
    if not sent.user_name:
        raise ScimRefused(400, "A user needs a userName.", "invalidValue")
    person = sent.person(call)
    if not person.address:
        raise ScimRefused(
            400, "A user needs an email address: in emails, or as userName.", "invalidValue"
        )
    vault = call.node.vault
    await call.prepare(call.state.realm.welcome_message_custom_text)
    with _conflicts():
        user: User = await call.submit(
            provisioning.provision,
            person,
            await vault.credential(0, None),
            vault.new_key(),
            call.node.config.mail_site,
            call.render,
        )
    if sent.active is False:
        await call.submit(deactivation.deactivate, user.id)
    return ScimAnswer(_object(call, call.state.users[user.id]), 201)


async def replace(call: ScimCall, resource_id: str) -> ScimAnswer:
    user = _existing(call.state, resource_id)
    return await _apply(call, user, _of_resource(call.body))


async def update(call: ScimCall, resource_id: str) -> ScimAnswer:
    user = _existing(call.state, resource_id)
    sent = _SentPerson()
    for kind, path, value in operations_of(call.body):
        if kind == "remove":
            _remove(sent, path, value, user)
        else:
            _take(sent, path, value)
    return await _apply(call, user, sent)


async def delete(call: ScimCall, resource_id: str) -> ScimAnswer:
    user = _existing(call.state, resource_id)
    await call.submit(provisioning.remove, user.id)
    return ScimAnswer()


async def _apply(call: ScimCall, user: User, sent: _SentPerson) -> ScimAnswer:
    if sent.active and not user.is_active:
        await call.submit(deactivation.reactivate, user.id, call.node.vault.new_key())
    if sent.external_id == "" and sent.loses_external_id:
        await call.submit(identities.unlink, user.id, _method(call))
    with _conflicts():
        await call.submit(provisioning.update, user.id, sent.person(call, user))
    if sent.active is False:
        await call.submit(provisioning.remove, user.id)
    return ScimAnswer(_object(call, call.state.users[user.id]))


@contextmanager
def _conflicts() -> Iterator[None]:
    """Turn AlreadyProvisioned into SCIM's error."""
    try:
        yield
    except AlreadyProvisioned as error:
        raise ScimRefused(409, str(error), "uniqueness") from None


def _of_resource(body: Mapping[str, Any]) -> _SentPerson:
    sent = _SentPerson()
    for path, value in attributes_of(body):
        _take(sent, path, value)
    return sent


def _take(sent: _SentPerson, path: AttributePath, value: Any) -> None:
    """Apply one attribute or operation to `sent`."""
    match path.attribute:
        case "username":
            sent.user_name = text_of(value, "userName")
        case "externalid":
            sent.external_id = text_of(value, "externalId")
        case "displayname":
            sent.display_name = text_of(value, "displayName")
        case "name":
            _take_name(sent, path.sub, value)
        case "emails":
            _take_email(sent, path, value)
        case "active":
            sent.active = flag_of(value, "active")


def _remove(sent: _SentPerson, path: AttributePath, value: Any, user: User) -> None:
    """Apply an operation that removes a value. Raise ScimRefused for values that every account must
    have."""
    match path.attribute, path.sub:
        case "externalid", _:
            sent.external_id, sent.loses_external_id = "", True
        case "name", "givenname":
            sent.given = ""
            sent.lost_names |= {"given"}
        case "name", "familyname":
            sent.family = ""
            sent.lost_names |= {"family"}
        case "emails", "" | "value":
            if _is_email_of(user, path, value):
                sent.email, sent.loses_email = "", True
        case "username" | "displayname" | "name" | "active" as name, _:
            raise _always_has(
                {"username": "userName", "displayname": "displayName"}.get(name, name)
            )


def _is_email_of(user: User, path: AttributePath, value: Any) -> bool:
    """Whether an operation that removes emails refers to the account's only one."""
    shown = {"type": _WORK, "primary": "true", "value": user.address.casefold()}
    if path.selector is not None:
        by, wanted = path.selector
        return shown.get(by) == wanted.casefold()
    named = items_of(value, "emails")
    return not named or any(
        str(fields.get("value", "")).casefold() == shown["value"] for fields in named
    )


def _take_name(sent: _SentPerson, sub: str, value: Any) -> None:
    if not sub:
        if not isinstance(value, dict):
            raise ScimRefused(400, "The value of name must be an object.", "invalidValue")
        for name, part in value.items():
            _take_name(sent, name.lower(), part)
        return
    match sub:
        case "formatted":
            sent.formatted = text_of(value, "name.formatted")
        case "givenname":
            sent.given = text_of(value, "name.givenName")
        case "familyname":
            sent.family = text_of(value, "name.familyName")


def _take_email(sent: _SentPerson, path: AttributePath, value: Any) -> None:
    if path.selector not in {None, ("type", _WORK)} and path.selector != ("primary", "true"):
        return
    if path.sub == "value":
        sent.email = text_of(value, "emails.value")
        return
    if path.sub:
        return
    items = [fields for fields in items_of(value, "emails") if fields.get("value")]
    primary = (item for item in items if str(item.get("primary", "")).lower() == "true")
    work = (item for item in items if str(item.get("type", "")).lower() == _WORK)
    chosen = next(primary, None) or next(work, None) or next(iter(items), None)
    if chosen is not None:
        sent.email = text_of(chosen["value"], "emails.value")


def _existing(state: State, resource_id: str) -> User:
    is_number = resource_id.isascii() and resource_id.isdigit() and len(resource_id) < 16
    user = state.users.get(int(resource_id)) if is_number else None
    if user is None or user.id not in state.users.people.ids:
        raise ScimRefused(404, "This user doesn't exist.")
    return user


def _matching(call: ScimCall, conditions: Mapping[str, str]) -> BitMap:
    """Return the accounts that fulfill all conditions. Each condition identifies a person."""
    state, candidates = call.state, None
    for name, value in conditions.items():
        result: set[int] = set()
        match name:
            case "username":
                result = {*_by_address(state, value), *_linked(state, USER_NAME, value.casefold())}
                result = {i for i in result if _user_name(call, state.users[i]) == value.casefold()}
            case "externalid":
                result = _linked(state, _method(call), _subject(call, value))
            case "emails" | "emails.value":
                result = _by_address(state, value)
            case "id":
                is_number = value.isascii() and value.isdigit() and len(value) < 16
                result = {int(value)} if is_number and int(value) in state.users else set()
            case _:
                raise ScimRefused(400, f"Users can't be filtered by {name}.", "invalidFilter")
        candidates = result if candidates is None else candidates & result
    return BitMap(candidates or ())


def _by_address(state: State, value: str) -> set[int]:
    user = state.user_with_address(value)
    return set() if user is None else {user.id}


def _linked(state: State, method: str, subject: str) -> set[int]:
    identity_id = state.identities.by_subject.get((method, subject))
    return set() if identity_id is None else {state.identities[identity_id].user_id}


def _user_name(call: ScimCall, user: User) -> str:
    return provisioning.linked_id(call.state, user.id, USER_NAME) or user.address.casefold()


def _parts(full_name: str) -> tuple[str, str]:
    given, _, family = full_name.rpartition(" ")
    return (given, family) if given else (family, "")


def _object(call: ScimCall, user: User) -> dict[str, Any]:
    given, family = _parts(user.full_name)
    result: dict[str, Any] = {
        "schemas": [USER],
        "id": str(user.id),
        "userName": provisioning.linked_id(call.state, user.id, USER_NAME) or user.address,
        "displayName": user.full_name,
        "name": {"formatted": user.full_name, "givenName": given, "familyName": family},
        "emails": [{"value": user.address, "type": _WORK, "primary": True}],
        "active": user.is_active,
        "meta": {
            "resourceType": "User",
            "created": datetime.fromtimestamp(user.joined_at, UTC).isoformat(),
            "location": f"{call.base}/Users/{user.id}",
        },
    }
    if subject := provisioning.linked_id(call.state, user.id, _method(call)):
        sign_in = call.node.config.sign_in_method(call.node.config.scim_method)
        result["externalId"] = sign_in.provider_id(subject) if sign_in else subject
    return result


# The directory's IDs


def _method(call: ScimCall) -> str:
    """Return the method that the directory's IDs are linked with."""
    return call.node.config.scim_method or "scim"


def _subject(call: ScimCall, external_id: str) -> str:
    """Return the subject for an ID that the directory sends, by which the sign-in method finds the
    account."""
    sign_in = call.node.config.sign_in_method(call.node.config.scim_method)
    return sign_in.subject(external_id) if sign_in and external_id else external_id
