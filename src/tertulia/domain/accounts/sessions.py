"""Browser sessions, and resetting passwords."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tertulia.domain.accounts import second_factors, users
from tertulia.domain.accounts.signing_out import all_session_end_changes, session_end_changes
from tertulia.domain.accounts.users import emails_to
from tertulia.model.changes import SessionBegun, SessionConfirmed, SessionUsed
from tertulia.model.errors import NoSuchItem, OrganizationDeactivated, Refused, WrongPassword
from tertulia.model.mail import Mail, MailKind
from tertulia.model.sessions import Session
from tertulia.model.users import NewApiKey, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_SESSIONS: Final = 100
"""Per account. Another session ends the least recently used one."""
MAX_AGENT: Final = 300
USE_SECONDS: Final = 4 * 3600
"""The minimum time between two recorded uses of a session, in seconds, so that most requests don't
need a commit."""


JUST_JOINED: Final = 60
"""Seconds after joining during which signing in sends no email."""


class SignInLocation(Struct, frozen=True, kw_only=True):
    """The origin of the first sign-in from somewhere new."""

    site: str
    """The server's URL."""
    address: str
    """The client's IP address."""
    agent: str
    """The client's user agent."""


class NewSession(Struct, frozen=True, kw_only=True):
    """A new browser session."""

    digest: str
    agent: str
    method: str = ""
    """The sign-in method, such as `password`."""
    address: str = ""
    """The client's IP address."""
    provider_session: str = ""
    """As in `Session`."""
    replaced_id: int | None = None
    """The browser's previous session, which the new one replaces."""
    password_hash: str | None = None
    """The stored hash that the password was checked against; None if it wasn't checked."""
    location: SignInLocation | None = None
    """The origin to report in an email; None to send no email."""


def begin(context: CommandContext, new: NewSession) -> Decision[Session]:
    """Begin a session of the actor. The first sign-in lets the account join. Raise WrongPassword if
    the checked password has changed since; OrganizationDeactivated."""
    _require_present(context, new.password_hash)
    begun = _begin(context, new, [])
    return Decision(begun.result, begun.changes, sign_in_emails(context, new.location))


def _require_present(context: CommandContext, password_hash: str | None) -> None:
    present = context.state.credentials[context.actor.id].password_hash
    if password_hash is not None and password_hash != present:
        raise WrongPassword("Incorrect email address or password.")
    if context.state.realm.deactivated:
        raise OrganizationDeactivated("This organization is deactivated.")


def _begin(
    context: CommandContext, new: NewSession, ending: Iterable[Session]
) -> Decision[Session]:
    """Begin a session, and end the actor's sessions in `ending`."""
    state, actor, now = context.state, context.actor, int(context.now)
    session = Session(
        id=state.sessions.next_id(),
        user_id=actor.id,
        digest=new.digest,
        created_at=now,
        used_at=now,
        agent="".join(filter(str.isprintable, new.agent))[:MAX_AGENT],
        method=new.method,
        address=new.address,
        provider_session=new.provider_session,
    )
    over = {session.id: session for session in ending}
    replaced = state.sessions.get(new.replaced_id)
    if replaced is not None:
        over[replaced.id] = replaced
    left = [session for session in state.sessions.of_user[actor.id] if session.id not in over]
    left.sort(key=lambda session: (session.used_at, session.id))
    over |= {session.id: session for session in left[: max(0, len(left) + 1 - MAX_SESSIONS)]}
    return Decision(
        session,
        [
            *users.arrive(context).changes,
            *session_end_changes(over.values()),
            SessionBegun(session=session),
        ],
    )


# Using and listing


def use(context: CommandContext, session_id: int, address: str) -> Decision[None]:
    """Record that the session was used from this IP address, which extends it, unless a recent use
    is already recorded."""
    session = context.state.sessions.get(session_id)
    if session is None or not is_stale(session, context.now):
        return Decision(None)
    used = SessionUsed(
        session_id=session.id,
        at=int(context.now),
        address=None if address == session.address else address,
    )
    return Decision(None, (used,))


def confirm(context: CommandContext, session_id: int) -> Decision[None]:
    """Record that the person confirmed their password in the session. Raise NoSuchItem if the
    session has ended."""
    session = context.state.sessions.get(session_id)
    if session is None or session.user_id != context.actor.id:
        raise NoSuchItem("session")
    return Decision(None, (SessionConfirmed(session_id=session.id, at=int(context.now)),))


def is_stale(session: Session, now: float) -> bool:
    """Whether the last recorded use is old enough that the next one is recorded."""
    return now - session.used_at >= USE_SECONDS


def list_own(context: CommandContext, longest: int | None) -> Decision[list[Session]]:
    """Return the actor's sessions that haven't expired, newest first. `longest` is as in
    `Session.lasts`."""
    sessions = context.state.sessions.of_user[context.actor.id]
    return Decision(
        [session for session in reversed(sessions) if session.lasts(context.now, longest)]
    )


# Resetting passwords


class PasswordReset(Struct, frozen=True, kw_only=True):
    """A new password in place of a forgotten one, whose hash is `old_hash`."""

    old_hash: str | None
    new_hash: str
    key: NewApiKey
    """A new API key, because someone who knew the old password may have the old key."""
    site: str
    """The server's URL, for the email about it."""


def reset_password(
    context: CommandContext, password: PasswordReset, new: NewSession
) -> Decision[Session | None]:
    """Replace the actor's password and API key, end all sessions, and email the person. Begin a
    session unless signing in takes a second factor, or setting one up.

    Raise WrongPassword if the password has changed in the meantime; OrganizationDeactivated.
    """
    state, actor = context.state, context.actor
    credential = state.credentials[actor.id]
    if credential.password_hash != password.old_hash:
        raise WrongPassword("The password has changed in the meantime.")
    _require_present(context, None)
    mails = users.emails_to(MailKind.CREDENTIAL_CHANGED, actor, password.site)
    changed = users.key_changes(state, actor.id, password.key, password.new_hash)
    if second_factors.has_any(state, actor.id) or second_factors.is_missing(
        state, actor, context.now
    ):
        return Decision(None, [*changed, *all_session_end_changes(state, actor.id)], mails)
    begun = _begin(context, new, state.sessions.of_user[actor.id])
    return Decision(begun.result, [*changed, *begun.changes], mails)


# As the server's operator


def replace_password(
    context: CommandContext, user_id: int, new_hash: str, key: NewApiKey, site: str
) -> Decision[None]:
    """Replace a person's password and API key, end all their sessions, and email them. For the
    server's operator. Raise Refused for bots and accounts that aren't active."""
    user = _active_person(context.state, user_id)
    return Decision(
        None,
        [
            *users.key_changes(context.state, user.id, key, new_hash),
            *all_session_end_changes(context.state, user.id),
        ],
        users.emails_to(MailKind.CREDENTIAL_CHANGED, user, site),
    )


def end_access(context: CommandContext, user_id: int, key: NewApiKey) -> Decision[int]:
    """Replace a person's API key and end all their sessions, so that every browser and program must
    sign in again. Return the number of ended sessions. Raise as `replace_password`."""
    user = _active_person(context.state, user_id)
    changes = [
        *users.key_changes(context.state, user.id, key),
        *all_session_end_changes(context.state, user.id),
    ]
    return Decision(len(context.state.sessions.of_user[user.id]), changes)


def _active_person(state: State, user_id: int) -> User:
    user = state.users[user_id]
    if user.is_bot:
        raise Refused("This account is a bot. Ask its owner to replace its API key.")
    if not user.is_active:
        raise Refused("This account is deactivated.")
    return user


def sign_in_emails(context: CommandContext, location: SignInLocation | None) -> list[Mail]:
    """Return the email about the actor's sign-in. Return nothing for a known location (None), right
    after joining, and if the actor turned these emails off."""
    user, now = context.actor, context.now
    if location is None or user.awaits_arrival or now - user.joined_at < JUST_JOINED:
        return []
    if not context.state.settings[user.id].enable_login_emails:
        return []
    agent = "".join(filter(str.isprintable, location.agent))[:100]
    return emails_to(
        MailKind.NEW_SIGN_IN,
        user,
        location.site,
        at=str(int(now)),
        address=location.address,
        agent=agent,
    )


def email_new_sign_in(context: CommandContext, location: SignInLocation) -> Decision[None]:
    """Email the actor that a program signed in from a new location."""
    return Decision(None, (), sign_in_emails(context, location))
