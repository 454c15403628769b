"""Event queues."""

from tertulia.model.changes.base import Change


class EventIdsUsedUp(Change, frozen=True, tag="event_ids_used_up"):
    """Nothing happened, but for events that are not in the log: they have used up the IDs that each
    entry has for them, and go on with those of this one."""
