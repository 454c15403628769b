"""Access keys of devices, programs, and agents, and their rights. A key can do what its owner can
do now, limited by its access and its reach. Both are checked only in this module."""

from collections.abc import Collection, Sequence
from enum import Enum, auto
from itertools import count
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.accounts import users
from tertulia.model.access_keys import AccessKey, KeyAccess, Reach
from tertulia.model.changes import AccessKeyMade, AccessKeysEnded, AccessKeyUsed
from tertulia.model.channels import Channel
from tertulia.model.errors import KeyInsufficient, NoSuchChannel, NoSuchItem, Refused, WrongApiKey
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


class KeyCapability(Enum):
    """A capability that an action requires, in addition to reading within the key's reach."""

    ACCOUNT = auto()
    """Managing keys, sessions, and anything else that gives access to the account. No key has
    it."""
    FULL = auto()
    """Changing anything other than the owner's work with messages."""
    WRITE = auto()
    """Sending, editing, and marking messages, reacting to them, and saving drafts."""
    EVERYTHING = auto()
    """Seeing everything that the owner sees."""
    DIRECTS = auto()


Needs = frozenset[KeyCapability]
NOTHING: Final[Needs] = frozenset()
"""Reading within the key's reach."""
NO_KEYS: Final[Needs] = frozenset({KeyCapability.ACCOUNT})

_NOT_ALLOWED: Final = {
    KeyCapability.ACCOUNT: "This can't be done with an access key. Sign in to do it.",
    KeyCapability.FULL: "This requires a key with full access.",
    KeyCapability.WRITE: "This key is read-only, so it can't change anything.",
    KeyCapability.EVERYTHING: "This key is limited to some channels or without direct messages, and"
    " can't be used for this.",
    KeyCapability.DIRECTS: "This key isn't allowed to read direct messages.",
}


class NewKey(Struct, frozen=True, kw_only=True):
    name: str
    digest: str
    """The key's digest, as in `AccessKey`."""
    access: KeyAccess
    channel_ids: Sequence[int] | None
    directs: bool
    opens_api: bool
    expires_at: int = 0
    """UNIX seconds; 0 for never."""
    site: str
    """The server's URL, for the email about it."""


def create(context: CommandContext, new: NewKey) -> Decision[AccessKey]:
    """Create a key that acts for the actor, and email them about it.

    Raise NotPermitted for bots; NoSuchChannel for channels that the actor can't see; Refused for an
    invalid or taken name, too many keys, an expiry in the past, and a key that reaches nothing.
    """
    state, actor = context.state, context.actor
    users.require_person(actor)
    access_keys = state.access_keys.of_user[actor.id]
    if len(access_keys) >= MAX_KEYS:
        raise Refused(f"You can have at most {MAX_KEYS} keys. Revoke one that you no longer use.")
    name = _name(new.name)
    if any(key.name.casefold() == name.casefold() for key in access_keys):
        raise Refused("You already have a key or an agent with this name.")
    if new.expires_at and new.expires_at <= context.now:
        raise Refused("The key would already be expired.")
    channel_ids = None if new.channel_ids is None else tuple(sorted(set(new.channel_ids)))
    if channel_ids is not None:
        if len(channel_ids) > MAX_CHANNELS:
            raise Refused(f"A key can list at most {MAX_CHANNELS} channels.")
        for channel_id in channel_ids:
            channel_access.visible_channel(state, actor, channel_id=channel_id)
        if not channel_ids and not new.directs:
            raise Refused(
                "The key wouldn't have access to anything. List at least one channel, or give it"
                " access to direct messages."
            )
    key = _key(context, new, name, channel_ids)
    mails = users.emails_to(MailKind.AGENT_KEY_MADE, actor, new.site, agent=name)
    return Decision(key, (AccessKeyMade(key=key),), mails)


def create_for_client(context: CommandContext, agent: str, digest: str) -> Decision[AccessKey]:
    """Create a key with full access for a client that the actor signs in with, named after its
    User-Agent header. `digest` is the key's digest.

    If the account has too many keys, the least recently used client's key is revoked. Raise Refused
    if no client has one.
    """
    access_keys = context.state.access_keys.of_user[context.actor.id]
    ended: list[AccessKeysEnded] = []
    if len(access_keys) >= MAX_KEYS:
        of_clients = [key for key in access_keys if key.is_of_client]
        if not of_clients:
            raise Refused(f"You have {MAX_KEYS} keys. Revoke one that you no longer use.")
        oldest = min(of_clients, key=lambda key: (max(key.used_at, key.created_at), key.id))
        ended.append(AccessKeysEnded(user_id=oldest.user_id, key_ids=(oldest.id,)))
    key = AccessKey(
        id=context.state.access_keys.next_id(),
        user_id=context.actor.id,
        name=_client_name(agent, {key.name.casefold() for key in access_keys}),
        digest=digest,
        reach=Reach(may_write=True, channel_ids=None, directs=True),
        created_at=int(context.now),
        is_full=True,
        opens_api=True,
        is_of_client=True,
    )
    return Decision(key, (*ended, AccessKeyMade(key=key)))


def _client_name(agent: str, taken: Collection[str]) -> str:
    """Return a name for the client that isn't taken: `ZulipMobile`, `ZulipMobile 2`."""
    product = "".join(filter(str.isprintable, agent.partition("/")[0])).strip()
    if not product or not names.is_plain(product):
        product = "App"
    numbered = (product[:18] if n == 1 else f"{product[:18].strip()} {n}" for n in count(1))
    return next(name for name in numbered if name.casefold() not in taken)


def _key(
    context: CommandContext, new: NewKey, name: str, channel_ids: tuple[int, ...] | None
) -> AccessKey:
    may_write = new.access is not KeyAccess.READ
    return AccessKey(
        id=context.state.access_keys.next_id(),
        user_id=context.actor.id,
        name=name,
        digest=new.digest,
        reach=Reach(may_write=may_write, channel_ids=channel_ids, directs=new.directs),
        created_at=int(context.now),
        is_full=new.access is KeyAccess.FULL,
        opens_api=new.opens_api,
        expires_at=new.expires_at,
    )


def _name(text: str) -> str:
    name = text.strip()
    if not name or len(name) > MAX_NAME or not names.is_plain(name):
        raise Refused(f"A key's name must have 1 to {MAX_NAME} visible characters.")
    return name


def list_keys(context: CommandContext, user_id: int | None = None) -> Decision[list[AccessKey]]:
    """Return the actor's keys, or those of an account that the actor manages, newest first. Raise
    Refused for other accounts."""
    whose = context.actor.id
    if user_id is not None and user_id != whose:
        whose = users.managed_user(context, user_id).id
    access_keys = context.state.access_keys.of_user[whose]
    return Decision(sorted(access_keys, key=lambda key: -key.id))


def end(context: CommandContext, key_id: int) -> Decision[None]:
    """Revoke a key of the actor, or of an account that the actor manages. Raise NoSuchItem for
    others."""
    state, actor = context.state, context.actor
    key = state.access_keys.get(key_id)
    if key is None or not (
        key.user_id == actor.id
        or (
            permissions.sees_user(state, actor, state.users[key.user_id])
            and permissions.manages_account(state, actor, state.users[key.user_id])
        )
    ):
        raise NoSuchItem("key")
    return Decision(None, (AccessKeysEnded(user_id=key.user_id, key_ids=(key.id,)),))


def next_expiry(state: State, now: float) -> float | None:
    """Return the UNIX time at which the next key expires."""
    first = state.access_keys.by_expiry.first
    return None if first is None else first.expires_at


def expire(context: CommandContext) -> Decision[None]:
    """End expired keys."""
    over: dict[int, list[int]] = {}
    for key in context.state.access_keys:
        if not key.lasts(context.now):
            over.setdefault(key.user_id, []).append(key.id)
    changes = [
        AccessKeysEnded(user_id=user_id, key_ids=tuple(ids)) for user_id, ids in over.items()
    ]
    return Decision(None, changes)


# What a key does


def use(context: CommandContext, key_id: int, address: str = "") -> Decision[None]:
    """Record that the key was used from this network address, unless a recent use is already
    recorded."""
    key = context.state.access_keys.get(key_id)
    if key is None or not is_stale(key, context.now):
        return Decision(None)
    return Decision(None, (AccessKeyUsed(key_id=key.id, at=int(context.now), address=address),))


def is_stale(key: AccessKey, now: float) -> bool:
    """Whether the last recorded use is old enough that the next one is recorded."""
    return now - key.used_at >= USE_SECONDS


def run_with_key(
    context: CommandContext, key_id: int, needs: Needs, verb: Verb[Any], *arguments: Any
) -> Decision[Any]:
    """Return the verb's decision, restricted to the key's reach. Raise WrongApiKey if the key was
    revoked, and KeyInsufficient if it lacks one of these capabilities."""
    key = current_key(context.state, key_id)
    require(key, needs)
    return verb(replace(context, reach=key.reach), *arguments)


def current_key(state: State, key_id: int | None) -> AccessKey:
    """Return the key as it is now. Raise WrongApiKey if it was revoked."""
    key = state.access_keys.get(key_id)
    if key is None or not state.users[key.user_id].is_active:
        raise WrongApiKey("This key is no longer valid.")
    return key


def lacks(key: AccessKey, needs: Needs) -> list[KeyCapability]:
    """Return the capabilities that the key lacks, most important first. Unknown ones count as
    lacking."""
    granted = {
        KeyCapability.FULL: key.is_full,
        KeyCapability.WRITE: key.reach.may_write,
        KeyCapability.EVERYTHING: not key.reach.is_limited,
        KeyCapability.DIRECTS: key.reach.directs,
    }
    return sorted((need for need in needs if not granted.get(need, False)), key=_told_by.index)


_told_by: Final = list(KeyCapability)


def require(key: AccessKey, needs: Needs) -> None:
    """Raise KeyInsufficient unless the key has these capabilities."""
    lacking = lacks(key, needs)
    if lacking:
        raise KeyInsufficient(_NOT_ALLOWED[lacking[0]])


def reached_channels(state: State, owner: User, reach: Reach) -> list[Channel]:
    """Return the channels that the key reaches, by ascending ID."""
    seen = channel_access.channels_seen(state, owner)
    return [channel for channel in seen if reach.reaches(channel.id)]


def reached_channel(state: State, owner: User, reach: Reach, channel_id: int) -> Channel:
    """Return the channel with that ID. Raise NoSuchChannel if the agent can't see it."""
    if not reach.reaches(channel_id):
        raise NoSuchChannel(channel_id=channel_id)
    return channel_access.visible_channel(state, owner, channel_id=channel_id)


def reached_user(state: State, viewer: User, user_id: int | None) -> User:
    """Return the account with that ID. Raise Refused unless the viewer can see it and their key
    reaches it."""
    user = state.users.get(user_id)
    is_reached = user is not None and reaches_user(state, viewer, user)
    return permissions.visible_user(state, viewer, user_id if is_reached else None)


def reaches_user(state: State, viewer: User, user: User) -> bool:
    """Whether the viewer can see the account and their key reaches it."""
    if viewer.reach is None:
        return permissions.sees_user(state, viewer, user)
    return user in users_in_reach(state, viewer, viewer.reach)


def visible_users(state: State, viewer: User) -> list[User]:
    """Return the accounts that the viewer can see and that their key reaches, by ascending ID."""
    if viewer.reach is None:
        return permissions.users_seen(state, viewer)
    return users_in_reach(state, viewer, viewer.reach)


def users_in_reach(state: State, owner: User, reach: Reach) -> list[User]:
    """Return the accounts that the key reaches, by ascending ID. A key that is limited to channels
    reaches its owner and the subscribers of these channels; any other key reaches everyone the
    owner can see."""
    seen = permissions.users_seen(state, owner)
    if reach.channel_ids is None or reach.directs:
        return seen
    known = {owner.id}
    for channel in reached_channels(state, owner, reach):
        if channel_access.sees_subscribers(state, owner, channel):
            known.update(state.subscribers(channel.id))
    return [user for user in seen if user.id in known]
