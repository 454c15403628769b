"""Event queues as they are stored."""

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class Capabilities(Struct, frozen=True, kw_only=True, omit_defaults=True, cache_hash=True):
    """Client capabilities; false unless the client declares them."""

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
    """Whether the client supports this server's extensions: banners, and settings that the
    specification doesn't have."""


class Registration(Struct, frozen=True, kw_only=True, omit_defaults=True, cache_hash=True):
    """The events that a client wants, and their format."""

    event_types: tuple[str, ...] | None = None
    """None for all."""
    narrow: tuple[tuple[str, str], ...] = ()
    """Only messages that match each (operator, operand)."""
    all_public_channels: bool = False
    apply_markdown: bool = False
    client_gravatar: bool = True
    slim_presence: bool = False
    include_subscribers: str = "false"
    """`true`, `false` or `partial`."""
    capabilities: Capabilities = Capabilities()
    key_id: int | None = None
    """The access key that registered it; None for the account's own key. The queue ends when the
    key is revoked."""


class QueueRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event queue. Its events aren't stored: they are the log after `start`, projected for its
    registration."""

    id: str
    user_id: int
    registration: Registration
    start: int
    """The log's sequence number at registration."""
    created_at: UnixSeconds
    seen_at: int
    """The end of the last poll in UNIX seconds, as last stored."""
    idle_timeout: int
    """The number of seconds without a poll after which the queue expires."""
    counted_from: int | None = None
    """The entry from which event IDs are counted. None counts from the log's beginning, with gaps,
    as the first release did."""


class QueuesEnded(Change, frozen=True, tag="queues_ended"):
    """All earlier queues ended, because no events announce imported messages. Clients reload
    everything."""


class EventIdsUsedUp(Change, frozen=True, tag="event_ids_used_up"):
    """Transient events used up the IDs of the previous entry; they continue with this entry's
    IDs."""
