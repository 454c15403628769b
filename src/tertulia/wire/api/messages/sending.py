"""Sending messages, typing indicators, slash commands, and reports."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from tertulia.domain import names
from tertulia.domain.accounts import navigation, personal_settings
from tertulia.domain.accounts.personal_settings import PersonalSettingsUpdate
from tertulia.domain.messages import reporting, typing
from tertulia.domain.messages.sending import Sent, ToChannel, ToPeople
from tertulia.model.errors import Refused
from tertulia.service.messages import sending
from tertulia.service.messages.reading import stored_message
from tertulia.wire.http.parameters import SAFE_INTEGER, Alias, Doc, Int, IntPath, Reads
from tertulia.wire.http.routing import ApiResponse, Call

Recipient = list[int] | list[str] | int | str
_BEGINS_JSON: Final = re.compile(r"[\s\[\"\d-]")
"""The beginning of a JSON number, list, or string."""


def _read_recipient(text: str) -> Recipient:
    """Read a name, an ID, or a JSON list of either; clients use all of these forms."""
    if "\0" in text:
        raise ValueError("it contains a null byte")
    if _BEGINS_JSON.match(text) is None:
        return text
    try:
        value: Any = msgspec.json.decode(text, type=list[int | str] | int | str)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return text
    named = value if isinstance(value, list) else [value]
    if len({type(value) for value in named}) > 1:
        raise ValueError("it must contain either only IDs or only email addresses")
    if any(
        abs(value) > SAFE_INTEGER if isinstance(value, int) else "\0" in value for value in named
    ):
        raise ValueError("it must be a valid ID or email address")
    return cast(Recipient, value)


_RECIPIENT_SCHEMA = {
    "oneOf": [
        {"type": "string"},
        {"type": "integer"},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "items": {"type": "string"}},
    ]
}

_READS_OWN = frozenset(
    {
        "zulipandroid",
        "zulipios",
        "zulipdesktop",
        "zulipmobile",
        "zulipelectron",
        "zulipterminal",
        "snipe",
        "website",
        "ios",
        "android",
    }
)
"""The names of clients that people write with. Their own messages count as read."""


class SendMessageResponse(ApiResponse, kw_only=True):
    """The ID of the new message. `automatic_new_visibility_policy` is present if sending changed
    your setting for the topic: 2 unmuted, 3 followed."""

    id: int
    automatic_new_visibility_policy: int | UnsetType = UNSET


async def send_message(
    call: Call,
    *,
    type: Annotated[
        Literal["direct", "private", "channel", "stream"],
        Doc("`direct` or `channel`; `private` and `stream` are the older names."),
    ],
    to: Annotated[
        Recipient | None,
        Reads(_read_recipient, _RECIPIENT_SCHEMA, text=True),
        Doc(
            "For a channel message, the channel's name or ID; for a direct message, a list of"
            " user IDs or email addresses."
        ),
    ] = None,
    content: Annotated[str, Doc("Markdown, at most `max_message_length` characters.")],
    topic: Annotated[str | None, Alias("subject"), Doc("Required for channel messages.")] = None,
    queue_id: Annotated[
        str | None, Doc("Your event queue, whose event gets the `local_message_id`.")
    ] = None,
    local_id: Annotated[str | None, Doc("The `local_message_id` for that event.")] = None,
    widget_content: Annotated[
        str | None, Doc("For bots: a form with choices, as JSON text.")
    ] = None,
    read_by_sender: Annotated[
        bool | None,
        Doc(
            "Whether to mark the message as read for you. The default depends on the client: true"
            " for apps that people write with."
        ),
    ] = None,
) -> SendMessageResponse:
    """Send a message to a topic in a channel, or directly to people."""
    sent = await sending.send_message(
        call,
        _destination(call, type, to, topic),
        content,
        client=call.client,
        read_by_sender=counts_as_read(call, read_by_sender),
        queue_id=queue_id,
        local_id=local_id,
        form=widget_content,
    )
    return sent_message(sent)


def sent_message(sent: Sent) -> SendMessageResponse:
    visibility = UNSET if sent.visibility is None else int(sent.visibility)
    return SendMessageResponse(id=sent.message_id, automatic_new_visibility_policy=visibility)


def counts_as_read(call: Call, asked: bool | None) -> bool:
    """Whether the message counts as read for the caller. `asked` is the request's parameter."""
    return call.client.lower() in _READS_OWN if asked is None else asked


def _destination(
    call: Call, message_type: str, to: Recipient | None, topic: str | None
) -> ToChannel | ToPeople:
    if message_type in {"direct", "private"}:
        return sending.to_people(sending.people_addressed(call, _named(to)))
    if topic is None:
        raise Refused("The topic is missing.")
    if isinstance(to, list):
        if len(to) != 1:
            raise Refused("A message can go to only one channel.")
        to = to[0]
    channel = sending.default_channel(call) if to is None or to == "" else to
    return sending.to_topic(channel, topic)


def _named(to: Recipient | None) -> Sequence[int | str]:
    """Return the IDs or addresses of the people in a recipient."""
    if isinstance(to, list):
        return to
    if isinstance(to, str):
        return [part for part in to.split(",") if part.strip()]
    return [] if to is None else [to]


async def set_typing(
    call: Call,
    op: Annotated[Literal["start", "stop"], Alias("operator")],
    type: Literal["direct", "private", "channel", "stream"] = "direct",
    to: Annotated[list[Int] | None, Doc("User IDs, for direct messages.")] = None,
    stream_id: Int | None = None,
    topic: str | None = None,
) -> None:
    """Notify the recipients of a message that you started or stopped typing it."""
    started = op == "start"
    if type in {"direct", "private"}:
        if not to:
            raise Refused("The recipients are missing: set 'to'.")
        typed = call.consider(typing.to_people, tuple(to), started)
    else:
        if stream_id is None:
            raise Refused("The channel is missing: set 'stream_id'.")
        if topic is None:
            raise Refused("The topic is missing.")
        topic = names.topic_name(topic)
        typed = call.consider(typing.in_topic, stream_id, topic, started)
    call.node.delivery.publish(typed)


async def set_typing_edit(call: Call, message_id: IntPath, op: Literal["start", "stop"]) -> None:
    """Notify the recipients of your message that you started or stopped editing it."""
    message = await stored_message(call.node, message_id)
    call.node.delivery.publish(call.consider(typing.edit, message, op == "start"))


class RenderMessageResponse(ApiResponse, kw_only=True):
    """The content as HTML."""

    rendered: str


async def render_message(
    call: Call,
    content: Annotated[str, Doc("Markdown, at most `max_message_length` characters.")],
) -> RenderMessageResponse:
    """Render Markdown as it would appear in a message."""
    content = names.message_content(content)
    return RenderMessageResponse(
        rendered=(await call.node.rendered(content, call.user.id, reach=call.reach)).html
    )


class CommandResponse(ApiResponse, kw_only=True):
    """A description of what the command did; empty for `/ping`."""

    msg: str


_SETTINGS: Final[dict[str, tuple[str, Any, str]]] = {
    "dark": ("color_scheme", 2, "Dark theme is on. To switch back, use /light."),
    "night": ("color_scheme", 2, "Dark theme is on. To switch back, use /light."),
    "light": ("color_scheme", 3, "Light theme is on. To switch back, use /dark."),
    "day": ("color_scheme", 3, "Light theme is on. To switch back, use /dark."),
    "fluid-width": ("fluid_layout_width", True, "Messages now use the full width of the window."),
    "fixed-width": ("fluid_layout_width", False, "Messages now use a limited width."),
}
"""Commands that change a personal setting: its name, its value, and the response."""


async def run_command(
    call: Call, command: Annotated[str, Doc("The command with its slash.")]
) -> CommandResponse:
    """Run a slash command."""
    slash, name = command[:1], command[1:].strip()
    if slash != "/":
        raise Refused("Commands must begin with a slash.")
    if name == "ping":
        return CommandResponse(msg="")
    if name not in _SETTINGS:
        raise Refused("This command doesn't exist.")
    setting, value, response = _SETTINGS[name]
    await call.submit(personal_settings.change, PersonalSettingsUpdate(settings={setting: value}))
    return CommandResponse(msg=response)


async def complete_onboarding_step(call: Call, onboarding_step: str) -> None:
    """Mark an onboarding step as seen."""
    await call.submit(navigation.complete_onboarding_step, onboarding_step)


async def report_message(
    call: Call,
    message_id: IntPath,
    report_type: Annotated[str, Doc("A key of `server_report_message_types` from POST /register.")],
    description: Annotated[
        str, Doc(f"At most {reporting.MAX_DESCRIPTION} characters; required for `other`.")
    ] = "",
) -> None:
    """Report a message to the moderators, in the organization's channel for reports."""
    message = await stored_message(call.node, message_id)
    await call.submit(reporting.report, call.render, message, report_type, description)
