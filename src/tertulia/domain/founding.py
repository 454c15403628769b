"""An organization's first moment: its owner, and a channel that everybody shares."""

from msgspec import Struct

from tertulia.domain import names, realms, subscribing, users
from tertulia.model.changes import AnyChange, ChannelCreated
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused
from tertulia.model.users import Bot, BotKind, Credential, User
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State


class NewOrganization(Struct, frozen=True, kw_only=True):
    """An organization to be. `credential` is its owner's, for `realms.FIRST_USER`."""

    name: str
    uuid: str
    address: str
    full_name: str
    credential: Credential
    channels: "tuple[NewChannel, ...]" = ()


class NewChannel(Struct, frozen=True, kw_only=True):
    """A public channel to be. `rendered_description` is the description's HTML."""

    name: str
    description: str = ""
    rendered_description: str = ""
    is_default: bool = False


def found(moment: Moment, new: NewOrganization) -> Decision[User]:
    """Create the organization, its owner, and the channels with the owner in them.

    Refused where there is one already, and for names and addresses that cannot be one.
    """
    decision = realms.found(moment, new.name, new.uuid, new.address, new.full_name, new.credential)
    owner = decision.result
    changes: list[AnyChange] = list(decision.changes)
    for channel_id, channel in enumerate(new.channels, 1):
        changes += _opened(moment, channel_id, channel, [owner], owner)
    return Decision(owner, changes)


def open_channel(
    moment: Moment, new: NewChannel, creator_id: int, subscriber_ids: tuple[int, ...]
) -> Decision[int]:
    """Create a channel with these subscribers, as the server. Returns its ID.

    Refused for a name that cannot be one or is taken.
    """
    state = moment.state
    if state.channel_named(new.name) is not None:
        raise Refused(f"Channel '{new.name}' already exists")
    channel_id = state.channels.next_id()
    people = [state.users[user_id] for user_id in subscriber_ids]
    return Decision(channel_id, _opened(moment, channel_id, new, people, state.users[creator_id]))


def _opened(
    moment: Moment, channel_id: int, new: NewChannel, people: list[User], creator: User
) -> list[AnyChange]:
    channel = Channel(
        id=channel_id,
        name=names.channel_name(new.name),
        description=names.channel_description(new.description),
        rendered_description=new.rendered_description,
        created_at=int(moment.now),
        creator_id=creator.id,
        is_default=new.is_default,
    )
    state: State = moment.state
    return [
        ChannelCreated(channel=channel),
        subscribing.subscribed(state, channel, people, moment.now, {}),
    ]


class NewBot(Struct, frozen=True, kw_only=True):
    """A generic bot to be. `credential` is for nobody yet (`user_id` 0)."""

    owner_id: int
    address: str
    full_name: str
    credential: Credential


def bot_address(short_name: str, host: str) -> str:
    """The address of the bot with that short name."""
    return f"{short_name.strip().removesuffix('-bot')}-bot@{host}"


def create_bot(moment: Moment, new: NewBot) -> Decision[User]:
    """Create a bot, as the server.

    Refused for names and addresses that cannot be one, for an address in use, and for an owner
    who is a bot or deactivated.
    """
    state = moment.state
    owner = state.users[new.owner_id]
    if owner.is_bot or not owner.is_active:
        raise Refused(f"'{owner.full_name}' cannot own a bot.")
    user = User(
        id=state.users.next_id(),
        address=users.free_address(state, new.address),
        full_name=names.full_name(new.full_name),
        joined_at=int(moment.now),
        bot=Bot(kind=BotKind.GENERIC, owner_id=owner.id),
    )
    return Decision(user, (users.created(state, user, new.credential, moment.now),))
