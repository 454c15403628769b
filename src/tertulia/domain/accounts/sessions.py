"""Sessions of browsers, and passwords that are reset."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tertulia.domain.accounts import second_factors, users
from tertulia.domain.accounts.signing_out import end_all_sessions, end_sessions
from tertulia.domain.accounts.users import emails_to
from tertulia.model.changes import SessionBegun, SessionConfirmed, SessionUsed
from tertulia.model.errors import NoSuchItem, OrganizationDeactivated, Refused, WrongPassword
from tertulia.model.mail import Mail, MailKind
from tertulia.model.sessions import Session
from tertulia.model.users import NewApiKey, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_SESSIONS: Final = 100
"""Per account. One more ends the least recently used."""
MAX_AGENT: Final = 300
USE_SECONDS: Final = 4 * 3600
"""A session's use is stored at most this often, so that requests don't need a commit."""


JUST_JOINED: Final = 60
"""Seconds after joining in which people get no email about signing in."""


class SignInLocation(Struct, frozen=True, kw_only=True):
    """Where someone signed in to an account from for the first time."""

    site: str
    """The server's URL."""
    address: str
    """The client's IP address."""
    agent: str
    """The client's user agent."""


class NewSession(Struct, frozen=True, kw_only=True):
    """A browser that signs in."""

    digest: str
    agent: str
    method: str = ""
    """How the person signs in, such as `password`."""
    address: str = ""
    """The client's IP address."""
    provider_session: str = ""
    """As in `Session`."""
    replaced_id: int | None = None
    """The browser's previous session, which ends."""
    password_hash: str | None = None
    """The stored hash that the password was checked against; None if it wasn't checked."""
    place: SignInLocation | None = None
    """Where the sign-in comes from; None for no email about it."""


def begin(context: CommandContext, new: NewSession) -> Decision[Session]:
    """Sign the actor in. The first sign-in lets them join.

    Raise WrongPassword if the checked password has changed since; OrganizationDeactivated.
    """
    _require_present(context, new.password_hash)
    begun = _begun(context, new, [])
    return Decision(begun.result, begun.changes, sign_in_emails(context, new.place))


def _require_present(context: CommandContext, password_hash: str | None) -> None:
    present = context.state.credentials[context.actor.id].password_hash
    if password_hash is not None and password_hash != present:
        raise WrongPassword("Incorrect email address or password.")
    if context.state.realm.deactivated:
        raise OrganizationDeactivated("This organization is deactivated.")


def _begun(
    context: CommandContext, new: NewSession, ending: Iterable[Session]
) -> Decision[Session]:
    """Begin a session. `ending` are sessions of the actor that it ends."""
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
            *end_sessions(over.values()),
            SessionBegun(session=session),
        ],
    )


# Using and listing


def use(context: CommandContext, session_id: int, address: str) -> Decision[None]:
    """Note that the session is used, from that IP address, so that it lasts longer, unless that was
    noted recently."""
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
    """Note that the password was entered again in that session. Raise NoSuchItem if it has
    ended."""
    session = context.state.sessions.get(session_id)
    if session is None or session.user_id != context.actor.id:
        raise NoSuchItem("session")
    return Decision(None, (SessionConfirmed(session_id=session.id, at=int(context.now)),))


def is_stale(session: Session, now: float) -> bool:
    """Whether a use of the session would be stored."""
    return now - session.used_at >= USE_SECONDS


def own(context: CommandContext, longest: int | None) -> Decision[list[Session]]:
    """Return the actor's sessions that haven't expired, newest first. `longest` is as in
    `Session.lasts`."""
    sessions = context.state.sessions.of_user[context.actor.id]
    return Decision(
        [session for session in reversed(sessions) if session.lasts(context.now, longest)]
    )


# Resetting passwords


class PasswordReset(Struct, frozen=True, kw_only=True):
    """A password in place of a forgotten one, whose hash is `old_hash`."""

    old_hash: str | None
    new_hash: str
    key: NewApiKey
    """A new API key: people who knew the old password may have the old key."""
    site: str
    """The server's URL, for the email about it."""


def reset_password(
    context: CommandContext, password: PasswordReset, new: NewSession
) -> Decision[Session | None]:
    """Give the actor's account another password and API key, end all sessions, and sign the person
    in, unless that takes a second factor, or setting one up. The person gets an email.

    Raise WrongPassword if the password has changed in the meantime; OrganizationDeactivated.
    """
    state, actor = context.state, context.actor
    credential = state.credentials[actor.id]
    if credential.password_hash != password.old_hash:
        raise WrongPassword("The password has changed in the meantime.")
    _require_present(context, None)
    mails = users.emails_to(MailKind.CREDENTIAL_CHANGED, actor, password.site)
    changed = users.key_replaced(state, actor.id, password.key, password.new_hash)
    if second_factors.has_any(state, actor.id) or second_factors.is_missing(
        state, actor, context.now
    ):
        return Decision(None, [*changed, *end_all_sessions(state, actor.id)], mails)
    begun = _begun(context, new, state.sessions.of_user[actor.id])
    return Decision(begun.result, [*changed, *begun.changes], mails)


# As the server's operator


def replace_password(
    context: CommandContext, user_id: int, new_hash: str, key: NewApiKey, site: str
) -> Decision[None]:
    """Give a person's account another password and API key, and end all its sessions. The person
    gets an email. For the server's operator.

    Raise Refused for bots and accounts that aren't active.
    """
    user = _active_person(context.state, user_id)
    return Decision(
        None,
        [
            *users.key_replaced(context.state, user.id, key, new_hash),
            *end_all_sessions(context.state, user.id),
        ],
        users.emails_to(MailKind.CREDENTIAL_CHANGED, user, site),
    )


def end_access(context: CommandContext, user_id: int, key: NewApiKey) -> Decision[int]:
    """Give a person's account another API key and end all its sessions, so that every browser and
    program must sign in again. Return the number of sessions. Raise as `replace_password`."""
    user = _active_person(context.state, user_id)
    changes = [
        *users.key_replaced(context.state, user.id, key),
        *end_all_sessions(context.state, user.id),
    ]
    return Decision(len(context.state.sessions.of_user[user.id]), changes)


def _active_person(state: State, user_id: int) -> User:
    user = state.users[user_id]
    if user.is_bot:
        raise Refused("This account is a bot. Ask its owner to replace its API key.")
    if not user.is_active:
        raise Refused("This account is deactivated.")
    return user


def sign_in_emails(context: CommandContext, place: SignInLocation | None) -> list[Mail]:
    """Return the email about the actor's sign-in; none if the location is known (None), right after
    joining, and if their settings say so."""
    user, now = context.actor, context.now
    if place is None or user.awaits_arrival or now - user.joined_at < JUST_JOINED:
        return []
    if not context.state.settings[user.id].enable_login_emails:
        return []
    agent = "".join(filter(str.isprintable, place.agent))[:100]
    return emails_to(
        MailKind.NEW_SIGN_IN, user, place.site, at=str(int(now)), address=place.address, agent=agent
    )


def email_new_sign_in(context: CommandContext, place: SignInLocation) -> Decision[None]:
    """Email the actor that a program signed in."""
    return Decision(None, (), sign_in_emails(context, place))
