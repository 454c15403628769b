"""`tertulia sessions`: the browsers in which people are signed in."""

from typing import Annotated

import typer
from msgspec import Struct

from tertulia.cli.accounts import account_of_person
from tertulia.cli.commands import Printed, command, done, group
from tertulia.cli.tables import moment, table
from tertulia.domain.accounts import signing_out
from tertulia.model.errors import NoSuchItem
from tertulia.service.caller import Caller

app = group("sessions", "Manage active sessions in browsers: list and end them.")


class SessionShown(Struct, frozen=True, kw_only=True):
    """A browser in which somebody is signed in. Times are UNIX seconds."""

    id: int
    email: str
    agent: str
    """The browser as it calls itself."""
    created_at: int
    last_used_at: int
    """To within a few hours."""


class Sessions(Struct, frozen=True, kw_only=True):
    """Sessions, the newest first."""

    sessions: list[SessionShown]


@command(app, "list", "sessions list ben@example.com --data-dir data")
async def list_sessions(
    caller: Caller,
    who: Annotated[
        str | None, typer.Argument(metavar="[USER]", help="Show only this person's sessions.")
    ] = None,
) -> Printed:
    """List active sessions."""
    state, longest = caller.state, caller.node.config.session_seconds
    every = (
        state.sessions
        if who is None
        else (state.sessions.of_user[account_of_person(state, who).id])
    )
    found = [
        SessionShown(
            id=one.id,
            email=state.users[one.user_id].address,
            agent=one.agent,
            created_at=one.created_at,
            last_used_at=one.used_at,
        )
        for one in sorted(every, key=lambda one: -one.id)
        if one.lasts(caller.now, longest)
    ]
    headings = ("ID", "EMAIL", "SIGNED IN", "LAST USED", "BROWSER")
    rows = (
        (str(one.id), one.email, moment(one.created_at), moment(one.last_used_at), one.agent)
        for one in found
    )
    return Printed(Sessions(sessions=found), table(headings, rows))


@command(app, "end", "sessions end 17 --data-dir data")
async def end(
    caller: Caller,
    session_id: Annotated[int, typer.Argument(help="ID, as shown by `sessions list`.")],
) -> Printed:
    """End a session. `tertulia sign-out` signs a person out of all browsers and programs."""
    session = caller.state.sessions.get(session_id)
    if session is None:
        raise NoSuchItem("session")
    # By its person's own verb: there is none by which somebody ends another's.
    await caller.node.log.submit(session.user_id, signing_out.end, session_id)
    return done(f"Ended session {session_id} of {caller.state.users[session.user_id].address}.")
