"""Passwords and API keys: made, checked, and kept so that the database alone gives away neither.

The installation's secret seals API keys; it lies beside the database's settings and not in the
database (`secret` in the data directory, or the setting of that name).
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import string
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from tertulia.model.users import Credential, NewApiKey

if TYPE_CHECKING:
    from argon2 import PasswordHasher
    from cryptography.fernet import Fernet

T = TypeVar("T")

KEY_LENGTH = 32
AGENT_KEY_BEGINS = "tertulia_agent_"
_ALPHABET = string.ascii_letters + string.digits
SECRET_FILE = "secret"  # noqa: S105 (a file's name)


class VaultError(Exception):
    """The secret is missing or is another installation's. `str(error)` is for the operator."""


def load_secret(data_dir: Path, configured: str | None, *, create: bool) -> str:
    """The installation's secret: the configured one, or that of the data directory.

    With `create` it is made where there is none; otherwise that is a VaultError.
    """
    if configured:
        return configured
    path = data_dir / SECRET_FILE
    if path.exists():
        return path.read_text().strip()
    if not create:
        raise VaultError(
            f"The installation's secret is missing: {path} does not exist. Bring it along from the"
            " machine where `tertulia init` ran, or set TERTULIA_SECRET."
        )
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):  # Another process made it at the same moment.
        save_secret(path, secrets.token_urlsafe(32))
    return path.read_text().strip()


def save_secret(path: Path, secret: str) -> None:
    """Write the secret to a new file that its owner alone can read, and that is there as a whole
    or not at all. FileExistsError where there is one."""
    descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secret + "\n")
            file.flush()
            os.fsync(descriptor)
        os.link(written, path)
    finally:
        os.unlink(written)


def _random_key() -> str:
    """`KEY_LENGTH` letters and digits: all keys are equally likely."""
    # One number, for to choose each letter by itself takes ten times as long.
    number = secrets.randbelow(len(_ALPHABET) ** KEY_LENGTH)
    found = []
    for _ in range(KEY_LENGTH):
        number, which = divmod(number, len(_ALPHABET))
        found.append(_ALPHABET[which])
    return "".join(found)


def key_digest(api_key: str) -> str:
    """What an API key is looked up by. Keys are random, so a plain hash gives nothing away."""
    return hashlib.sha256(api_key.encode()).hexdigest()


class Vault:
    """Makes and checks credentials. Password hashing is slow on purpose and runs in threads of
    its own, two at a time."""

    def __init__(self, secret: str) -> None:
        self._sealing = hashlib.sha256(b"tertulia api keys\0" + secret.encode()).digest()
        self._links = hashlib.sha256(b"tertulia links\0" + secret.encode()).digest()
        self._tickets = hashlib.sha256(b"tertulia tickets\0" + secret.encode()).digest()
        self._marks = hashlib.sha256(b"tertulia marks\0" + secret.encode()).digest()
        self.push_seed = hashlib.sha256(b"tertulia pushes\0" + secret.encode()).digest()
        """What the key for push services is made of (`outbound/web_push.py`)."""
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="argon2")
        self._decoy: str | None = None

    @cached_property
    def _seal(self) -> "Fernet":
        from cryptography.fernet import Fernet  # Takes 3 MiB, and no start needs it.

        return Fernet(base64.urlsafe_b64encode(self._sealing))

    def _opened(self, sealed: str) -> str | None:
        """The text that was sealed; None where it was with another secret."""
        from cryptography.fernet import InvalidToken

        try:
            return self._seal.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        from argon2 import PasswordHasher  # When somebody first signs in.

        return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)

    @property
    def fingerprint(self) -> str:
        """Something to seal, for telling later whether the secret is still the same."""
        return self._seal.encrypt(b"tertulia").decode()

    def fits(self, fingerprint: str) -> bool:
        """Whether the fingerprint was made with this secret."""
        # What is sealed ends with an HMAC of the rest, by the first half of the key (Fernet).
        try:
            content = base64.urlsafe_b64decode(fingerprint)
        except ValueError:
            return False
        proof = hmac.digest(self._sealing[:16], content[:-32], "sha256")
        return hmac.compare_digest(proof, content[-32:])

    def token(self, purpose: str, number: int, nonce: str) -> str:
        """What a link is made of that opens something: known to nobody who does not know the
        secret, and the same each time."""
        said = f"{purpose}\0{number}\0{nonce}".encode()
        proof = hmac.digest(self._links, said, "sha256")
        return base64.urlsafe_b64encode(proof).decode().rstrip("=")

    def mark(self, text: str) -> str:
        """Something short that stands for the text, at each node that has the secret; others cannot
        find out by trying which text it was."""
        return hmac.digest(self._marks, text.encode(), "sha256")[:8].hex()

    def address_proof(self, text: str) -> str:
        """What proves, in an address for mails, that it was made here for the text: 20 letters and
        digits, of which it does not matter whether they are small."""
        proof = hmac.digest(self._links, b"mail address\0" + text.encode(), "sha256")[:12]
        return base64.b32encode(proof).decode().rstrip("=").lower()

    def nonce(self) -> str:
        """Something random, for `token`."""
        return secrets.token_hex(16)

    async def credential(self, user_id: int, password: str | None) -> Credential:
        """A new credential with a new API key."""
        hashed = None if password is None else await self.hash_password(password)
        return self.with_new_key(Credential(user_id=user_id, password_hash=hashed, **_no_key()))

    def with_new_key(self, credential: Credential) -> Credential:
        """The credential with another API key."""
        key = self.new_key()
        return Credential(
            user_id=credential.user_id,
            password_hash=credential.password_hash,
            key_digest=key.digest,
            key_sealed=key.sealed,
        )

    def new_key(self) -> NewApiKey:
        """An API key that nobody has yet."""
        api_key = _random_key()
        sealed = self._seal.encrypt(api_key.encode()).decode()
        return NewApiKey(digest=key_digest(api_key), sealed=sealed)

    def new_agent_key(self) -> tuple[str, str]:
        """A key for an agent, and its digest: nothing else of it is kept. One can tell by its
        beginning what it is, wherever it turns up."""
        key = AGENT_KEY_BEGINS + _random_key()
        return key, key_digest(key)

    def api_key(self, credential: Credential) -> str:
        """The credential's API key. VaultError when it was sealed with another secret."""
        api_key = self._opened(credential.key_sealed)
        if api_key is None:
            raise VaultError("The API key was encrypted with a different secret.")
        return api_key

    def sealed(self, text: str) -> str:
        """The text encrypted with the installation's secret; nothing for an empty one."""
        return self._seal.encrypt(text.encode()).decode() if text else ""

    def unsealed(self, sealed: str) -> str:
        """The text that was sealed. VaultError when it was with another secret."""
        text = self._opened(sealed) if sealed else ""
        if text is None:
            raise VaultError("This was encrypted with a different secret.")
        return text

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """What the function answers, which computes for long about a password."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)

    async def hash_password(self, password: str) -> str:
        """The password as it is kept."""
        return await self.in_thread(self._hasher.hash, password)

    async def is_password(self, credential: Credential | None, password: str) -> bool:
        """Whether it is the account's password. Takes as long for an account that has none."""
        hashed = credential.password_hash if credential else None
        if hashed is None:
            if self._decoy is None:
                self._decoy = await self.hash_password(secrets.token_hex())
            await self._verify(self._decoy, password)
            return False
        return await self._verify(hashed, password)

    async def _verify(self, hashed: str, password: str) -> bool:
        def verify() -> bool:
            from argon2.exceptions import InvalidHashError, VerificationError

            try:
                return self._hasher.verify(hashed, password)
            except (VerificationError, InvalidHashError):
                return False

        return await self.in_thread(verify)

    # Tickets: what an address says by itself, for a while

    def ticket(self, purpose: str, text: str, expires: int) -> str:
        """Something to put into an address that stands for the text, for that purpose and until
        that UNIX time. Anybody can read the text in it; nobody else can make one."""
        said = base64.urlsafe_b64encode(f"{expires}:{text}".encode()).rstrip(b"=").decode()
        return f"{said}.{self._sign(purpose, said)}"

    def text_of(self, purpose: str, ticket: str, now: float) -> str | None:
        """The text that the ticket stands for; None where it is none for the purpose, or has
        expired."""
        said, _, signature = ticket.partition(".")
        if not hmac.compare_digest(self._sign(purpose, said).encode(), signature.encode()):
            return None
        padded = said + "=" * (-len(said) % 4)
        expires, _, text = base64.urlsafe_b64decode(padded).decode().partition(":")
        return text if now <= int(expires) else None

    def _sign(self, purpose: str, said: str) -> str:
        signature = hmac.digest(self._tickets, f"{purpose}\0{said}".encode(), "sha256")
        return base64.urlsafe_b64encode(signature).rstrip(b"=").decode()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def _no_key() -> dict[str, str]:
    return {"key_digest": "", "key_sealed": ""}


MAX_TOKEN: Final = 10_000
"""Characters of a token that is looked at."""
_DIGESTS: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
LEEWAY: Final = 30
"""Seconds by which the clocks of two machines may differ."""
MAX_SECONDS: Final = 24 * 3600
"""How far ahead a token may expire: one that leaks can be used no longer."""


class BadToken(Exception):
    """The token is none, was signed by somebody else, or is not valid now. `str(error)` is a
    sentence for a person."""


def claims_of(token: str, secret: str, now: float) -> Mapping[str, Any]:
    """What the token says. `now` is in UNIX seconds. Raises BadToken, also for a token that does
    not expire within `MAX_SECONDS`."""
    if len(token) > MAX_TOKEN or token.count(".") != 2 or not token.isascii():
        raise BadToken("This isn't a valid JSON web token.")
    said, _, signature = token.rpartition(".")
    header, _, payload = said.partition(".")
    digest = _DIGESTS.get(str(_object(header).get("alg")))
    if digest is None:
        raise BadToken("The token must be signed with HS256, HS384, or HS512.")
    own = hmac.digest(secret.encode(), said.encode(), digest)
    if not hmac.compare_digest(own, _bytes(signature)):
        raise BadToken("The token's signature doesn't match this server's secret.")
    claims = _object(payload)
    expires, begins, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is None:
        raise BadToken("The token needs an expiration time (the exp claim).")
    if now >= expires + LEEWAY:
        raise BadToken("The token has expired.")
    if expires > now + MAX_SECONDS + LEEWAY:
        raise BadToken(f"The token must expire within {MAX_SECONDS // 3600} hours.")
    if any(time is not None and now < time - LEEWAY for time in (begins, issued)):
        raise BadToken("The token isn't valid yet. Compare the clocks of the two servers.")
    return claims


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """The claim's time in UNIX seconds, if the token has it."""
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise BadToken("The token's time claims aren't valid.")
    return value


def _object(part: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(_bytes(part))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadToken("This isn't a valid JSON web token.") from None
    if not isinstance(found, dict):
        raise BadToken("This isn't a valid JSON web token.")
    return found


def _bytes(part: str) -> bytes:
    try:
        return base64.b64decode(part.encode() + b"=" * (-len(part) % 4), b"-_", validate=True)
    except ValueError:
        raise BadToken("This isn't a valid JSON web token.") from None
