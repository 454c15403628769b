"""The objects that names in a text referred to when it was written.

People, groups, and channels can be renamed. A text from another server is rendered here later, and
must still mention the same people.
"""

from collections.abc import Mapping
from typing import NamedTuple


class FormerNames(NamedTuple):
    """The people, groups, and channels that a text mentioned and linked, by their names at that
    time. Other names are plain text."""

    users: Mapping[str, tuple[int, ...]] = {}
    """The user IDs by full name."""
    groups: Mapping[str, tuple[int, str]] = {}
    """ID and label of groups by lowercase label. The ID is 0 for a system group."""
    channels: Mapping[str, tuple[int, str]] = {}
    """ID and name of channels by lowercase name."""
    emoji: frozenset[str] = frozenset()
    """The names of custom emoji."""
