"""To whom a message goes: names, addresses and IDs resolved to a destination."""

from collections.abc import Iterable, Sequence

from tertulia.domain.messages.sending import ToChannel, ToPeople
from tertulia.model.errors import Refused
from tertulia.service.caller import Caller


def people(caller: Caller, named: Iterable[int | str]) -> list[int]:
    """The IDs of people who are named by ID or by address. Refused for unknown addresses."""
    found: list[int] = []
    for one in named:
        if isinstance(one, int):
            found.append(one)
            continue
        user = caller.account_with(one)
        if user is None:
            raise Refused(f"No user has the email address '{one[:100]}'.")
        found.append(user.id)
    return found


def to_people(user_ids: Sequence[int]) -> ToPeople:
    """A direct message to these people. Refused where there are none."""
    if not user_ids:
        raise Refused("A message needs at least one recipient.")
    return ToPeople(frozenset(user_ids))


def to_topic(channel: int | str, topic: str | None) -> ToChannel:
    """A message to a topic of the channel of that ID or name. Refused without a topic."""
    if topic is None:
        raise Refused("The topic is missing.")
    if isinstance(channel, int):
        return ToChannel(topic=topic, channel_id=channel)
    return ToChannel(topic=topic, name=channel)


def default_channel(caller: Caller) -> int:
    """The ID of the channel to which a bot writes that names none. Refused for everybody else."""
    bot = caller.user.bot
    if bot is None or bot.default_sending_channel_id is None:
        raise Refused("A channel message needs a channel.")
    return bot.default_sending_channel_id
