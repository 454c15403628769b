"""Attributes that SAML providers send, by their usual names."""

from collections.abc import Iterable, Mapping
from typing import Final

from tertulia.model.identities import ProvenIdentity
from tertulia.service.provider_methods import SamlMethod

_CLAIMS: Final = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
_ADDRESSES: Final = (
    "email",
    "mail",
    "Email",
    f"{_CLAIMS}/emailaddress",
    "urn:oid:0.9.2342.19200300.100.1.3",
)
_NAMES: Final = (
    "displayName",
    "name",
    "http://schemas.microsoft.com/identity/claims/displayname",
    "urn:oid:2.16.840.1.113730.3.1.241",
)
_GROUPS: Final = ("groups", "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups")
_GIVEN: Final = ("firstName", "givenName", f"{_CLAIMS}/givenname", "urn:oid:2.5.4.42")
_FAMILY: Final = ("lastName", "surname", "sn", f"{_CLAIMS}/surname", "urn:oid:2.5.4.4")


def identity_of(method: SamlMethod, name_id: str, sent: Mapping[str, list[str]]) -> ProvenIdentity:
    """Return the person with this NameID and these attributes."""
    known_by = _first(sent, [method.id_attribute]) if method.id_attribute else name_id
    address = _first(sent, [method.address_attribute or "", *_ADDRESSES])
    if not address and "@" in name_id:
        address = name_id
    groups = {text for name in (method.groups_attribute, *_GROUPS) for text in sent.get(name, ())}
    return ProvenIdentity(
        method=method.name,
        subject=known_by,
        address=address,
        # The operator controls the provider, so its addresses are trusted.
        is_address_verified=True,
        full_name=_first(sent, [method.name_attribute, *_NAMES]) or _both_names(sent),
        # Keep only the attributes that matter: some providers send hundreds.
        groups=frozenset(groups & {*method.roles.values(), *method.groups.values()}),
    )


def _first(sent: Mapping[str, list[str]], names: Iterable[str]) -> str:
    """Return the first value of the first of these attributes that was sent."""
    values = (value for name in names for value in sent.get(name, ()) if value)
    return next(values, "").strip()


def _both_names(sent: Mapping[str, list[str]]) -> str:
    return f"{_first(sent, _GIVEN)} {_first(sent, _FAMILY)}".strip()
