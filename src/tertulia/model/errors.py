"""Errors of the domain. Every refusal is a `Refused`; subclasses have the data that a caller needs
to act on it. `tertulia.wire.http.errors` gives them codes, HTTP statuses, and fields."""

from typing import NamedTuple


class Refused(Exception):
    """The request was refused. `str(refusal)` is a sentence for people."""


class TooOften(Refused):
    """A rate limit was reached. `wait` is in seconds."""

    def __init__(self, wait: float, sentence: str) -> None:
        self.wait = wait
        super().__init__(sentence)


class SearchTooSlow(Refused):
    """The search takes more work than allowed."""

    def __init__(self) -> None:
        super().__init__("This search takes too long. Narrow it down, for example to a channel.")


class NotPermitted(Refused):
    """The actor's role is too low."""


class OnlyForBots(Refused):
    """Only bots can do this."""


class KeyInsufficient(NotPermitted):
    """The access key isn't allowed to do this."""


class NoSuchChannel(Refused):
    """The channel doesn't exist, or the actor can't see it. `channel_id` or `name` is as given."""

    def __init__(self, *, channel_id: int | None = None, name: str | None = None) -> None:
        self.channel_id = channel_id
        self.name = name
        called = f"channel named '{name}'" if name is not None else f"channel with ID {channel_id}"
        super().__init__(f"No {called} exists, or you don't have access to it.")


class ChannelExists(Refused):
    """A channel with this name exists already."""

    def __init__(self, name: str) -> None:
        self.channel_name = name
        super().__init__(f"Channel '{name}' already exists.")


class NotAuthenticated(Refused):
    """The request has no usable credentials."""


class WrongApiKey(Refused):
    """The API key is unknown, or of another account."""


class WrongPassword(Refused):
    """The name or the password is wrong."""


class SecondFactorRequired(Refused):
    """The password is correct, and a second factor is required. `is_missing` means that the account
    doesn't have one, although the organization requires it."""

    def __init__(self, *, is_missing: bool = False) -> None:
        super().__init__(
            "This organization requires two-step verification. Sign in with a browser to set it up."
            if is_missing
            else "This account uses two-step verification. Also send a code from the authenticator"
            " app, or a recovery code, as the parameter 'code', or sign in with a browser."
        )


class WrongCode(Refused):
    """The code of a second factor is wrong, or was used before."""


class AccountDeactivated(Refused):
    """The credentials are correct, but the account is deactivated."""


class OrganizationDeactivated(Refused):
    pass


class LastOfKind(Refused):
    """The last owner, or the last user, can't be removed."""

    def __init__(self, *, is_last_owner: bool) -> None:
        self.is_last_owner = is_last_owner
        self.entity = "organization owner" if is_last_owner else "user"
        super().__init__(f"You can't remove the last {self.entity}.")


class BadNarrow(Refused):
    """A narrow term is unknown or has an invalid operand. `reason` explains it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Invalid narrow operator: {reason}")


class WildcardNotAllowed(Refused):
    """The actor can't use this wildcard mention."""

    def __init__(self, *, of_topic: bool) -> None:
        self.of_topic = of_topic
        super().__init__("You don't have permission to use wildcard mentions here.")


class NoSuchItem(Refused):
    """The item (a draft, a snippet, …) doesn't exist, or isn't the actor's."""

    def __init__(self, what: str) -> None:
        super().__init__(f"This {what} doesn't exist.")


class NoSuchView(Refused):
    """The actor has no navigation view with that fragment."""

    def __init__(self, fragment: str) -> None:
        super().__init__(f"No navigation view with the address '{fragment[:100]}' exists.")


class ZoomNotConnected(Refused):
    """The person hasn't connected a Zoom account, or it's no longer connected."""

    def __init__(self) -> None:
        super().__init__("Connect your Zoom account first.")


class NoSuchPushToken(Refused):
    """None of the actor's devices has that token."""

    def __init__(self) -> None:
        super().__init__("No device is registered with this token.")


class PushNotOffered(Refused):
    """The server doesn't send unencrypted push notifications to phones."""

    def __init__(self) -> None:
        super().__init__("This server doesn't send unencrypted push notifications.")


class PushBouncerMissing(Refused):
    """The server has no push bouncer, so it can't send push notifications to phones."""

    def __init__(self) -> None:
        super().__init__("This server isn't set up to send push notifications to phones.")


class NoActivePhone(Refused):
    """The actor has no device that the push bouncer knows, or the device in question isn't one."""

    def __init__(self) -> None:
        super().__init__("None of your devices is registered for push notifications.")


class PushBouncerFailed(Refused):
    """The push bouncer failed or refused the request."""


class PushBouncerUnreachable(PushBouncerFailed):
    def __init__(self) -> None:
        super().__init__("The push notification service can't be reached. Try again later.")


class PushBouncerDown(PushBouncerFailed):
    def __init__(self) -> None:
        super().__init__("The push notification service returned an error. Try again later.")


class PushBouncerRejects(PushBouncerFailed):
    """The push bouncer doesn't accept this server or this organization."""

    def __init__(self) -> None:
        super().__init__(
            "The push notification service doesn't accept this server. Ask an administrator to"
            " check its settings."
        )


class NoSuchQueue(Refused):
    """The event queue is unknown, expired, deleted, or someone else's."""

    def __init__(self, queue_id: str) -> None:
        self.queue_id = queue_id
        super().__init__(f"Bad event queue ID: {queue_id}")


class SystemGroupRequired(Refused):
    """The permission `setting` accepts only system groups."""

    def __init__(self, setting: str) -> None:
        self.setting = setting
        super().__init__(f"'{setting}' must be a system group.")


class QuotaReached(Refused):
    """A person has reached the limit in the organization's setting `quota`."""

    def __init__(self, quota: str, limit: int, sentence: str) -> None:
        self.quota = quota
        self.limit = limit
        super().__init__(sentence)


class UploadQuotaReached(Refused):
    """The file exceeds the limit for the person's files, or for all files. `left` is in bytes."""

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
    """The file exists, but the actor can't open it."""

    def __init__(self) -> None:
        super().__init__("You don't have permission to open this file.")


class GroupUse(NamedTuple):
    """A use of a user group: by the organization, a channel, another group, or (without `settings`)
    groups that contain it."""

    kind: str
    """`realm`, `channel`, `user_group` or `subgroup`."""
    ids: tuple[int, ...] = ()
    """The channel or groups; empty for the organization, and for a channel that the actor can't
    see."""
    settings: tuple[str, ...] = ()


class GroupInUse(Refused):
    """The group can't be deactivated while permissions or other groups refer to it."""

    def __init__(self, uses: tuple[GroupUse, ...]) -> None:
        self.uses = uses
        super().__init__("This group is in use, so it can't be deactivated.")


class StaleExpectation(Refused):
    """The current value isn't the one that the client expected."""


class InvitationFailed(Refused):
    """Some people weren't invited. `errors` has the address, the reason, and whether a deactivated
    account exists, for each of them. `sent` means that the others were invited."""

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
    """The server couldn't save a change, and nothing changed. Retrying may succeed."""


class FilesUnavailable(Unavailable):
    """The file storage doesn't respond, or refuses the request. `str(error)` is for the
    operator."""


class OutcomeUnknown(Unavailable):
    """The server doesn't know whether a change was saved."""

    def __init__(self) -> None:
        super().__init__(
            "The connection to the database was lost while saving this change, so it may or"
            " may not have been saved. Check before you try again."
        )


class NoSuchMessage(Refused):
    """The message doesn't exist, or the actor can't read it."""

    def __init__(self) -> None:
        super().__init__("This message doesn't exist, or you don't have access to it.")


class ReactionExists(Refused):
    def __init__(self) -> None:
        super().__init__("You've already reacted with this emoji.")


class NoSuchReaction(Refused):
    def __init__(self) -> None:
        super().__init__("You haven't reacted with this emoji.")


class NotBeforeUpgrade(Refused):
    """Older nodes are still running, and couldn't read the change."""

    def __init__(self) -> None:
        super().__init__(
            "The server is being upgraded, and this isn't possible until the upgrade"
            " finishes. Nothing was changed. Try again later."
        )


class BadImage(Refused):
    """The upload isn't an image that can be displayed."""


class PasswordSignInDisabled(Refused):
    """The organization doesn't allow signing in with a password."""


class TooOldToMove(Refused):
    """Some messages are too old for the actor to move.

    `first_allowed` is the first message that can be moved, if any; of `total` messages in the
    topic, `allowed` can be moved.
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
    """Data that a command has read was changed in the meantime: read it again and retry."""

    def __init__(self) -> None:
        super().__init__("The messages have been changed in the meantime. Try again.")


class UnsupportedEvent(Refused):
    """The integration has no message for this kind of event."""

    def __init__(self, integration: str, event: str) -> None:
        self.integration = integration
        self.event = event
        super().__init__(
            f"Tertulia doesn't send messages for the {integration} event '{event[:100]}'."
        )


class NotJson(Refused):
    """The body of a webhook isn't JSON."""

    def __init__(self) -> None:
        super().__init__("The request body isn't valid JSON.")


class StrangePayload(Refused):
    """The body doesn't have the format that the integration's service sends."""
