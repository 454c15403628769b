"""Event queues as they are kept: who reads, how, and from where in the log."""

from msgspec import Struct

from tertulia.model.change import Change


class Capabilities(Struct, frozen=True, kw_only=True, omit_defaults=True, cache_hash=True):
    """What a client says it understands; everything it does not say, it does not."""

    notification_settings_null: bool = False
    bulk_message_deletion: bool = False
    user_avatar_url_field_optional: bool = False
    channel_typing_notifications: bool = False
    linkifier_url_template: bool = False
    user_list_incomplete: bool = False
    include_deactivated_groups: bool = False
    archived_channels: bool = False
    empty_topic_name: bool = False
    simplified_presence_events: bool = False
    individual_emoji_changes: bool = False
    server_extensions: bool = False
    """Of this server alone: banners, and settings of the organization that the reference lacks."""


class Registration(Struct, frozen=True, kw_only=True, omit_defaults=True, cache_hash=True):
    """What events a client wants, and in which form. Its hash is asked for with every event."""

    event_types: tuple[str, ...] | None = None
    """None is all of them."""
    narrow: tuple[tuple[str, str], ...] = ()
    """Only messages for which each (operator, operand) holds."""
    all_public_channels: bool = False
    apply_markdown: bool = False
    client_gravatar: bool = True
    slim_presence: bool = False
    include_subscribers: str = "false"
    """`true`, `false` or `partial`."""
    capabilities: Capabilities = Capabilities()


class QueueRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event queue. Its events are not kept: they are the log after `start`, as its
    registration looks at them."""

    id: str
    user_id: int
    registration: Registration
    start: int
    """The log's sequence number at registration."""
    created_at: int
    """UNIX seconds."""
    seen_at: int
    """UNIX seconds of the last poll's end, as last stored."""
    idle_timeout: int
    """Seconds without a poll after which the queue is gone."""
    counted_from: int | None = None
    """The entry from which the IDs of its events are counted. None: from the log's beginning, with
    much room, as the first release did."""


class EventIdsUsedUp(Change, frozen=True, tag="event_ids_used_up"):
    """Nothing happened, but for events that are not in the log: they have used up the IDs that each
    entry has for them, and go on with those of this one."""
