"""Finding, creating, changing, and archiving channels."""

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.channels import channels, subscriptions
from tertulia.domain.channels.channels import ChannelEdit, NewChannel
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS
from tertulia.domain.organization.lifecycle import EMAIL_GATEWAY
from tertulia.model.channels import Channel, TopicsPolicy
from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service import bulk_subscriptions
from tertulia.service.mail_in.addresses import MailAddresses, MailOptions
from tertulia.service.node import Caller
from tertulia.wire.api.channels.objects import ChannelObject, channel_object
from tertulia.wire.api.groups.objects import (
    GivenChange,
    GivenSetting,
    given_changes,
    given_settings,
)
from tertulia.wire.api.organization.objects import optional_limit
from tertulia.wire.http.parameters import Alias, Doc, Int, IntPath, Params, Path, with_optional
from tertulia.wire.http.routing import ApiResponse, Call

# Finding


class GetChannels(Params, kw_only=True, frozen=True):
    include_public: bool = True
    include_web_public: bool = False
    include_subscribed: bool = True
    exclude_archived: bool = True
    include_all: Annotated[
        bool,
        Alias("include_all_active"),
        Doc("Include all channels that you can see, whatever the other parameters."),
    ] = False
    include_default: Annotated[bool, Doc("Add `is_default` to each channel.")] = False
    include_owner_subscribed: Annotated[
        bool, Doc("For bots: include the channels their owner is subscribed to.")
    ] = False
    include_can_access_content: Annotated[
        bool, Doc("Include channels whose messages you can read.")
    ] = False


class ChannelsResponse(ApiResponse, kw_only=True):
    """Channels in ascending order of ID."""

    streams: list[ChannelObject]


async def get_streams(call: Call, params: GetChannels) -> ChannelsResponse:
    """List channels. You get those that you can see and that one of the `include_` parameters
    selects."""
    turns = call.node.fragments.turns
    return await turns.in_one_turn(call.request, lambda: _channels(call, params))


def _channels(call: Call, params: GetChannels) -> ChannelsResponse:
    selected = (
        channel
        for channel in call.state.channels
        if not (params.exclude_archived and channel.is_archived)
        and _is_selected(call, call.user, channel, params)
    )
    return ChannelsResponse(
        streams=[
            channel_object(call.state, channel, call.now, with_default=params.include_default)
            for channel in sorted(selected, key=lambda channel: channel.id)
        ]
    )


def _is_selected(call: Call, user: User, channel: Channel, params: GetChannels) -> bool:
    state = call.state
    owner_id = user.bot.owner_id if user.bot is not None else None
    if (
        user.reaches(channel.id)
        and params.include_owner_subscribed
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


class ChannelIdResponse(ApiResponse, kw_only=True):
    """The ID of a channel."""

    stream_id: int


async def get_stream_id(call: Call, stream: str) -> ChannelIdResponse:
    """Get a channel's ID by its name."""
    channel = call.state.channel_named(stream)
    if channel is None or not channel_access.sees_channel(call.state, call.user, channel):
        raise Refused(
            f"No channel named '{stream[: names.MAX_CHANNEL_NAME]}' exists, or you don't"
            " have access to it."
        )
    return ChannelIdResponse(stream_id=channel.id)


class ChannelResponse(ApiResponse, kw_only=True):
    """A channel."""

    stream: ChannelObject


async def get_stream(call: Call, stream_id: IntPath) -> ChannelResponse:
    """Get a channel, archived or not."""
    channel = channels.existing_channel(call.state, call.user, stream_id)
    return ChannelResponse(stream=channel_object(call.state, channel, call.now))


class SubscribersResponse(ApiResponse, kw_only=True):
    """The IDs of active subscribers, in ascending order."""

    subscribers: list[int]


async def get_subscribers(call: Call, stream_id: IntPath) -> SubscribersResponse:
    """List a channel's subscribers."""
    channel = channels.existing_channel(call.state, call.user, stream_id)
    if not channel_access.sees_subscribers(call.state, call.user, channel):
        raise Refused("You don't have permission to see this channel's subscribers.")
    return SubscribersResponse(subscribers=list(call.state.subscribers(channel.id)))


class ChannelEmailResponse(ApiResponse, kw_only=True):
    """The email address of a channel."""

    email: str


async def get_email_address(
    call: Call,
    stream_id: IntPath,
    sender_id: Annotated[
        Int | None,
        Doc(
            "The account that the messages are sent from: the email gateway (the default), you,"
            " or one of your bots."
        ),
    ] = None,
    show_sender: Annotated[bool, Doc("Begin each message with the sender of the email.")] = False,
    include_footer: Annotated[bool, Doc("Include signatures.")] = False,
    include_quotes: Annotated[bool, Doc("Include quoted text in replies.")] = False,
    prefer_html: Annotated[
        bool, Doc("Use the HTML part even if the email has plain text.")
    ] = False,
) -> ChannelEmailResponse:
    """Get the channel's email address. Emails to it are posted in the channel as messages from the
    sender account. The address works as long as you and that account can post in the channel, and
    until the API key of either is regenerated. It contains the options and a signature, so it can't
    be edited."""
    state, user = call.state, call.user
    channel = channels.existing_channel(state, user, stream_id)
    sender = state.users.get(EMAIL_GATEWAY if sender_id is None else sender_id)
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
    options = MailOptions(
        show_sender=show_sender,
        include_footer=include_footer,
        include_quotes=include_quotes,
        prefer_html=prefer_html,
    )
    return ChannelEmailResponse(
        email=addresses.of_channel(state, channel.id, sender, user, options)
    )


# Creating


RETENTION = optional_limit("days", channels.FOR_EVER)
TopicsPolicyName = Literal[
    "inherit", "allow_empty_topic", "disable_empty_topic", "empty_topic_only"
]


@with_optional(dict.fromkeys(CHANNEL_SETTINGS, GivenSetting | None))
class NewChannelOptions(Params, kw_only=True, frozen=True):
    announce: Annotated[
        bool, Doc("Announce the channel in the organization's channel for that purpose.")
    ] = False
    invite_only: bool = False
    is_web_public: bool = False
    is_default_stream: bool = False
    history_public_to_subscribers: Annotated[
        bool | None, Doc("True by default, unless the channel is private.")
    ] = None
    message_retention_days: Annotated[int | None, RETENTION] = None
    topics_policy: TopicsPolicyName = "inherit"
    folder_id: Int | None = None
    send_new_subscription_messages: bool = True


def new_channel(
    call: Caller, name: str, description: str | None, options: NewChannelOptions
) -> NewChannel:

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
        groups=given_settings(options, CHANNEL_SETTINGS),
        web_is_open=call.node.config.web_public_streams_enabled,
    )


class CreateChannel(NewChannelOptions, kw_only=True, frozen=True):
    name: str
    subscribers: list[Int]
    description: str = ""


class CreateChannelResponse(ApiResponse, kw_only=True):
    """The ID of the new channel."""

    id: int
    new_subscription_messages_sent: bool | UnsetType = UNSET


async def create_channel(call: Caller, params: CreateChannel) -> CreateChannelResponse:
    """Create a channel and subscribe users to it."""
    request = subscriptions.SubscribeRequest(
        channels=(new_channel(call, params.name, params.description, params),),
        principals=tuple(params.subscribers),
        announce=params.announce,
        notify_subscribed=params.send_new_subscription_messages,
        must_be_new=True,
    )
    outcome = await bulk_subscriptions.subscribe(call, request)
    (channel,) = outcome.created
    return CreateChannelResponse(
        id=channel.id,
        new_subscription_messages_sent=outcome.notified if request.notify_subscribed else UNSET,
    )


# Changing


@with_optional(dict.fromkeys(CHANNEL_SETTINGS, GivenChange))
class UpdateChannel(Params, kw_only=True, frozen=True):
    stream_id: Annotated[Int, Path()]
    description: str | UnsetType = UNSET
    new_name: str | UnsetType = UNSET
    is_private: bool | UnsetType = UNSET
    is_web_public: bool | UnsetType = UNSET
    history_public_to_subscribers: bool | UnsetType = UNSET
    is_default_stream: bool | UnsetType = UNSET
    is_archived: Annotated[
        bool | UnsetType, Doc("False unarchives the channel. To archive, use DELETE.")
    ] = UNSET
    message_retention_days: Annotated[int | UnsetType | None, RETENTION] = UNSET
    topics_policy: TopicsPolicyName | UnsetType = UNSET
    folder_id: Int | UnsetType | None = UNSET


async def update_stream(call: Caller, params: UpdateChannel) -> None:
    """Change a channel's properties and permissions. Parameters that you don't send stay the
    same."""
    if params.is_archived is True:
        raise Refused("To archive a channel, use DELETE /streams/{stream_id}.")
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
        groups=given_changes(params, CHANNEL_SETTINGS),
    )
    await call.prepare(params.description)
    await call.submit(channels.change, params.stream_id, edit, call.render)


async def archive_stream(call: Call, stream_id: IntPath) -> None:
    """Archive a channel."""
    await call.submit(channels.archive, stream_id)


async def add_default_stream(call: Call, stream_id: Int) -> None:
    """Add a channel to those that new users are subscribed to."""
    await _make_default(call, stream_id, is_default=True)


async def remove_default_stream(call: Call, stream_id: Int) -> None:
    """Remove a channel from those that new users are subscribed to."""
    await _make_default(call, stream_id, is_default=False)


async def _make_default(call: Call, channel_id: int, *, is_default: bool) -> None:
    permissions.require_administrator(call.state, call.user)
    edit = ChannelEdit(is_default=is_default)
    await call.submit(channels.change, channel_id, edit, call.render)
