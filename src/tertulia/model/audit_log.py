"""Records of the audit log: who did what to whom, and from where."""

from typing import Any, Literal

from msgspec import Struct

Way = Literal["session", "api_key", "access_key", "page", "directory", "command_line", "server"]
"""How a request was authenticated: by a browser session, the account's API key, or an access key.
`page` means not yet, such as when a password is entered, and `directory` a directory service's
token. The operator's command line and the server's own jobs need no authentication."""


AuditKind = Literal[
    # Signing in, and keys
    "signed_in",
    "sign_in_failed",
    "key_refused",
    "sessions_ended",
    "password_changed",
    "password_removed",
    "api_key_changed",
    "key_created",
    "keys_revoked",
    "second_factor_added",
    "second_factors_removed",
    "recovery_codes_changed",
    "recovery_code_used",
    "identity_linked",
    "identities_unlinked",
    "address_change_requested",
    # Accounts
    "account_created",
    "account_changed",
    "role_changed",
    "account_deactivated",
    "account_reactivated",
    "account_erased",
    # The organization
    "organization_created",
    "settings_changed",
    "default_settings_changed",
    "organization_deactivated",
    "organization_reactivated",
    "event_queues_ended",
    "domain_added",
    "domain_changed",
    "domain_removed",
    "invited",
    "invitation_link_created",
    "invitation_link_changed",
    "invitation_used",
    "invitation_revoked",
    "export_requested",
    "export_finished",
    "export_deleted",
    "import_requested",
    "import_checked",
    "import_started",
    "import_finished",
    "import_failed",
    "import_canceled",
    "audit_log_exported",
    # Channels, groups, and deletions
    "channel_created",
    "channel_changed",
    "channel_archived",
    "channel_members_added",
    "channel_members_removed",
    "group_created",
    "group_changed",
    "group_members_added",
    "group_members_removed",
    "messages_deleted",
    "file_deleted",
]
"""The kinds of recorded actions."""


class Origin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The origin of an action."""

    way: Way = "server"
    address: str = ""
    """The client's IP address."""
    agent: str = ""
    """The client's user agent."""
    session_id: int | None = None
    key_id: int | None = None
    """The access key."""
    command: str = ""
    """The operator's command, such as `tertulia users erase`."""


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recorded action. It contains no names of people, and no content of messages."""

    kind: str
    """An `AuditKind`, of any version."""
    at: float
    """UNIX seconds."""
    actor_id: int | None = None
    """The account that acted; None for the server and for people who aren't signed in."""
    user_id: int | None = None
    """The account that was affected."""
    origin: Origin = Origin()
    details: dict[str, Any] = {}
    """Details by name; see `state/audit_log.py`. Personal data is in `addresses`, and in `changes`
    of names and addresses."""
