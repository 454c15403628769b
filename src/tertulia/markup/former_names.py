"""What the names in a text meant when it was written.

People, groups, and channels are renamed. A text that comes from another server is rendered here
later, and must still mention those whom it mentioned then.
"""

from collections.abc import Mapping
from typing import NamedTuple


class FormerNames(NamedTuple):
    """What a text mentioned and linked, as it called them. Other names are plain text."""

    users: Mapping[str, tuple[int, ...]] = {}
    """IDs by full name."""
    groups: Mapping[str, tuple[int, str]] = {}
    """ID and label by label in lower case; 0 for a group of a role."""
    channels: Mapping[str, tuple[int, str]] = {}
    """ID and name by name in lower case."""
    emoji: frozenset[str] = frozenset()
    """Names of custom emoji."""
