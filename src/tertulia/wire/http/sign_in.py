"""Signing in and out: checking passwords and creating browser sessions."""

import contextlib
import logging
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.requests import Request

from tertulia.domain.accounts import access_keys, identities, sessions, signing_out, users
from tertulia.domain.accounts import second_factors as factor_verbs
from tertulia.domain.accounts.access_keys import KeyCapability
from tertulia.domain.accounts.identities import NotRecognized
from tertulia.domain.accounts.sessions import SignInLocation
from tertulia.model.errors import (
    AccountDeactivated,
    OrganizationDeactivated,
    PasswordSignInDisabled,
    Refused,
    SecondFactorRequired,
    WrongCode,
    WrongPassword,
)
from tertulia.model.identities import ProvenIdentity
from tertulia.model.invitations import Invitation
from tertulia.model.sessions import Session
from tertulia.model.users import Credential, User
from tertulia.service.credentials import key_digest
from tertulia.service.sign_in_methods import SignInMethod
from tertulia.state.state import State
from tertulia.wire.http import audit, cookies
from tertulia.wire.http.adoption import adopted_password
from tertulia.wire.http.authentication import require_open, session_of
from tertulia.wire.http.errors import ConfirmationRequired
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import client_address, client_network
from tertulia.wire.http.routing import Call

if TYPE_CHECKING:
    from tertulia.service.passkeys import Answer

logger = logging.getLogger("tertulia.sign_in")


class CheckedPassword(Struct, frozen=True, kw_only=True):
    """The result of a correct password."""

    user: User
    password_hash: str | None
    """The stored hash."""
    is_new_place: bool
    """Whether nobody is known to have signed in to the account with this browser or from this
    network."""


@contextlib.contextmanager
def naming_contact(node: HttpNode) -> Iterator[None]:
    """Add the contact to the message of a refused sign-in, for apps, which don't show it
    otherwise."""
    try:
        yield
    except (
        AccountDeactivated,
        NotRecognized,
        OrganizationDeactivated,
        PasswordSignInDisabled,
        WrongPassword,
    ) as refusal:
        if contact := node.config.support_contact:
            refusal.args = (f"{refusal} For help, contact {contact}.",)
        raise


def takes_passwords(node: HttpNode) -> bool:
    """Whether people can sign in with a password: one that is stored here, or a directory's, which
    the organization can't turn off."""
    return node.state.realm.password_sign_in or node.config.has_directories


async def check_password(
    node: HttpNode, request: Request, address: str, password: str, invitation: str = ""
) -> CheckedPassword:
    """Return the user with this address and password.

    The address can also be a name in a directory, which has its own password. `invitation` is the
    token of a reusable invitation, for an account that is created by this sign-in.

    Raises PasswordSignInDisabled, TooManyTries, WrongPassword for a wrong address or password,
    OrganizationDeactivated, AccountDeactivated, Refused if someone in a directory can't have an
    account, and Unavailable if the previous server or a directory has to check the password and
    doesn't respond.
    """
    if not takes_passwords(node):
        raise PasswordSignInDisabled("Password sign-in is disabled in this organization.")
    has_passwords = node.state.realm.password_sign_in
    known = node.state.user_with_address(address)
    credential = node.state.credentials.get(known.id) if known else None
    device = cookies.device_id_of(node, request, known) if known and credential else None
    who = client_network(request)
    node.sign_in_limits.require(who, address, device)
    is_right = has_passwords and await node.vault.is_password(credential, password)
    if has_passwords and not is_right:
        adopted = await adopted_password(node, request, address, known, password)
        if adopted is not None:
            credential, is_right = adopted, True
    if not is_right:
        user = await person_in_directory(node, address, password, invitation)
    else:
        user = None
    if user is not None:
        known, is_right = user, True
        credential = node.state.credentials[user.id]
    if not is_right or known is None or credential is None:
        log_failed_sign_in(request, "password", known)
        raise WrongPassword("Incorrect email address or password.")
    is_new_place = device is None and not node.sign_in_limits.knows(who, address)
    is_whole = not await needs_code(node, known)
    node.sign_in_limits.succeeded(who, address, device, remember=is_whole)
    # The account may have changed while the password was checked.
    return CheckedPassword(
        user=require_usable(node, known.id),
        password_hash=credential.password_hash,
        is_new_place=is_new_place,
    )


async def finish_with_code(
    node: HttpNode, request: Request, checked: CheckedPassword, code: str | None
) -> None:
    """Check the second factor of a person who signs in with a program, if the account has one.

    Raises SecondFactorRequired without a code, and if the organization requires a second factor
    that the account doesn't have; TooManyTries; and WrongCode.
    """
    if not await needs_code(node, checked.user):
        if factor_verbs.is_missing(node.state, checked.user, node.clock()):
            raise SecondFactorRequired(is_missing=True)
        return
    if not code:
        raise SecondFactorRequired()
    await use_code(node, request, checked.user, code)
    node.sign_in_limits.remember(client_network(request), checked.user.address)


async def needs_code(node: HttpNode, user: User) -> bool:
    """Whether the account's password alone isn't enough to sign in. Raises Unavailable."""
    # The second factor may have been set up a moment ago, on another node.
    await node.log.catch_up()
    return factor_verbs.has_any(node.state, user.id)


async def use_code(node: HttpNode, request: Request, user: User, text: str) -> None:
    """Use up a code of the user's authenticator app, or a recovery code.

    Raises TooManyTries, and WrongCode for wrong and used codes.
    """
    from tertulia.service import second_factors  # Only if used.
    from tertulia.service.second_factors import RecoveryMatch, TotpMatch

    code, limits = second_factors.plain_code(text), node.sign_in_limits
    device = cookies.device_id_of(node, request, user)
    tried = (client_network(request), user.id, device, second_factors.is_short(code))
    limits.require_factor(*tried)
    try:
        match second_factors.match(node.state, node.vault, user.id, code, node.clock()):
            case TotpMatch(factor_id, step):
                await node.log.submit(user.id, factor_verbs.use_totp, factor_id, step)
            case RecoveryMatch(digest):
                site = node.config.mail_site
                await node.log.submit(user.id, factor_verbs.use_recovery_code, digest, site)
            case None:
                raise WrongCode("The code is wrong. Check that it's the newest one in your app.")
    except WrongCode:
        log_failed_sign_in(request, "code", user)
        if limits.warns_of_guesses(user.id):
            await node.log.submit(user.id, factor_verbs.warn_of_guesses, node.config.mail_site)
        raise
    limits.factor_was_right(*tried)


async def use_passkey(
    node: HttpNode, request: Request, answer: "Answer", user: User | None = None
) -> User:
    """Use a passkey for this request, and return its user. Without `user`, it replaces the
    password, so it must have verified the person.

    Raises TooManyTries; WrongCode for wrong and used answers; OrganizationDeactivated;
    AccountDeactivated.
    """
    from tertulia.service.passkeys import Passkeys  # Only if used.

    who, limits = client_network(request), node.sign_in_limits
    limits.require_code(who)
    try:
        passkeys = Passkeys(node.vault, node.clock())
        user_id, use = await passkeys.answered(node.state, answer, user)
        require_usable(node, user_id)
        await node.log.submit(user_id, factor_verbs.use_passkey, use)
    except WrongCode:
        log_failed_sign_in(request, "passkey", user)
        raise
    limits.code_was_right(who)
    return require_usable(node, user_id)


async def recognized(
    node: HttpNode, proven: ProvenIdentity, method: SignInMethod, invitation: str
) -> User:
    """Return the person's account, or a new one if the method creates accounts. `invitation` is the
    token of a reusable invitation that the person has opened, or empty. Raises as
    `identities.recognize`."""
    opened = node.links.opened(node.state, invitation) if invitation else None
    user: User = await node.log.submit(
        None,
        identities.recognize,
        proven,
        method.rules,
        await node.vault.credential(0, None),
        node.config.mail_site,
        node.renderer.render,
        opened.id if isinstance(opened, Invitation) else None,
    )
    return user


async def person_in_directory(
    node: HttpNode, login: str, password: str, invitation: str
) -> User | None:
    """Return the account of the person with this name or address and password in a directory, or a
    new one if the method creates accounts. Return None if no directory has them. Raises
    Unavailable, and as `identities.recognize`."""
    if not node.config.has_directories:
        return None
    from tertulia.service import directories  # Only if used.

    result = await node.directories.signed_in(login, password)
    if result is None:
        return None
    method, person = result
    user = await recognized(node, person.identity, method, invitation)
    number = node.state.identities.by_subject[method.name, person.identity.subject]
    identity = node.state.identities[number]
    await directories.follow(node, identity, person.identity, method.rules, person.picture)
    return node.state.users[user.id]


async def require_password(call: Call, password: str, sentence: str) -> Credential:
    """Return the caller's credential if the password is correct. Raises TooManyTries, and Refused
    with the text `sentence` if it's wrong."""
    call.require_key(KeyCapability.ACCOUNT)
    node, user = call.node, call.user
    # A stolen key or session has a separate limit, regardless of where it's used from.
    by = f"key {user.id}" if call.session_id is None else f"session {call.session_id}"
    who = client_network(call.request)
    node.sign_in_limits.require(who, user.address, by)
    credential = node.state.credentials[user.id]
    if not await node.vault.is_password(credential, password):
        log_failed_sign_in(call.request, "password", user)
        raise Refused(sentence)
    node.sign_in_limits.succeeded(who, user.address, by)
    return credential


def require_confirmed(call: Call) -> None:
    """Raise ConfirmationRequired if the session's last confirmation is too old, in case someone
    else uses the browser or a stolen cookie. Raise KeyInsufficient for access keys, which can't do
    what needs a confirmation. The account's own API key isn't affected, nor are accounts without a
    password and a second factor."""
    call.require_key(KeyCapability.ACCOUNT)
    minutes, session_id = call.node.config.confirm_password_minutes, call.session_id
    session = None if session_id is None else call.state.sessions.get(session_id)
    if session is None or not minutes or call.now - session.proved_at < minutes * 60:
        return
    if proofs := _proofs(call.state, session.user_id):
        raise ConfirmationRequired(proofs)


def _proofs(state: State, user_id: int) -> list[str]:
    """Return the ways in which the account can confirm a session: `password`, `passkey`, `code`."""
    proofs = []
    if state.realm.password_sign_in and state.credentials[user_id].password_hash is not None:
        proofs.append("password")
    if factor_verbs.passkeys_of(state, user_id):
        proofs.append("passkey")
    if factor_verbs.has_any(state, user_id):
        proofs.append("code")  # The account has recovery codes at least.
    return proofs


def log_failed_sign_in(request: Request, method: str, user: User | None = None) -> None:
    """Log a failed sign-in with this method, for programs that block addresses. The input isn't
    logged, because it may be the password for another field."""
    fields = {"from": client_address(request), "way": method, "user": user.id if user else "-"}
    logger.warning("sign-in failed", extra={"fields": fields})
    user_id = user.id if user else None
    audit.record(request, "sign_in_failed", user_id=user_id, details={"method": method})


def log_sign_in(
    request: Request, method: str, user_id: int, session: Session | None = None
) -> None:
    """Log a sign-in with this method that began `session` or, without one, returned the account's
    API key. (`SessionBegun` records sessions in the audit log.)"""
    fields = {"from": client_address(request), "way": method, "user": user_id}
    logger.info("signed in", extra={"fields": fields})
    if session is None:
        details = {"method": method}
        audit.record(request, "signed_in", actor_id=user_id, user_id=user_id, details=details)


def require_usable(node: HttpNode, user_id: int) -> User:
    """Return the current record of the user. Raises OrganizationDeactivated, AccountDeactivated."""
    user = node.state.users[user_id]
    require_open(node)
    if not user.is_active:
        raise AccountDeactivated("This account is deactivated.")
    return user


def new_session(
    node: HttpNode,
    request: Request,
    checked: CheckedPassword | None = None,
    *,
    method: str,
    provider_session: str = "",
) -> tuple[str, sessions.NewSession]:
    """Return a token and a new session for the browser, which replaces its previous one. `checked`
    is the result of a password sign-in, and `provider_session` the provider's ID of its session."""
    token = secrets.token_urlsafe(32)
    before = session_of(node, request)
    new = sessions.NewSession(
        digest=key_digest(token),
        agent=request.headers.get("user-agent", ""),
        method=method,
        address=client_address(request),
        provider_session=provider_session,
        replaced_id=before.id if before else None,
        password_hash=checked.password_hash if checked else None,
        location=sign_in_location(node, request) if checked and checked.is_new_place else None,
    )
    return token, new


def sign_in_location(node: HttpNode, request: Request) -> SignInLocation:
    """Return the origin of the request, for an email about the sign-in."""
    agent = request.headers.get("user-agent", "")
    return SignInLocation(site=node.config.mail_site, address=client_address(request), agent=agent)


async def sign_in(
    node: HttpNode,
    request: Request,
    user: User,
    checked: CheckedPassword | None = None,
    *,
    method: str = "password",
    provider_session: str = "",
) -> Session:
    """Create a session and set its cookies with the response. Raises as `sessions.begin`."""
    token, new = new_session(
        node, request, checked, method=method, provider_session=provider_session
    )
    session = await node.log.submit(user.id, sessions.begin, new)
    log_sign_in(request, method, user.id, session)
    cookies.set_session_cookies(node, request, session, token)
    return session


async def sign_in_program(
    node: HttpNode,
    request: Request,
    user: User,
    method: str,
    checked: CheckedPassword | None = None,
    *,
    client: str = "",
) -> str:
    """Sign the user in to a program that uses the API key, and return the key. If the organization
    doesn't accept personal API keys, return a new access key for the program. `checked` is the
    result of a password sign-in, and `client` the program's name if it isn't in the User-Agent
    header.
    """
    if checked is not None and checked.is_new_place:
        place = sign_in_location(node, request)
        await node.log.submit(user.id, sessions.email_new_sign_in, place)
    if user.awaits_arrival:
        await node.log.submit(user.id, users.arrive)
    log_sign_in(request, method, user.id)
    if node.state.realm.account_api_keys or user.is_bot:
        return node.vault.api_key(node.state.credentials[user.id])
    api_key, digest = node.vault.new_client_key()
    agent = client or request.headers.get("user-agent", "")
    await node.log.submit(user.id, access_keys.create_for_client, agent, digest)
    return api_key


async def sign_out(node: HttpNode, request: Request) -> None:
    """End the browser's session, if any, and delete its cookies."""
    session = session_of(node, request)
    if session is not None:
        await node.log.submit(session.user_id, signing_out.end, session.id)
        cookies.clear_site_data(request)
    cookies.clear_session_cookies(node, request)
