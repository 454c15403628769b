"""Letting a command decide on the state, and folding what it decided."""

import asyncio
import time
from typing import Any, Final

from tertulia.log.requests import Command
from tertulia.model.changes import Entry, MessageSent
from tertulia.model.errors import NotAuthenticated, NotBeforeUpgrade, Refused
from tertulia.state import user_visibility
from tertulia.state.fold import fold
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State
from tertulia.state.service_calls import calls_for
from tertulia.store.log_formats import LOG_FORMAT, needed_format
from tertulia.store.writing import CallAsked, MailAsked

TURN_SECONDS: Final = 0.01
"""For so long commands decide one after the other before the event loop runs other tasks."""


class FoldFailed(Exception):
    """A verb decided on a change that cannot be folded: a mistake of ours in that verb."""

    def __init__(self, command: Command) -> None:
        self.command = command
        super().__init__("a change could not be folded")


async def decide(
    state: State,
    command: Command,
    now: float,
    entries: list[Entry],
    asked: list[MailAsked | CallAsked],
    log_format: int = LOG_FORMAT,
) -> Any:
    """Let the command decide, fold its changes into the state, and append them to `entries`; and to
    `asked` its mails, and the calls of bots' services that its messages lead to. Returns its
    result, or its exception. FoldFailed where the state must not be used any more. `log_format` is
    the newest in which something may be written."""
    turn = time.perf_counter()
    command.is_begun = True
    try:
        decision: Decision[Any] = command.verb(
            moment_of(state, now, command.actor_id), *command.arguments
        )
    except Refused as refusal:
        # Its traceback knows the command, whose answer it is: both would stay until a full garbage
        # collection.
        return refusal.with_traceback(None)
    except Exception as error:  # A mistake of ours in one command is that command's alone.
        return error
    if log_format < LOG_FORMAT and needed_format(decision.changes) > log_format:
        return NotBeforeUpgrade()
    if time.perf_counter() - turn > TURN_SECONDS:
        await asyncio.sleep(0)  # The state stays: only the writer changes it.
        turn = time.perf_counter()
    try:
        for change in user_visibility.accompanied(state, decision.changes):
            entry = Entry(state.seq + 1, now, command.actor_id, change)
            fold(state, entry)
            entries.append(entry)
            if isinstance(change, MessageSent):
                asked.extend(CallAsked(call, now) for call in calls_for(state, change.message))
            if time.perf_counter() - turn > TURN_SECONDS:
                # At each entry the state is whole: other nodes come by it as well.
                await asyncio.sleep(0)
                turn = time.perf_counter()
    except Exception as error:
        raise FoldFailed(command) from error
    asked.extend(MailAsked(mail, now) for mail in decision.mails)
    return decision.result


def moment_of(state: State, now: float, actor_id: int | None) -> Moment:
    """The state as a verb sees it. NotAuthenticated where the actor is deactivated by now."""
    if actor_id is None:
        return Moment(state, now, None)
    actor = state.users.get(actor_id)
    if actor is None or not actor.is_active:
        raise NotAuthenticated("This account is deactivated.")
    return Moment(state, now, actor.id)
