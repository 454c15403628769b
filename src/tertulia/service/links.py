"""Links that open something without credentials: making them, and recognizing them.

A link has the number of what it opens and a proof that this installation made it. The proof takes
the installation's secret: the database alone is not enough to make one.
"""

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
EXTERNAL: Final = "/external_content/"
TEMPORARY: Final = "/user_uploads/temporary/"
UNSUBSCRIBE: Final = "/unsubscribe/"
PATHS: Final = (JOIN, CONFIRM, RESET, EXTERNAL, TEMPORARY, UNSUBSCRIBE)
"""What follows these in a path is secret, or what somebody linked."""
_TOKEN: Final = re.compile(r"([ic])(0|[1-9][0-9]{0,15})-([A-Za-z0-9_-]{43})")
_INVITATION: Final = "i"
_CONFIRMATION: Final = "c"
_EXTERNAL: Final = "e"
_UNSUBSCRIBE: Final = "u"

_UNSUBSCRIBING: Final = re.compile(r"([a-z]+)-([1-9][0-9]{0,15})-([A-Za-z0-9_-]{43})")

_TICKET: Final = re.compile(r"[A-Za-z0-9_-]{1,200}\.[A-Za-z0-9_-]{43}")
_RESET: Final = "reset"


class Links:
    """The links of one installation."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def invitation(self, site: str, invitation: Invitation) -> str:
        """Where one joins with the invitation."""
        return self._link(site, JOIN, _INVITATION, invitation)

    def sign_up(self, site: str, confirmation: Confirmation) -> str:
        """Where one joins with the address that the link was mailed to."""
        return self._link(site, JOIN, _CONFIRMATION, confirmation)

    def address(self, site: str, confirmation: Confirmation) -> str:
        """Where one confirms an account's new address."""
        return self._link(site, CONFIRM, _CONFIRMATION, confirmation)

    def reset(self, site: str, credential: Credential, expires_at: int) -> str:
        """Where one gives an account another password: until that UNIX time, and while it has the
        present one."""
        text = f"{credential.user_id}:{self.password_mark(credential)}"
        return f"{site.rstrip('/')}{RESET}{self._vault.ticket(_RESET, text, expires_at)}"

    def to_reset(self, state: State, token: str, now: float) -> Credential | None:
        """The credential that the token of such a link lets one change; None where the link is
        over, or was not made here."""
        text = self._vault.text_of(_RESET, token, now) if _TICKET.fullmatch(token) else None
        if text is None:
            return None
        number, _, mark = text.partition(":")
        credential = state.credentials.get(int(number))
        if credential is None or self.password_mark(credential) != mark:
            return None
        return credential

    @staticmethod
    def password_mark(credential: Credential) -> str:
        """A digest by which it is known whether the password is still the same."""
        return hashlib.sha256((credential.password_hash or "").encode()).hexdigest()[:32]

    def unsubscribing(self, site: str, user_id: int, what: Unsubscribing) -> str:
        """Where one turns off such mails to the account. It is good for ever, and for nothing
        else."""
        proof = self._vault.token(_UNSUBSCRIBE, user_id, what.value)
        return f"{site.rstrip('/')}{UNSUBSCRIBE}{what.value}-{user_id}-{proof}"

    def to_unsubscribe(self, token: str) -> tuple[int, Unsubscribing] | None:
        """The account that such a link's token is about, and the mails; None where it was not made
        here."""
        match = _UNSUBSCRIBING.fullmatch(token)
        if match is None:
            return None
        what, number, proof = match.groups()
        expected = self._vault.token(_UNSUBSCRIBE, int(number), what)
        if not hmac.compare_digest(expected, proof):
            return None
        return int(number), Unsubscribing(what)

    def external(self, url: str) -> str:
        """Where this server gives out what lies at a URL elsewhere, from the root of the site."""
        return f"{EXTERNAL}{self._vault.token(_EXTERNAL, 0, url)}/{url.encode().hex()}"

    def external_url(self, proof: str, digits: str) -> str | None:
        """The URL in such an address; None where it was not made here. So the server fetches only
        what somebody linked."""
        try:
            url = bytes.fromhex(digits).decode()
        except ValueError:
            return None
        expected = self._vault.token(_EXTERNAL, 0, url)
        return url if hmac.compare_digest(expected.encode(), proof.encode()) else None

    def opened(self, state: State, token: str) -> Invitation | Confirmation | None:
        """What a link's token opens; None where the link was not made here, or what it opens is
        gone. The caller looks whether it is over."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        kind, number, proof = match.groups()
        table = state.invitations if kind == _INVITATION else state.confirmations
        found: Invitation | Confirmation | None = table.get(int(number))
        if found is None or not hmac.compare_digest(self._proof(kind, found), proof):
            return None
        return found

    def _link(self, site: str, path: str, kind: str, of: Invitation | Confirmation) -> str:
        return f"{site.rstrip('/')}{path}{kind}{of.id}-{self._proof(kind, of)}"

    def _proof(self, kind: str, of: Invitation | Confirmation) -> str:
        return self._vault.token(kind, of.id, of.nonce)


def external_media(config: Config, links: Links) -> ExternalMedia:
    """What messages show of other servers, by the settings."""
    if not config.external_content:
        return ExternalMedia()
    return ExternalMedia(proxy_address=links.external, fetches_pages=config.link_previews)
