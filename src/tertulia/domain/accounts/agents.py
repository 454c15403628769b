"""Keys of agents that act for people, and what each agent can do.

An agent can do what its owner can do now, within the reach of its key. Only this module checks
reaches.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.accounts import users
from tertulia.model.agents import AgentKey, Reach
from tertulia.model.changes import AgentKeyMade, AgentKeysEnded, AgentKeyUsed
from tertulia.model.channels import Channel
from tertulia.model.errors import NoSuchChannel, NoSuchItem, NotPermitted, Refused, WrongApiKey
from tertulia.model.mail import MailKind
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision, Verb
from tertulia.state.state import State

MAX_KEYS: Final = 50
"""Per account."""
MAX_NAME: Final = 24
MAX_CHANNELS: Final = 200
"""Per key."""
USE_SECONDS: Final = 600
"""A key's use is stored at most this often, so that requests don't need a commit."""


class AgentCapability(Enum):
    """What an action needs besides reading within the key's reach."""

    WRITE = auto()
    DIRECTS = auto()


class NewAgent(Struct, frozen=True, kw_only=True):
    name: str
    digest: str
    """Of its key, as in `AgentKey`."""
    may_write: bool
    channel_ids: Sequence[int] | None
    directs: bool
    site: str
    """The server's URL, for the email about it."""


def create(context: CommandContext, new: NewAgent) -> Decision[AgentKey]:
    """Let an agent act for the actor, who gets an email about it.

    Raise NotPermitted for bots; NoSuchChannel for channels that the actor can't see; Refused for an
    invalid or taken name, too many keys, and a key that reaches nothing.
    """
    state, actor = context.state, context.actor
    users.require_person(actor)
    own = state.agent_keys.of_user[actor.id]
    if len(own) >= MAX_KEYS:
        raise Refused(f"You can have keys for at most {MAX_KEYS} agents.")
    name = _name(new.name)
    if any(key.name.casefold() == name.casefold() for key in own):
        raise Refused("You already have an agent with this name.")
    channel_ids = None if new.channel_ids is None else tuple(sorted(set(new.channel_ids)))
    if channel_ids is not None:
        if len(channel_ids) > MAX_CHANNELS:
            raise Refused(f"An agent key can list at most {MAX_CHANNELS} channels.")
        for channel_id in channel_ids:
            channel_access.visible_channel(state, actor, channel_id=channel_id)
        if not channel_ids and not new.directs:
            raise Refused(
                "The agent wouldn't see anything. List at least one channel, or give it access"
                " to direct messages."
            )
    key = AgentKey(
        id=state.agent_keys.next_id(),
        user_id=actor.id,
        name=name,
        digest=new.digest,
        reach=Reach(may_write=new.may_write, channel_ids=channel_ids, directs=new.directs),
        created_at=int(context.now),
    )
    mails = users.emails_to(MailKind.AGENT_KEY_MADE, actor, new.site, agent=name)
    return Decision(key, (AgentKeyMade(key=key),), mails)


def _name(text: str) -> str:
    name = text.strip()
    if not name or len(name) > MAX_NAME or not names.is_plain(name):
        raise Refused(f"An agent's name must have 1 to {MAX_NAME} visible characters.")
    return name


def listed(context: CommandContext, user_id: int | None = None) -> Decision[list[AgentKey]]:
    """Return the keys of the actor's agents, or of an account that the actor manages, newest first.
    Raise Refused for other accounts."""
    whose = context.actor.id
    if user_id is not None and user_id != whose:
        whose = users.managed_user(context, user_id).id
    found = context.state.agent_keys.of_user[whose]
    return Decision(sorted(found, key=lambda key: -key.id))


def end(context: CommandContext, key_id: int) -> Decision[None]:
    """Revoke a key of the actor, or of an account that the actor manages. Raise NoSuchItem for
    others."""
    state, actor = context.state, context.actor
    key = state.agent_keys.get(key_id)
    if key is None or not (
        key.user_id == actor.id
        or (
            permissions.sees_user(state, actor, state.users[key.user_id])
            and permissions.manages_account(state, actor, state.users[key.user_id])
        )
    ):
        raise NoSuchItem("agent")
    return Decision(None, (AgentKeysEnded(user_id=key.user_id, key_ids=(key.id,)),))


# What an agent does


def use(context: CommandContext, key_id: int) -> Decision[None]:
    """Note that the key is used, unless that was noted recently."""
    key = context.state.agent_keys.get(key_id)
    if key is None or not is_stale(key, context.now):
        return Decision(None)
    return Decision(None, (AgentKeyUsed(key_id=key.id, at=int(context.now)),))


def is_stale(key: AgentKey, now: float) -> bool:
    """Whether a use of the key would be stored."""
    return now - key.used_at >= USE_SECONDS


def run_as_agent(
    context: CommandContext,
    key_id: int,
    needs: frozenset[AgentCapability],
    verb: Verb[Any],
    *arguments: Any,
) -> Decision[Any]:
    """Return the verb's decision if the agent can do now what needs these capabilities."""
    require(current_key(context.state, key_id), needs)
    return verb(context, *arguments)


def current_key(state: State, key_id: int) -> AgentKey:
    """Return the key as it is now. Raise WrongApiKey if it was revoked."""
    key = state.agent_keys.get(key_id)
    if key is None or not state.users[key.user_id].is_active:
        raise WrongApiKey("This agent key is no longer valid.")
    return key


def allows(reach: Reach, needs: frozenset[AgentCapability]) -> bool:
    """Whether a key with that reach has these capabilities. Unknown ones are denied."""
    granted = {AgentCapability.WRITE: reach.may_write, AgentCapability.DIRECTS: reach.directs}
    return all(granted.get(need, False) for need in needs)


def require(key: AgentKey, needs: frozenset[AgentCapability]) -> None:
    """Raise NotPermitted unless the key has these capabilities."""
    if not allows(key.reach, needs):
        is_about_writing = AgentCapability.WRITE in needs and not key.reach.may_write
        what = "change anything" if is_about_writing else "read direct messages"
        raise NotPermitted(f"This agent key isn't allowed to {what}.")


def reached_channels(state: State, owner: User, reach: Reach) -> list[Channel]:
    """Return the channels that the agent can see, by ascending ID."""
    seen = channel_access.channels_seen(state, owner)
    return [channel for channel in seen if reach.reaches(channel.id)]


def reached_channel(state: State, owner: User, reach: Reach, channel_id: int) -> Channel:
    """Return the channel with that ID. Raise NoSuchChannel if the agent can't see it."""
    if not reach.reaches(channel_id):
        raise NoSuchChannel(channel_id=channel_id)
    return channel_access.visible_channel(state, owner, channel_id=channel_id)


def reached_people(state: State, owner: User, reach: Reach) -> list[User]:
    """Return the accounts that the agent can see, by ascending ID: those that its owner can see; if
    its key is limited to channels, only the owner and their subscribers."""
    seen = permissions.users_seen(state, owner)
    if reach.channel_ids is None or reach.directs:
        return seen
    known = {owner.id}
    for channel in reached_channels(state, owner, reach):
        if channel_access.sees_subscribers(state, owner, channel):
            known.update(state.subscribers(channel.id))
    return [user for user in seen if user.id in known]
