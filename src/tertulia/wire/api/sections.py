"""All sections of the initial data that POST /register returns.

Sections have no race conditions, because their context's state is that of the first entry that the
queue doesn't have yet.
"""

from collections.abc import Collection
from typing import Any, Final

from tertulia.wire.api import (
    alert_words,
    calls,
    default_groups,
    devices,
    domains,
    drafts,
    emoji,
    folders,
    linkifiers,
    muted_users,
    navigation,
    playgrounds,
    presence,
    profiles,
    quiet_times,
    scheduled,
    settings,
    statuses,
    user_topics,
    webhooks,
)
from tertulia.wire.api import events as versions
from tertulia.wire.api.bots import objects as bots
from tertulia.wire.api.channels import sections as channels
from tertulia.wire.api.groups import endpoints as groups
from tertulia.wire.api.messages import unread
from tertulia.wire.api.organization import sections as organization
from tertulia.wire.api.section import Section, SectionContext, Sections
from tertulia.wire.api.users import sections as users
from tertulia.wire.http.responses import Fragment

READS: Final = frozenset({"update_message_flags", "starred_messages"})
"""Fetch types whose sections need the viewer's read state to be loaded."""

SECTIONS: Final[Sections] = {
    **organization.SECTIONS,
    **users.SECTIONS,
    **bots.SECTIONS,
    **groups.SECTIONS,
    **presence.SECTIONS,
    **statuses.SECTIONS,
    **channels.SECTIONS,
    **default_groups.SECTIONS,
    **folders.SECTIONS,
    **unread.SECTIONS,
    **user_topics.SECTIONS,
    **drafts.SECTIONS,
    **scheduled.SECTIONS,
    **navigation.SECTIONS,
    **calls.SECTIONS,
    **devices.SECTIONS,
    **settings.SECTIONS,
    **alert_words.SECTIONS,
    **muted_users.SECTIONS,
    **profiles.SECTIONS,
    **domains.SECTIONS,
    **linkifiers.SECTIONS,
    **playgrounds.SECTIONS,
    **emoji.SECTIONS,
    **webhooks.SECTIONS,
}
NAMED_SECTIONS: Final[Sections] = {**settings.NAMED_SECTIONS, **quiet_times.NAMED_SECTIONS}
"""Sections for clients that name their fetch types."""

_READING: Final = {section for types, section in SECTIONS.items() if READS & set(types)}


def prepare(context: SectionContext, pending: list[Section], *, reads: bool) -> None:
    """Make the fragments of the pending sections, and remove the sections that are complete.
    `reads` says whether the viewer's read state is loaded. Raises TooLongForOneStep: then call this
    again."""
    while pending:
        if reads or pending[-1] not in _READING:
            pending[-1](context)
        pending.pop()


def requested(fetch: Collection[str] | None) -> list[Section]:
    """Return the sections of the fetch types (None: all), ignoring unknown types."""
    known = SECTIONS if fetch is None else {**SECTIONS, **NAMED_SECTIONS}
    return [
        section
        for types, section in known.items()
        if fetch is None or all(name in fetch for name in types)
    ]


def fetched(
    context: SectionContext, fetch: Collection[str] | None
) -> tuple[dict[str, Any], list[Fragment]]:
    """Return the sections of the fetch types (None: all) for `fragmented`, ignoring unknown types.

    If the viewer asks for a type in `READS`, their read state has to be loaded.
    """
    data: dict[str, Any] = {
        "zulip_version": versions.SERVICE_VERSION,
        "zulip_feature_level": versions.FEATURE_LEVEL,
        "zulip_merge_base": versions.MERGE_BASE,
        "service_feature_level": versions.FEATURE_LEVEL,
    }
    fragments: list[Fragment] = []
    for section in requested(fetch):
        fields = section(context)
        if isinstance(fields, Fragment):
            fragments.append(fields)
        else:
            data |= fields
    return data, fragments
