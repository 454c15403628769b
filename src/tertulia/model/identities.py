"""Accounts at identity providers that people sign in with."""

from collections.abc import Mapping

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds
from tertulia.model.users import Role


class Identity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link between an account and a person's account at an identity provider."""

    id: int
    user_id: int
    method: str
    """The name of the sign-in method."""
    subject: str
    """The provider's own, permanent ID of the person. Never an email address, which can change."""
    linked_at: UnixSeconds
    picture: str = ""
    """The digest of the directory's picture that last became the avatar; empty if none did."""
    avatar_version: int = 0
    """The version of the account's avatar that has this picture."""
    is_gone: bool = False
    """Whether the account was deactivated because the person was removed from the directory."""


class ProvenIdentity(Struct, frozen=True, kw_only=True):
    """A person as an identity provider identifies them."""

    method: str
    """The name of the sign-in method."""
    subject: str
    """The provider's own, permanent ID of the person. If the provider can be changed under the
    same name, it includes the provider."""
    address: str = ""
    """Email address; empty if unknown."""
    is_address_verified: bool = False
    """Whether the provider vouches that the address is the person's."""
    full_name: str = ""
    groups: frozenset[str] | None = None
    """The values that roles and groups are mapped from; None if the provider doesn't send any."""


class RecognitionRules(Struct, frozen=True, kw_only=True):
    """Rules for the accounts, roles, and groups of people who use a sign-in method."""

    title: str
    """The provider's display name."""
    creates: bool = True
    """Whether to create accounts for people who don't have one."""
    is_public: bool = False
    """Whether anyone can get an account at the provider. If so, invitations are still required in
    an organization that requires them."""
    roles: Mapping[Role, str] = {}
    """The value that gives each role."""
    groups: Mapping[str, str] = {}
    """The value that makes people members of each group, by the group's name in the
    organization."""


class IdentityLinked(Change, frozen=True, tag="identity_linked"):
    identity: Identity


class IdentityRevised(Change, frozen=True, tag="identity_revised"):
    """A link's data changed."""

    identity: Identity


class IdentitiesUnlinked(Change, frozen=True, tag="identities_unlinked"):
    """Links of an account to identity providers were removed."""

    user_id: int
    identity_ids: tuple[int, ...]
