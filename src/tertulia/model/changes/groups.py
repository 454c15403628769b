"""User groups."""

from tertulia.model.changes.base import Change
from tertulia.model.groups import UserGroup


class UserGroupCreated(Change, frozen=True, tag="user_group_created"):
    """A group exists."""

    group: UserGroup
