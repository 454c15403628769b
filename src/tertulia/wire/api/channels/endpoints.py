"""Channels: finding, creating, changing and archiving them."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.channels import channels, subscriptions
from tertulia.domain.channels.channels import ChannelEdit, NewChannel
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS
from tertulia.domain.organization.realms import EMAIL_GATEWAY
from tertulia.model.channels import Channel, TopicsPolicy
from tertulia.model.errors import Refused
from tertulia.model.groups import GroupSetting
from tertulia.model.users import User
from tertulia.service import bulk_subscriptions
from tertulia.service.caller import Caller
from tertulia.service.mail_in.addresses import MailAddresses, Options
from tertulia.wire.api.channels.objects import ChannelObject, channel_object
from tertulia.wire.api.groups.objects import GivenChange, GivenSetting, given_change, given_setting
from tertulia.wire.api.organization.objects import own_limit
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Alias, Int, Params, Path
from tertulia.wire.http.routing import ApiResponse

# Finding


class GetChannels(Params, kw_only=True, frozen=True):
    """Which kinds of channels to list."""

    include_public: bool = True
    include_web_public: bool = False
    include_subscribed: bool = True
    exclude_archived: bool = True
    include_all: Annotated[
        bool,
        Alias("include_all_active"),
        Meta(description="All that the caller may know of, whatever else is asked."),
    ] = False
    include_default: Annotated[bool, Meta(description="Adds is_default.")] = False
    include_owner_subscribed: Annotated[
        bool, Meta(description="For bots: those that their owner is subscribed to.")
    ] = False
    include_can_access_content: Annotated[
        bool, Meta(description="Those whose messages the caller may read.")
    ] = False


class Channels(ApiResponse, kw_only=True):
    """Channels, by ID."""

    streams: list[ChannelObject]


async def get_streams(call: Call, params: GetChannels) -> Channels:
    """The channels that the caller may know of, of the kinds asked for."""
    found = [
        channel
        for channel in call.state.channels
        if not (params.exclude_archived and channel.is_archived)
        and _is_wanted(call, call.user, channel, params)
    ]
    found.sort(key=lambda channel: channel.id)
    return Channels(
        streams=[
            channel_object(call.state, channel, call.now, with_default=params.include_default)
            for channel in found
        ]
    )


def _is_wanted(call: Call, user: User, channel: Channel, params: GetChannels) -> bool:
    state = call.state
    owner_id = user.bot.owner_id if user.bot is not None else None
    if (
        params.include_owner_subscribed
        and owner_id is not None
        and state.is_subscribed(owner_id, channel.id)
    ):
        return True
    if not channel_access.sees_channel(state, user, channel):
        return False
    return (
        params.include_all
        or (
            params.include_public
            and not channel.is_private
            and not permissions.is_guest(state, user)
        )
        or (params.include_web_public and channel.is_web_public)
        or (params.include_subscribed and state.is_subscribed(user.id, channel.id))
        or (
            params.include_can_access_content and channel_access.reads_channel(state, user, channel)
        )
    )


class GetChannelId(Params, kw_only=True, frozen=True):
    """A channel's name."""

    stream: str


class ChannelId(ApiResponse, kw_only=True):
    """A channel's ID."""

    stream_id: int


async def get_stream_id(call: Call, params: GetChannelId) -> ChannelId:
    """The ID of the channel of that name."""
    channel = call.state.channel_named(params.stream)
    if channel is None or not channel_access.sees_channel(call.state, call.user, channel):
        raise Refused(
            f"No channel named '{params.stream[: names.MAX_CHANNEL_NAME]}' exists, or you don't"
            " have access to it."
        )
    return ChannelId(stream_id=channel.id)


class OneChannel(Params, kw_only=True, frozen=True):
    """A channel."""

    stream_id: Annotated[Int, Path()]


class ChannelAnswer(ApiResponse, kw_only=True):
    """One channel."""

    stream: ChannelObject


async def get_stream(call: Call, params: OneChannel) -> ChannelAnswer:
    """One channel, archived or not."""
    channel = channels.known(call.state, call.user, params.stream_id)
    return ChannelAnswer(stream=channel_object(call.state, channel, call.now))


class Subscribers(ApiResponse, kw_only=True):
    """The IDs of active accounts, ascending."""

    subscribers: list[int]


async def get_subscribers(call: Call, params: OneChannel) -> Subscribers:
    """Who is subscribed to a channel."""
    channel = channels.known(call.state, call.user, params.stream_id)
    if not channel_access.sees_subscribers(call.state, call.user, channel):
        raise Refused("You don't have permission to see this channel's subscribers.")
    return Subscribers(subscribers=list(call.state.subscribers(channel.id)))


class GetEmailAddress(Params, kw_only=True, frozen=True):
    """A channel, and how emails to its address become messages."""

    stream_id: Annotated[Int, Path()]
    sender_id: Annotated[
        Int | None,
        Meta(
            description="The account that sends the messages: the Email Gateway (the default), the"
            " caller, or one of the caller's bots."
        ),
    ] = None
    show_sender: Annotated[
        bool, Meta(description="Begin each message with the email's sender.")
    ] = False
    include_footer: Annotated[bool, Meta(description="Include signatures.")] = False
    include_quotes: Annotated[bool, Meta(description="Include quoted text of replies.")] = False
    prefer_html: Annotated[
        bool, Meta(description="Use the email's HTML even if it has plain text.")
    ] = False


class ChannelAddress(ApiResponse, kw_only=True):
    """Where mails become messages of the channel."""

    email: str


async def get_email_address(call: Call, params: GetEmailAddress) -> ChannelAddress:
    """The channel's email address. Emails sent to it become messages of the sender, as long as the
    caller and the sender may write in the channel, and until the API key of one of them is renewed.
    The address contains the options and a proof, so that nobody can change them."""
    state, user = call.state, call.user
    channel = channels.known(state, user, params.stream_id)
    sender = state.users.get(EMAIL_GATEWAY if params.sender_id is None else params.sender_id)
    if sender is None or not (
        sender.id in {EMAIL_GATEWAY, user.id}
        or (sender.bot is not None and sender.bot.owner_id == user.id)
    ):
        raise Refused("Invalid sender.")
    permissions.require(
        channel_access.may_send_to(state, user, channel),
        "You don't have permission to send messages to this channel.",
    )
    addresses = MailAddresses(call.node.config, call.node.vault)
    if not addresses.are_taken:
        raise Refused(
            "This server doesn't accept incoming email, so channels don't have email addresses."
        )
    options = Options(
        show_sender=params.show_sender,
        include_footer=params.include_footer,
        include_quotes=params.include_quotes,
        prefer_html=params.prefer_html,
    )
    return ChannelAddress(email=addresses.of_channel(state, channel.id, sender, user, options))


# Creating


RETENTION = own_limit("days", channels.FOR_EVER)
TopicsPolicyName = Literal[
    "inherit", "allow_empty_topic", "disable_empty_topic", "empty_topic_only"
]


class NewChannelOptions(Params, kw_only=True, frozen=True):
    """How a channel is that does not exist yet."""

    announce: Annotated[
        bool, Meta(description="Tell of it in the organization's channel for that; never private.")
    ] = False
    invite_only: bool = False
    is_web_public: bool = False
    is_default_stream: bool = False
    history_public_to_subscribers: Annotated[
        bool | None, Meta(description="By default, unless the channel is private.")
    ] = None
    message_retention_days: Annotated[int | None, RETENTION] = None
    topics_policy: TopicsPolicyName = "inherit"
    folder_id: Int | None = None
    send_new_subscription_messages: bool = True
    can_add_subscribers_group: GivenSetting | None = None
    can_administer_channel_group: GivenSetting | None = None
    can_create_topic_group: GivenSetting | None = None
    can_delete_any_message_group: GivenSetting | None = None
    can_delete_own_message_group: GivenSetting | None = None
    can_move_messages_out_of_channel_group: GivenSetting | None = None
    can_move_messages_within_channel_group: GivenSetting | None = None
    can_remove_subscribers_group: GivenSetting | None = None
    can_resolve_topics_group: GivenSetting | None = None
    can_send_message_group: GivenSetting | None = None
    can_subscribe_group: GivenSetting | None = None


def new_channel(
    call: Caller, name: str, description: str | None, options: NewChannelOptions
) -> NewChannel:
    """The channel that a client asks to create."""
    given: dict[str, Any] = {setting: getattr(options, setting) for setting in CHANNEL_SETTINGS}
    groups: dict[str, GroupSetting] = {
        setting: given_setting(value) for setting, value in given.items() if value is not None
    }
    return NewChannel(
        name=name,
        description=names.channel_description(description or ""),
        is_private=options.invite_only,
        is_web_public=options.is_web_public,
        is_default=options.is_default_stream,
        history_public=options.history_public_to_subscribers,
        retention_days=options.message_retention_days,
        topics_policy=TopicsPolicy(options.topics_policy),
        folder_id=options.folder_id,
        groups=groups,
        web_is_open=call.node.config.web_public_streams_enabled,
    )


class CreateChannel(NewChannelOptions, kw_only=True, frozen=True):
    """A channel to create, and who is to be subscribed to it."""

    name: str
    subscribers: list[Int]
    description: str = ""


class CreatedChannel(ApiResponse, kw_only=True):
    """The new channel."""

    id: int
    new_subscription_messages_sent: bool | UnsetType = UNSET


async def create_channel(call: Caller, params: CreateChannel) -> CreatedChannel:
    """Create a channel with its first subscribers."""
    wanted = subscriptions.SubscribeRequest(
        channels=(new_channel(call, params.name, params.description, params),),
        principals=tuple(params.subscribers),
        announce=params.announce,
        notify_subscribed=params.send_new_subscription_messages,
        must_be_new=True,
    )
    outcome = await bulk_subscriptions.subscribe(call, wanted)
    (channel,) = outcome.created
    return CreatedChannel(
        id=channel.id,
        new_subscription_messages_sent=outcome.notified if wanted.notify_subscribed else UNSET,
    )


# Changing


class UpdateChannel(Params, kw_only=True, frozen=True):
    """New values for a channel; what is not sent stays."""

    stream_id: Annotated[Int, Path()]
    description: str | UnsetType = UNSET
    new_name: str | UnsetType = UNSET
    is_private: bool | UnsetType = UNSET
    is_web_public: bool | UnsetType = UNSET
    history_public_to_subscribers: bool | UnsetType = UNSET
    is_default_stream: bool | UnsetType = UNSET
    is_archived: Annotated[
        bool | UnsetType, Meta(description="Only false: DELETE archives a channel.")
    ] = UNSET
    message_retention_days: Annotated[int | UnsetType | None, RETENTION] = UNSET
    topics_policy: TopicsPolicyName | UnsetType = UNSET
    folder_id: Int | UnsetType | None = UNSET
    can_add_subscribers_group: GivenChange | UnsetType = UNSET
    can_administer_channel_group: GivenChange | UnsetType = UNSET
    can_create_topic_group: GivenChange | UnsetType = UNSET
    can_delete_any_message_group: GivenChange | UnsetType = UNSET
    can_delete_own_message_group: GivenChange | UnsetType = UNSET
    can_move_messages_out_of_channel_group: GivenChange | UnsetType = UNSET
    can_move_messages_within_channel_group: GivenChange | UnsetType = UNSET
    can_remove_subscribers_group: GivenChange | UnsetType = UNSET
    can_resolve_topics_group: GivenChange | UnsetType = UNSET
    can_send_message_group: GivenChange | UnsetType = UNSET
    can_subscribe_group: GivenChange | UnsetType = UNSET


async def update_stream(call: Caller, params: UpdateChannel) -> ApiResponse:
    """Change a channel."""
    if params.is_archived is True:
        raise Refused("To archive a channel, use DELETE /streams/{stream_id}.")
    given: dict[str, Any] = {setting: getattr(params, setting) for setting in CHANNEL_SETTINGS}
    policy = params.topics_policy
    edit = ChannelEdit(
        name=params.new_name,
        description=params.description,
        is_private=params.is_private,
        is_web_public=params.is_web_public,
        history_public=params.history_public_to_subscribers,
        is_default=params.is_default_stream,
        retention_days=params.message_retention_days,
        topics_policy=UNSET if policy is UNSET else TopicsPolicy(policy),
        folder_id=params.folder_id,
        unarchive=params.is_archived is False,
        web_is_open=call.node.config.web_public_streams_enabled,
        groups={
            setting: given_change(value) for setting, value in given.items() if value is not UNSET
        },
    )
    await call.prepare(params.description)
    await call.submit(channels.change, params.stream_id, edit, call.render)
    return ApiResponse()


async def archive_stream(call: Call, params: OneChannel) -> ApiResponse:
    """Archive a channel."""
    await call.submit(channels.archive, params.stream_id)
    return ApiResponse()


class DefaultChannel(Params, kw_only=True, frozen=True):
    """A channel that new users are subscribed to."""

    stream_id: Int


async def add_default_stream(call: Call, params: DefaultChannel) -> ApiResponse:
    """Subscribe new users to a channel from now on."""
    await _make_default(call, params.stream_id, is_default=True)
    return ApiResponse()


async def remove_default_stream(call: Call, params: DefaultChannel) -> ApiResponse:
    """Subscribe new users to a channel no longer."""
    await _make_default(call, params.stream_id, is_default=False)
    return ApiResponse()


async def _make_default(call: Call, channel_id: int, *, is_default: bool) -> None:
    permissions.require_administrator(call.state, call.user)
    edit = ChannelEdit(is_default=is_default)
    await call.submit(channels.change, channel_id, edit, call.render)
