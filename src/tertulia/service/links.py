"""Links that work without signing in. A link has the ID of its subject, and a proof that this
server created it, which requires the server's secret."""

import hashlib
import hmac
import re
from typing import Final

from tertulia.markup.external_media import ExternalMedia
from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.mail import Unsubscribing
from tertulia.model.users import Credential
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.state.state import State

JOIN: Final = "/join/"
CONFIRM: Final = "/confirm/"
RESET: Final = "/reset/"
SIGN_IN: Final = "/login/link/"
EXTERNAL: Final = "/external_content/"
TEMPORARY: Final = "/user_uploads/temporary/"
EXPORT: Final = "/user_exports/"
REALM_EXPORT: Final = "/realm_exports/"
AUDIT_LOG: Final = "/audit_log_exports/"
UNSUBSCRIBE: Final = "/unsubscribe/"
DESKTOP: Final = "/accounts/login/subdomain/"
OPERATOR: Final = "/sign-in-link/"
OPERATOR_SECONDS: Final = 600
"""The number of seconds for which a link of `tertulia users sign-in-link` works. It works once."""
PATHS: Final = (
    *(JOIN, CONFIRM, RESET, SIGN_IN, EXTERNAL, TEMPORARY, EXPORT, REALM_EXPORT),
    *(UNSUBSCRIBE, DESKTOP, OPERATOR, AUDIT_LOG),
)
"""Prefixes of paths whose remainder is secret, or a URL that someone linked."""
_TOKEN: Final = re.compile(r"([ic])(0|[1-9][0-9]{0,15})-([A-Za-z0-9_-]{43})")
_INVITATION: Final = "i"
_CONFIRMATION: Final = "c"
_EXTERNAL: Final = "e"
_UNSUBSCRIBE: Final = "u"

_UNSUBSCRIBING: Final = re.compile(r"([a-z]+)-([1-9][0-9]{0,15})-([A-Za-z0-9_-]{43})")

_TICKET: Final = re.compile(r"[A-Za-z0-9_-]{1,4000}\.[A-Za-z0-9_-]{43}")
_RESET: Final = "reset"
_OPERATOR: Final = "operator sign-in"
_SIGN_IN: Final = "sign-in link"


class Links:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def invitation(self, site: str, invitation: Invitation) -> str:
        """Return the link to join with an invitation."""
        return self._link(site, JOIN, _INVITATION, invitation)

    def sign_up(self, site: str, confirmation: Confirmation) -> str:
        """Return the link to join with the address that it was emailed to."""
        return self._link(site, JOIN, _CONFIRMATION, confirmation)

    def address(self, site: str, confirmation: Confirmation) -> str:
        """Return the link that confirms an account's new address."""
        return self._link(site, CONFIRM, _CONFIRMATION, confirmation)

    def reset(self, site: str, credential: Credential, expires_at: int) -> str:
        """Return the link to reset a password, which is valid until that UNIX time or until the
        password changes."""
        text = f"{credential.user_id}:{self.password_mark(credential)}"
        return f"{site.rstrip('/')}{RESET}{self._vault.ticket(_RESET, text, expires_at)}"

    def to_reset(self, state: State, token: str, now: float) -> Credential | None:
        """Return the credential that a token of `reset` opens; None if the link has expired or this
        server didn't create it."""
        opened = self._credential(_RESET, state, token, now)
        return opened and opened[0]

    def operator_sign_in(self, site: str, credential: Credential, now: float) -> str:
        """Return the link that signs a person in once, for `OPERATOR_SECONDS`, or until the
        password changes."""
        text = f"{credential.user_id}:{self.password_mark(credential)}:{self._vault.nonce()[:8]}"
        ticket = self._vault.ticket(_OPERATOR, text, int(now) + OPERATOR_SECONDS)
        return f"{site.rstrip('/')}{OPERATOR}{ticket}"

    def to_operator_sign_in(self, state: State, token: str, now: float) -> Credential | None:
        """Return the credential that a token of `operator_sign_in` opens; None as for
        `to_reset`."""
        opened = self._credential(_OPERATOR, state, token, now)
        return opened and opened[0]

    def sign_in(self, site: str, credential: Credential, expires_at: int, flow: str) -> str:
        """Return the link to sign in, which is valid until that UNIX time or until the password
        changes. `flow` is where it continues."""
        text = f"{credential.user_id}:{self.password_mark(credential)}:{flow}"
        return f"{site.rstrip('/')}{SIGN_IN}{self._vault.ticket(_SIGN_IN, text, expires_at)}"

    def to_sign_in(self, state: State, token: str, now: float) -> tuple[Credential, str] | None:
        """Return the credential that a token of `sign_in` opens, and where it continues; None if
        the link has expired or this server didn't create it."""
        return self._credential(_SIGN_IN, state, token, now)

    def _credential(
        self, purpose: str, state: State, token: str, now: float
    ) -> tuple[Credential, str] | None:
        """Return the credential in a ticket and the text after it; None if its password has
        changed."""
        text = self._vault.text_of(purpose, token, now) if _TICKET.fullmatch(token) else None
        if text is None:
            return None
        number, mark, *more = text.split(":", 2)
        credential = state.credentials.get(int(number))
        if credential is None or self.password_mark(credential) != mark:
            return None
        return credential, "".join(more)

    @staticmethod
    def password_mark(credential: Credential) -> str:
        """Return a digest that changes with the password."""
        return hashlib.sha256((credential.password_hash or "").encode()).hexdigest()[:32]

    def unsubscribing(self, site: str, user_id: int, what: Unsubscribing) -> str:
        """Return the link that turns off these emails. It doesn't expire."""
        proof = self._vault.token(_UNSUBSCRIBE, user_id, what.value)
        return f"{site.rstrip('/')}{UNSUBSCRIBE}{what.value}-{user_id}-{proof}"

    def to_unsubscribe(self, token: str) -> tuple[int, Unsubscribing] | None:
        """Return the account and the kind of emails that a token of `unsubscribing` is for; None if
        this server didn't create it."""
        match = _UNSUBSCRIBING.fullmatch(token)
        if match is None:
            return None
        what, number, proof = match.groups()
        expected = self._vault.token(_UNSUBSCRIBE, int(number), what)
        if not hmac.compare_digest(expected, proof):
            return None
        return int(number), Unsubscribing(what)

    def external(self, url: str) -> str:
        """Return the path at which this server proxies a URL."""
        return f"{EXTERNAL}{self._vault.token(_EXTERNAL, 0, url)}/{url.encode().hex()}"

    def external_url(self, proof: str, digits: str) -> str | None:
        """Return the URL in a path of `external`. Return None if this server didn't create the
        path, so that only linked URLs are fetched."""
        try:
            url = bytes.fromhex(digits).decode()
        except ValueError:
            return None
        expected = self._vault.token(_EXTERNAL, 0, url)
        return url if hmac.compare_digest(expected.encode(), proof.encode()) else None

    def opened(self, state: State, token: str) -> Invitation | Confirmation | None:
        """Return the record that a token opens; None if this server didn't create the link, or the
        record no longer exists. The caller checks whether it has expired."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        kind, number, proof = match.groups()
        table = state.invitations if kind == _INVITATION else state.confirmations
        result: Invitation | Confirmation | None = table.get(int(number))
        if result is None or not hmac.compare_digest(self._proof(kind, result), proof):
            return None
        return result

    def _link(self, site: str, path: str, kind: str, of: Invitation | Confirmation) -> str:
        return f"{site.rstrip('/')}{path}{kind}{of.id}-{self._proof(kind, of)}"

    def _proof(self, kind: str, of: Invitation | Confirmation) -> str:
        return self._vault.token(kind, of.id, of.nonce)


def external_media(config: Config, links: Links) -> ExternalMedia:
    """Return the rules for images and videos from other servers in messages."""
    if not config.external_content:
        return ExternalMedia()
    return ExternalMedia(proxy_address=links.external, fetches_pages=config.link_previews)
