"""What POST /register answers besides the queue: the state that a client mirrors, by kind.

Each section belongs to fetch types and is a function of a context; the register race is over before
any of them runs, because the context's state is exactly that of the queue's first entry.
"""

from collections.abc import Collection
from typing import Any, Final

from tertulia.wire.api import versions
from tertulia.wire.api.snapshot import (
    administration,
    channels,
    conversations,
    own,
    people,
    realm,
    settings,
)
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext
from tertulia.wire.http.fragments import Fragment

__all__ = ["READS", "SECTIONS", "SnapshotContext", "taken"]

READS: Final = frozenset({"update_message_flags", "starred_messages"})
"""Fetch types whose sections need what the viewer has read."""

SECTIONS: Final[Sections] = {
    **realm.SECTIONS,
    **people.SECTIONS,
    **channels.SECTIONS,
    **conversations.SECTIONS,
    **own.SECTIONS,
    **settings.SECTIONS,
    **administration.SECTIONS,
}


TYPES: Final = frozenset(name for types in SECTIONS for name in types)


def always() -> dict[str, Any]:
    """What every answer has."""
    return {
        "zulip_version": versions.SERVICE_VERSION,
        "zulip_feature_level": versions.FEATURE_LEVEL,
        "zulip_merge_base": versions.MERGE_BASE,
        "service_feature_level": versions.FEATURE_LEVEL,
    }


def taken(
    context: SnapshotContext, fetch: Collection[str] | None
) -> tuple[dict[str, Any], list[Fragment]]:
    """The sections of the fetch types (None: all), for `fragmented`. Unknown types are ignored.

    Where a type of `READS` is asked for and there is a viewer, what they have read must be loaded.
    """
    wanted = [
        section
        for types, section in SECTIONS.items()
        if fetch is None or all(name in fetch for name in types)
    ]
    if fetch is not None:
        wanted += [
            section
            for types, section in {**settings.LEGACY, **own.NAMED}.items()
            if all(name in fetch for name in types)
        ]
    data, encoded = always(), []
    for section in wanted:
        found = section(context)
        if isinstance(found, Fragment):
            encoded.append(found)
        else:
            data |= found
    return data, encoded
