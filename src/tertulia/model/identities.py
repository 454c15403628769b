"""Accounts at identity providers that people sign in with."""

from collections.abc import Mapping

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds
from tertulia.model.users import Role


class Identity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link between an account here and one at an identity provider."""

    id: int
    user_id: int
    method: str
    """The name of the sign-in method."""
    subject: str
    """The provider's own, permanent ID of the person. Never an email address, which can change."""
    linked_at: UnixSeconds
    invited_role: Role | None = None
    """The role that the person's invitation gave, which stays until the provider gives another
    one."""
    picture: str = ""
    """A digest of the directory's picture that was last taken over as the avatar; empty for
    none."""
    avatar_version: int = 0
    """The version of the account's avatar that this picture became."""
    is_gone: bool = False
    """Whether the account was deactivated because the directory no longer has the person."""


class ProvenIdentity(Struct, frozen=True, kw_only=True):
    """A person as an identity provider describes them."""

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
    """What roles and groups are mapped from; None if the provider doesn't say."""


class RecognitionRules(Struct, frozen=True, kw_only=True):
    """How people of a sign-in method become members."""

    title: str
    """What people call the provider."""
    creates: bool = True
    """Whether people without an account get one."""
    is_public: bool = False
    """Whether anyone can have an account at the provider. An organization that requires
    invitations then still does."""
    roles: Mapping[Role, str] = {}
    """The value that gives each role."""
    groups: Mapping[str, str] = {}
    """The value that makes people members of each group, by the group's name here."""


class IdentityLinked(Change, frozen=True, tag="identity_linked"):
    identity: Identity


class IdentityRevised(Change, frozen=True, tag="identity_revised"):
    """What is known about a link changed."""

    identity: Identity


class IdentitiesUnlinked(Change, frozen=True, tag="identities_unlinked"):
    """Links of an account to identity providers were removed."""

    user_id: int
    identity_ids: tuple[int, ...]
