"""Sending messages, typing indicators, slash commands, and reports."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tertulia.domain import names
from tertulia.domain.accounts import navigation, personal_settings
from tertulia.domain.accounts.personal_settings import PersonalSettingsUpdate
from tertulia.domain.messages import reporting, typing
from tertulia.domain.messages.sending import Sent, ToChannel, ToPeople
from tertulia.model.errors import Refused
from tertulia.service.messages import sending
from tertulia.service.messages.reading import stored_message
from tertulia.wire.http.parameters import SAFE_INTEGER, Alias, Int, Params, Path, Reads
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
    if len({type(one) for one in named}) > 1:
        raise ValueError("it must contain either only IDs or only email addresses")
    if any(abs(one) > SAFE_INTEGER if isinstance(one, int) else "\0" in one for one in named):
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
"""Clients that people write with: their messages are marked as read by the sender."""


class SendMessage(Params, kw_only=True, frozen=True):
    type: Annotated[
        Literal["direct", "private", "channel", "stream"],
        Meta(description="`direct` or `channel`; `private` and `stream` are the older names."),
    ]
    to: Annotated[
        Recipient | None,
        Reads(_read_recipient, _RECIPIENT_SCHEMA, text=True),
        Meta(
            description="For a channel message, the channel's name or ID; for a direct message, a"
            " list of user IDs or email addresses."
        ),
    ] = None
    content: Annotated[str, Meta(description="Markdown, at most `max_message_length` characters.")]
    topic: Annotated[
        str | None, Alias("subject"), Meta(description="Required for channel messages.")
    ] = None
    queue_id: Annotated[
        str | None, Meta(description="Your event queue, whose event gets the `local_message_id`.")
    ] = None
    local_id: Annotated[str | None, Meta(description="The `local_message_id` for that event.")] = (
        None
    )
    widget_content: Annotated[
        str | None, Meta(description="For bots: a form with choices, as JSON text.")
    ] = None
    read_by_sender: Annotated[
        bool | None,
        Meta(
            description="Whether to mark the message as read for you. The default depends on the"
            " client: true for apps that people write with."
        ),
    ] = None


class SendMessageResponse(ApiResponse, kw_only=True):
    """The ID of the new message. `automatic_new_visibility_policy` is present if sending changed
    your setting for the topic: 2 unmuted, 3 followed."""

    id: int
    automatic_new_visibility_policy: int | UnsetType = UNSET


async def send_message(call: Call, params: SendMessage) -> SendMessageResponse:
    """Send a message to a topic in a channel, or directly to people."""
    sent = await sending.send_message(
        call,
        _destination(call, params),
        params.content,
        client=call.client,
        read_by_sender=counts_as_read(call, params.read_by_sender),
        queue_id=params.queue_id,
        local_id=params.local_id,
        form=params.widget_content,
    )
    return sent_message(sent)


def sent_message(sent: Sent) -> SendMessageResponse:
    visibility = UNSET if sent.visibility is None else int(sent.visibility)
    return SendMessageResponse(id=sent.message_id, automatic_new_visibility_policy=visibility)


def counts_as_read(call: Call, asked: bool | None) -> bool:
    """Whether the message is marked as read for the caller; `asked` if the request says so."""
    return call.client.lower() in _READS_OWN if asked is None else asked


def _destination(call: Call, params: SendMessage) -> ToChannel | ToPeople:
    to = params.to
    if params.type in {"direct", "private"}:
        return sending.to_people(sending.people_addressed(call, _named(to)))
    if params.topic is None:
        raise Refused("The topic is missing.")
    if isinstance(to, list):
        if len(to) != 1:
            raise Refused("A message can go to only one channel.")
        to = to[0]
    channel = sending.default_channel(call) if to is None or to == "" else to
    return sending.to_topic(channel, params.topic)


def _named(to: Recipient | None) -> Sequence[int | str]:
    """Return the IDs or addresses of the people in a recipient."""
    if isinstance(to, list):
        return to
    if isinstance(to, str):
        return [part for part in to.split(",") if part.strip()]
    return [] if to is None else [to]


class SetTyping(Params, kw_only=True, frozen=True):
    op: Annotated[Literal["start", "stop"], Alias("operator")]
    type: Literal["direct", "private", "channel", "stream"] = "direct"
    to: Annotated[list[Int] | None, Meta(description="User IDs, for direct messages.")] = None
    stream_id: Int | None = None
    topic: str | None = None


async def set_typing(call: Call, params: SetTyping) -> None:
    """Notify the recipients of a message that you started or stopped typing it."""
    started = params.op == "start"
    if params.type in {"direct", "private"}:
        if not params.to:
            raise Refused("The recipients are missing: set 'to'.")
        typed = call.consider(typing.to_people, tuple(params.to), started)
    else:
        if params.stream_id is None:
            raise Refused("The channel is missing: set 'stream_id'.")
        if params.topic is None:
            raise Refused("The topic is missing.")
        topic = names.topic_name(params.topic)
        typed = call.consider(typing.in_topic, params.stream_id, topic, started)
    call.node.delivery.publish(typed)


class SetTypingEdit(Params, kw_only=True, frozen=True):
    message_id: Annotated[Int, Path()]
    op: Literal["start", "stop"]


async def set_typing_edit(call: Call, params: SetTypingEdit) -> None:
    """Notify the recipients of your message that you started or stopped editing it."""
    message = await stored_message(call.node, params.message_id)
    call.node.delivery.publish(call.consider(typing.edit, message, params.op == "start"))


class RenderMessage(Params, kw_only=True, frozen=True):
    content: Annotated[str, Meta(description="Markdown, at most `max_message_length` characters.")]


class RenderMessageResponse(ApiResponse, kw_only=True):
    """The content as HTML."""

    rendered: str


async def render_message(call: Call, params: RenderMessage) -> RenderMessageResponse:
    """Render Markdown as it would appear in a message."""
    content = names.message_content(params.content)
    return RenderMessageResponse(rendered=(await call.node.rendered(content, call.user.id)).html)


class RunCommand(Params, kw_only=True, frozen=True):
    command: Annotated[str, Meta(description="The command with its slash.")]


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


async def run_command(call: Call, params: RunCommand) -> CommandResponse:
    """Run a slash command."""
    slash, name = params.command[:1], params.command[1:].strip()
    if slash != "/":
        raise Refused("Commands must begin with a slash.")
    if name == "ping":
        return CommandResponse(msg="")
    if name not in _SETTINGS:
        raise Refused("This command doesn't exist.")
    setting, value, response = _SETTINGS[name]
    await call.submit(personal_settings.change, PersonalSettingsUpdate(settings={setting: value}))
    return CommandResponse(msg=response)


class CompleteOnboardingStep(Params, kw_only=True, frozen=True):
    onboarding_step: str


async def complete_onboarding_step(call: Call, params: CompleteOnboardingStep) -> None:
    """Mark an onboarding step as seen."""
    await call.submit(navigation.complete_onboarding_step, params.onboarding_step)


class ReportMessage(Params, kw_only=True, frozen=True):
    message_id: Annotated[Int, Path()]
    report_type: Annotated[
        str, Meta(description="A key of `server_report_message_types` from POST /register.")
    ]
    description: Annotated[
        str,
        Meta(description=f"At most {reporting.MAX_DESCRIPTION} characters; required for `other`."),
    ] = ""


async def report_message(call: Call, params: ReportMessage) -> None:
    """Report a message to the moderators, in the organization's channel for reports."""
    message = await stored_message(call.node, params.message_id)
    await call.submit(
        reporting.report, call.render, message, params.report_type, params.description
    )
