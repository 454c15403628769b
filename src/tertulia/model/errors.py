"""What the domain can refuse, in its own words.

Every refusal is a `Refused`. Its subclasses carry what a caller needs to act on it; how each is
called on the wire (code, HTTP status, extra fields) is decided in `tertulia.wire.http.errors`.
"""

from typing import NamedTuple


class Refused(Exception):
    """The request cannot be done as asked. `str(refusal)` is a sentence for a person."""


class TooOften(Refused):
    """Somebody asks again and again, or for too much. `wait` is in seconds."""

    def __init__(self, wait: float, sentence: str) -> None:
        self.wait = wait
        super().__init__(sentence)


class SearchTooSlow(Refused):
    """A search takes more work than one may cost."""

    def __init__(self) -> None:
        super().__init__("This search takes too long. Narrow it down, for example to a channel.")


class NotPermitted(Refused):
    """The actor's role is too low for this kind of request."""


class NoSuchChannel(Refused):
    """The channel does not exist, or the actor may not know that it does: both look alike.

    `channel_id` or `name` is what the actor called it by.
    """

    def __init__(self, *, channel_id: int | None = None, name: str | None = None) -> None:
        self.channel_id = channel_id
        self.name = name
        called = f"channel named '{name}'" if name is not None else f"channel with ID {channel_id}"
        super().__init__(f"No {called} exists, or you don't have access to it.")


class NotAuthenticated(Refused):
    """No usable credentials came with the request."""


class WrongApiKey(Refused):
    """The API key belongs to nobody, or to somebody else."""


class WrongPassword(Refused):
    """The name or the password is wrong; which of the two is not said."""


class AccountDeactivated(Refused):
    """The credentials are right, and the account is deactivated."""


class OrganizationDeactivated(Refused):
    """The organization is deactivated: nobody can do anything in it."""


class LastOfKind(Refused):
    """The last owner, or the last user, cannot be taken away."""

    def __init__(self, *, is_last_owner: bool) -> None:
        self.is_last_owner = is_last_owner
        self.entity = "organization owner" if is_last_owner else "user"
        super().__init__(f"You can't remove the last {self.entity}.")


class BadNarrow(Refused):
    """A search term is unknown or has an operand that makes no sense. `reason` says which."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Invalid narrow operator: {reason}")


class WildcardNotAllowed(Refused):
    """A wildcard mention would reach more people than the actor may notify at once."""

    def __init__(self, *, of_topic: bool) -> None:
        self.of_topic = of_topic
        super().__init__("You don't have permission to use wildcard mentions here.")


class NoSuchItem(Refused):
    """The actor has nothing of that name or ID among what is their own (drafts, snippets, …)."""

    def __init__(self, what: str) -> None:
        super().__init__(f"This {what} doesn't exist.")


class NoSuchView(Refused):
    """The actor has no navigation view of that address."""

    def __init__(self, fragment: str) -> None:
        super().__init__(f"No navigation view with the address '{fragment[:100]}' exists.")


class NoSuchPushToken(Refused):
    """No device of the actor's is registered with that token."""

    def __init__(self) -> None:
        super().__init__("No device is registered with this token.")


class PushNotOffered(Refused):
    """The server is joined to no service that wakes phones."""

    def __init__(self) -> None:
        super().__init__("Push notifications aren't set up on this server.")


class NoSuchQueue(Refused):
    """The event queue is unknown, expired, deleted, or somebody else's: all look alike."""

    def __init__(self, queue_id: str) -> None:
        self.queue_id = queue_id
        super().__init__(f"Bad event queue ID: {queue_id}")


class SystemGroupRequired(Refused):
    """The permission `setting` takes one of the roles' groups only."""

    def __init__(self, setting: str) -> None:
        self.setting = setting
        super().__init__(f"'{setting}' must be a system group.")


class QuotaReached(Refused):
    """A person has as many things of a kind as the organization lets one person have. `quota` is
    the setting with the limit."""

    def __init__(self, quota: str, limit: int, sentence: str) -> None:
        self.quota = quota
        self.limit = limit
        super().__init__(sentence)


class UploadQuotaReached(Refused):
    """There is no room for the file: all of the organization's, or of one person's, may have so
    many bytes only. `left` are those that are not used yet."""

    def __init__(self, *, left: int, of_person: bool) -> None:
        self.of_person = of_person
        room = f"{max(left, 0) / 2**20:.1f} MiB are left"
        super().__init__(
            f"There's no room for this file: {room} of what your files, and those of your bots, can"
            " take up. Delete files that you no longer need, or ask an administrator to raise your"
            " limit."
            if of_person
            else f"The server has no room for this file: {room} for all files of the organization."
            " Delete files that nobody needs anymore, or ask the operator of the server for"
            " more space."
        )


class MayNotOpen(Refused):
    """The file is there, and the actor may not open it."""

    def __init__(self) -> None:
        super().__init__("You don't have permission to open this file.")


class GroupUse(NamedTuple):
    """Where a user group is in use: the organization, a channel, another group, or (without
    `settings`) the groups that it is in."""

    kind: str
    """`realm`, `channel`, `user_group` or `subgroup`."""
    ids: tuple[int, ...] = ()
    """The channel or the groups; none for the organization, and for a channel that the actor may
    not know of."""
    settings: tuple[str, ...] = ()


class GroupInUse(Refused):
    """The group cannot be deactivated while permissions or other groups refer to it."""

    def __init__(self, uses: tuple[GroupUse, ...]) -> None:
        self.uses = uses
        super().__init__("This group is in use, so it can't be deactivated.")


class StaleExpectation(Refused):
    """The present value is not the one that the caller expected."""


class InvitationFailed(Refused):
    """Not everybody who was named was invited.

    `errors` has the address, the reason, and whether there is a deactivated account, for each of
    those who were not. `sent` says that the others were.
    """

    def __init__(
        self, *, errors: list[tuple[str, str, bool]], sent: bool, daily_limit_reached: bool
    ) -> None:
        self.errors = errors
        self.sent = sent
        self.daily_limit_reached = daily_limit_reached
        if daily_limit_reached:
            text = (
                "This would exceed the daily limit for invitations, so no invitations were sent."
                " Try again tomorrow."
            )
        elif sent:
            text = "Some of these people already have an account. Everyone else was invited."
        else:
            text = "No invitations were sent."
        super().__init__(text)


class Unavailable(Exception):
    """The server couldn't save a change, and nothing was changed. Trying again may succeed."""


class FilesUnavailable(Unavailable):
    """Where files are kept does not answer, or refuses. `str(error)` is for the operator."""


class OutcomeUnknown(Unavailable):
    """The server does not know whether a change was made: the caller must look."""

    def __init__(self) -> None:
        super().__init__(
            "The connection to the database was lost while saving this change, so it may or"
            " may not have been saved. Check before you try again."
        )


class NoSuchMessage(Refused):
    """The message does not exist, or the actor may not read it: both look alike."""

    def __init__(self) -> None:
        super().__init__("This message doesn't exist, or you don't have access to it.")


class ReactionExists(Refused):
    """The actor reacted to the message with this emoji already."""

    def __init__(self) -> None:
        super().__init__("You've already reacted with this emoji.")


class NoSuchReaction(Refused):
    """The actor did not react to the message with this emoji."""

    def __init__(self) -> None:
        super().__init__("You haven't reacted with this emoji.")


class NotBeforeUpgrade(Refused):
    """Older nodes, which still serve beside this one, could not read what would be written."""

    def __init__(self) -> None:
        super().__init__(
            "The server is being upgraded, and this isn't possible until the upgrade"
            " finishes. Nothing was changed. Try again later."
        )


class BadImage(Refused):
    """What was uploaded is no picture that can be shown."""


class PasswordSignInDisabled(Refused):
    """The organization does not let people sign in by password."""


class TooOldToMove(Refused):
    """Some of the messages to move are older than the actor may move.

    `first_allowed` is the first message that may be moved, if there is one; `total` and `allowed`
    are how many there are in the topic, and how many of them may be moved.
    """

    def __init__(self, *, first_allowed: int | None, total: int, allowed: int) -> None:
        self.first_allowed = first_allowed
        self.total = total
        self.allowed = allowed
        super().__init__(
            f"You can move only {allowed} of the {total} messages in this topic. The others"
            " are too old."
        )


class Conflict(Refused):
    """What a command read before it decided has changed since: read again and retry."""

    def __init__(self) -> None:
        super().__init__("The messages have been changed in the meantime. Try again.")


class UnsupportedEvent(Refused):
    """An integration makes no message of such events."""

    def __init__(self, integration: str, event: str) -> None:
        self.integration = integration
        self.event = event
        super().__init__(
            f"Tertulia doesn't send messages for the {integration} event '{event[:100]}'."
        )


class NotJson(Refused):
    """The body of a webhook is no JSON."""

    def __init__(self) -> None:
        super().__init__("The request body isn't valid JSON.")


class StrangePayload(Refused):
    """The body is not what the service of the integration sends."""
