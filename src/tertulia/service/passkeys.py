"""Passkeys (WebAuthn): creating challenges, which browsers pass to passkeys, and checking the
answers.

A challenge is in a signed ticket, and nothing is stored until it's answered. The command that uses
the answer makes sure that it works only once.
"""

import base64
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from tertulia.domain.accounts import second_factors
from tertulia.domain.accounts.second_factors import UNKNOWN_PASSKEY, PasskeyUse
from tertulia.model.errors import WrongCode
from tertulia.model.second_factors import Passkey
from tertulia.model.users import User
from tertulia.service.credentials import Vault
from tertulia.state.state import State

T = TypeVar("T")

CHALLENGE_SECONDS: Final = 3600
"""The number of seconds for which a challenge can be answered. Sign-in pages wait for a passkey
from the start."""
MAX_ANSWER: Final = 20_000
"""Longest accepted answer, in characters."""
_SET_UP: Final = "passkey setup"
_SIGN_IN: Final = "passkey"
_HANDLE: Final = "passkey of"


class Challenge(Struct, frozen=True, kw_only=True):
    """The challenge that the browser passes to the passkey."""

    options: dict[str, Any]
    """`PublicKeyCredentialCreationOptions`, or `…RequestOptions`, as JSON."""
    ticket: str
    """The ticket that must be sent back with the answer."""


class _Ticket(Struct, frozen=True, array_like=True):
    challenge: str
    expires_at: int
    user_id: int | None
    """The account whose passkeys can answer; None for all."""


class Answer(Struct, frozen=True, kw_only=True):
    """A passkey's answer to a challenge, sent by a page of the site."""

    ticket: str
    credential: str
    """The browser's `PublicKeyCredential` as JSON."""
    site: str
    """The server's URL, which must be the page's origin."""


class Passkeys:
    """Creates challenges, and checks answers."""

    def __init__(self, vault: Vault, now: float) -> None:
        self._vault = vault
        self._now = now

    async def to_set_up(self, state: State, user: User, site: str) -> Challenge:
        """Return a challenge for a new passkey of the user."""
        ticket = self._ticket(user.id)
        known = second_factors.passkeys_of(state, user.id)

        def options() -> str:
            import webauthn
            from webauthn.helpers import structs

            made = webauthn.generate_registration_options(
                rp_id=_host(site),
                rp_name=state.realm.name,
                user_id=self._handle(user.id),
                user_name=user.address,
                user_display_name=user.full_name,
                challenge=_bytes(ticket.challenge),
                authenticator_selection=structs.AuthenticatorSelectionCriteria(
                    resident_key=structs.ResidentKeyRequirement.PREFERRED,
                    user_verification=structs.UserVerificationRequirement.PREFERRED,
                ),
                exclude_credentials=_descriptors(known),
            )
            return webauthn.options_to_json(made)

        return await self._challenge(_SET_UP, ticket, options)

    async def set_up(self, user: User, answer: Answer) -> Passkey:
        """Return the new passkey of the user. Raise WrongCode."""
        ticket = self._opened(_SET_UP, answer.ticket)
        if ticket.user_id != user.id:
            raise WrongCode("Adding this passkey took too long. Try again.")

        def verify() -> Passkey:
            import webauthn

            verified = webauthn.verify_registration_response(
                credential=answer.credential,
                expected_challenge=_bytes(ticket.challenge),
                expected_rp_id=_host(answer.site),
                expected_origin=_origin(answer.site),
            )
            return Passkey(
                credential_id=_text(verified.credential_id),
                public_key=_text(verified.credential_public_key),
                sign_count=verified.sign_count,
                transports=_transports(answer.credential),
            )

        return await self._verified(answer, verify)

    async def to_sign_in(self, state: State, site: str, user: User | None = None) -> Challenge:
        """Return a challenge for the user's passkeys. Without a user, it's for any passkey that
        verifies its person, because it replaces the password."""
        ticket = self._ticket(None if user is None else user.id)
        known = [] if user is None else second_factors.passkeys_of(state, user.id)

        def options() -> str:
            import webauthn
            from webauthn.helpers.structs import UserVerificationRequirement

            made = webauthn.generate_authentication_options(
                rp_id=_host(site),
                challenge=_bytes(ticket.challenge),
                allow_credentials=_descriptors(known),
                user_verification=UserVerificationRequirement.REQUIRED
                if user is None
                else UserVerificationRequirement.PREFERRED,
            )
            return webauthn.options_to_json(made)

        return await self._challenge(_SIGN_IN, ticket, options)

    async def answered(
        self, state: State, answer: Answer, user: User | None = None
    ) -> tuple[int, PasskeyUse]:
        """Return the ID of the user whose passkey answered, and the use to submit. `user` is as in
        `to_sign_in`. Raise WrongCode."""
        ticket = self._opened(_SIGN_IN, answer.ticket)
        if ticket.user_id != (None if user is None else user.id):
            raise WrongCode(UNKNOWN_PASSKEY)
        sent = _decoded(answer.credential)
        factor = state.second_factors.get(state.second_factors.by_credential.get(sent.id))
        if factor is None or not isinstance(factor.proof, Passkey):
            raise WrongCode(UNKNOWN_PASSKEY)
        if user is not None and factor.user_id != user.id:
            raise WrongCode(UNKNOWN_PASSKEY)
        handle = sent.response.userHandle
        if handle is not None and handle != _text(self._handle(factor.user_id)):
            raise WrongCode(UNKNOWN_PASSKEY)
        passkey = factor.proof

        def verify() -> int:
            import webauthn

            verified = webauthn.verify_authentication_response(
                credential=answer.credential,
                expected_challenge=_bytes(ticket.challenge),
                expected_rp_id=_host(answer.site),
                expected_origin=_origin(answer.site),
                credential_public_key=_bytes(passkey.public_key),
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=user is None,
            )
            return verified.new_sign_count

        use = PasskeyUse(
            factor_id=factor.id,
            challenge=ticket.challenge,
            expires_at=ticket.expires_at,
            sign_count=await self._verified(answer, verify),
        )
        return factor.user_id, use

    def _handle(self, user_id: int) -> bytes:
        """Return the handle by which passkeys know the account. It's the same for all of the
        account's passkeys, and reveals nothing."""
        return _bytes(self._vault.token(_HANDLE, user_id, ""))

    def _ticket(self, user_id: int | None) -> _Ticket:
        expires = int(self._now) + CHALLENGE_SECONDS
        return _Ticket(_text(secrets.token_bytes(32)), expires, user_id)

    async def _challenge(
        self, purpose: str, ticket: _Ticket, options: Callable[[], str]
    ) -> Challenge:
        # Imported with the first passkey, because that is slow.
        made = await self._vault.in_thread(options)
        text = msgspec.json.encode(ticket).decode()
        return Challenge(
            options=msgspec.json.decode(made),
            ticket=self._vault.ticket(purpose, text, ticket.expires_at),
        )

    def _opened(self, purpose: str, ticket: str) -> _Ticket:
        text = self._vault.text_of(purpose, ticket, self._now)
        if text is None:
            raise WrongCode("The page was open for too long. Try again.")
        return msgspec.json.decode(text, type=_Ticket)

    async def _verified(self, answer: Answer, verify: Callable[[], T]) -> T:
        _decoded(answer.credential)

        def verified() -> T:
            from webauthn.helpers.exceptions import WebAuthnException

            try:
                return verify()
            except (WebAuthnException, ValueError):
                raise WrongCode("The passkey's response isn't valid. Try again.") from None

        return await self._vault.in_thread(verified)


class _Response(Struct):
    userHandle: str | None = None  # noqa: N815 (as browsers call it)
    transports: tuple[str, ...] = ()


class _Credential(Struct):
    id: str
    response: _Response


def _decoded(credential: str) -> _Credential:
    try:
        if len(credential) > MAX_ANSWER:
            raise ValueError
        return msgspec.json.decode(credential, type=_Credential)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise WrongCode("The passkey's response isn't valid. Try again.") from None


def _transports(credential: str) -> tuple[str, ...]:
    known = {"ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb"}
    return tuple(sorted(known.intersection(_decoded(credential).response.transports)))


def _descriptors(passkeys: Sequence[Passkey]) -> list[Any]:
    from webauthn.helpers.structs import AuthenticatorTransport, PublicKeyCredentialDescriptor

    return [
        PublicKeyCredentialDescriptor(
            id=_bytes(passkey.credential_id),
            transports=[AuthenticatorTransport(name) for name in passkey.transports] or None,
        )
        for passkey in passkeys
    ]


def _host(site: str) -> str:
    return urlsplit(site).hostname or ""


def _origin(site: str) -> str:
    parts = urlsplit(site)
    return f"{parts.scheme}://{parts.netloc}"


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
