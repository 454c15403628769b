"""Passwords, API keys, tickets, and JSON web tokens. Passwords are hashed, and API keys are
encrypted with the server's secret, which isn't in the database (`secret` in the data directory, or
the setting with that name)."""

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
ACCESS_KEY_BEGINS = "tertulia_key_"
_ALPHABET = string.ascii_letters + string.digits
SECRET_FILE = "secret"  # noqa: S105 (a file's name)


class VaultError(Exception):
    """The secret is missing, or belongs to another server. `str(error)` is for the operator."""


def load_secret(data_dir: Path, configured: str | None, *, create: bool) -> str:
    """Return the server's secret: the configured one, or the data directory's. With `create`,
    generate a missing one; otherwise raise VaultError."""
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
    with contextlib.suppress(FileExistsError):  # Another process created it at the same time.
        save_secret(path, secrets.token_urlsafe(32))
    return path.read_text().strip()


def save_secret(path: Path, secret: str) -> None:
    """Write the secret to a new file with mode 600, atomically. Raise FileExistsError."""
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
    """Return `KEY_LENGTH` random letters and digits."""
    # Choosing each letter separately takes ten times as long.
    number = secrets.randbelow(len(_ALPHABET) ** KEY_LENGTH)
    results = []
    for _ in range(KEY_LENGTH):
        number, which = divmod(number, len(_ALPHABET))
        results.append(_ALPHABET[which])
    return "".join(results)


def key_digest(api_key: str) -> str:
    """Return the digest that an API key is looked up by. Keys are random, so a plain hash is
    enough."""
    return hashlib.sha256(api_key.encode()).hexdigest()


class Vault:
    """Creates and checks credentials. Passwords are hashed in two threads, because that is slow on
    purpose."""

    def __init__(self, secret: str) -> None:
        self._sealing = hashlib.sha256(b"tertulia api keys\0" + secret.encode()).digest()
        self._links = hashlib.sha256(b"tertulia links\0" + secret.encode()).digest()
        self._tickets = hashlib.sha256(b"tertulia tickets\0" + secret.encode()).digest()
        self._marks = hashlib.sha256(b"tertulia marks\0" + secret.encode()).digest()
        self.push_seed = hashlib.sha256(b"tertulia pushes\0" + secret.encode()).digest()
        """Seed of the key for push services (`outbound/web_push.py`)."""
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="argon2")
        self._decoy: str | None = None

    @cached_property
    def _seal(self) -> "Fernet":
        from cryptography.fernet import Fernet  # Takes 3 MiB, and isn't needed at startup.

        return Fernet(base64.urlsafe_b64encode(self._sealing))

    def _opened(self, sealed: str) -> str | None:
        """Return the decrypted text; None if it was encrypted with another secret."""
        from cryptography.fernet import InvalidToken

        try:
            return self._seal.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        from argon2 import PasswordHasher  # Loaded by the first sign-in.

        return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)

    @property
    def fingerprint(self) -> str:
        """An encrypted constant, to check later whether the secret is still the same."""
        return self._seal.encrypt(b"tertulia").decode()

    def fits(self, fingerprint: str) -> bool:
        """Whether the fingerprint was made with this secret."""
        # Encrypted text ends with an HMAC of the rest, by the first half of the key (Fernet).
        try:
            content = base64.urlsafe_b64decode(fingerprint)
        except ValueError:
            return False
        proof = hmac.digest(self._sealing[:16], content[:-32], "sha256")
        return hmac.compare_digest(proof, content[-32:])

    def token(self, purpose: str, number: int, nonce: str) -> str:
        """Return the secret part of a link, which is always the same, and can't be computed without
        the server's secret."""
        said = f"{purpose}\0{number}\0{nonce}".encode()
        proof = hmac.digest(self._links, said, "sha256")
        return base64.urlsafe_b64encode(proof).decode().rstrip("=")

    def mark(self, text: str) -> str:
        """Return a short keyed digest of the text, which others can't find by trying texts."""
        return hmac.digest(self._marks, text.encode(), "sha256")[:8].hex()

    def address_proof(self, text: str) -> str:
        """Return a proof that this server created an email address for the text: 20 lowercase
        letters and digits."""
        proof = hmac.digest(self._links, b"mail address\0" + text.encode(), "sha256")[:12]
        return base64.b32encode(proof).decode().rstrip("=").lower()

    def nonce(self) -> str:
        """Return a random text for `token`."""
        return secrets.token_hex(16)

    async def credential(self, user_id: int, password: str | None) -> Credential:
        hashed = None if password is None else await self.hash_password(password)
        return self.with_new_key(
            Credential(user_id=user_id, password_hash=hashed, key_digest="", key_sealed="")
        )

    def with_new_key(self, credential: Credential) -> Credential:
        key = self.new_key()
        return Credential(
            user_id=credential.user_id,
            password_hash=credential.password_hash,
            key_digest=key.digest,
            key_sealed=key.sealed,
        )

    def new_key(self) -> NewApiKey:
        api_key = _random_key()
        sealed = self._seal.encrypt(api_key.encode()).decode()
        return NewApiKey(digest=key_digest(api_key), sealed=sealed)

    def new_agent_key(self) -> tuple[str, str]:
        """Return a key for an agent, and its digest, which is all that is stored. Its prefix says
        that it's an agent's key."""
        key = AGENT_KEY_BEGINS + _random_key()
        return key, key_digest(key)

    def new_client_key(self) -> tuple[str, str]:
        """Return an access key for a client that signs in, and its digest. It looks like an API
        key, because some clients rely on the length."""
        key = _random_key()
        return key, key_digest(key)

    def new_access_key(self) -> tuple[str, str]:
        """Return an access key for a device or a program, and its digest, as `new_agent_key`."""
        key = ACCESS_KEY_BEGINS + _random_key()
        return key, key_digest(key)

    def api_key(self, credential: Credential) -> str:
        """Return the credential's API key. Raise VaultError if it was encrypted with another
        secret."""
        api_key = self._opened(credential.key_sealed)
        if api_key is None:
            raise VaultError("The API key was encrypted with a different secret.")
        return api_key

    def sealed(self, text: str) -> str:
        """Return the encrypted text; an empty text stays empty."""
        return self._seal.encrypt(text.encode()).decode() if text else ""

    def unsealed(self, sealed: str) -> str:
        """Return the decrypted text. Raise VaultError if it was encrypted with another secret."""
        text = self._opened(sealed) if sealed else ""
        if text is None:
            raise VaultError("This was encrypted with a different secret.")
        return text

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a slow function that handles a password in one of the threads for that."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)

    async def hash_password(self, password: str) -> str:
        return await self.in_thread(self._hasher.hash, password)

    async def is_password(self, credential: Credential | None, password: str) -> bool:
        """Whether this is the account's password. Takes the same time for accounts without a
        password."""
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

    # Tickets: signed texts in URLs, with an expiration time

    def ticket(self, purpose: str, text: str, expires: int) -> str:
        """Return a signed ticket for the text, valid for the purpose until that UNIX time. Anyone
        can read the text in it."""
        said = base64.urlsafe_b64encode(f"{expires}:{text}".encode()).rstrip(b"=").decode()
        return f"{said}.{self._sign(purpose, said)}"

    def text_of(self, purpose: str, ticket: str, now: float) -> str | None:
        """Return the text of the ticket; None if it's not valid for the purpose, or expired."""
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
        self._threads.shutdown()


MAX_TOKEN: Final = 10_000
"""Longest accepted token, in characters."""
_DIGESTS: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
LEEWAY: Final = 30
"""Accepted difference between two clocks, in seconds."""
MAX_SECONDS: Final = 24 * 3600
"""Longest accepted lifetime in seconds, which limits the use of a leaked token."""


class BadToken(Exception):
    """The token is malformed, has a wrong signature, or isn't valid now. `str(error)` is a sentence
    for a person."""


def claims_of(token: str, secret: str, now: float) -> Mapping[str, Any]:
    """Return the claims of a JSON web token. Raise BadToken if it's invalid, or doesn't expire
    within `MAX_SECONDS`."""
    if len(token) > MAX_TOKEN or token.count(".") != 2 or not token.isascii():
        raise BadToken("This isn't a valid JSON web token.")
    said, _, signature = token.rpartition(".")
    header, _, payload = said.partition(".")
    digest = _DIGESTS.get(str(_object(header).get("alg")))
    if digest is None:
        raise BadToken("The token must be signed with HS256, HS384, or HS512.")
    expected = hmac.digest(secret.encode(), said.encode(), digest)
    if not hmac.compare_digest(expected, _bytes(signature)):
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
    """Return the claim's time in UNIX seconds, if the token has it."""
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise BadToken("The token's time claims aren't valid.")
    return value


def _object(part: str) -> Mapping[str, Any]:
    try:
        decoded = msgspec.json.decode(_bytes(part))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadToken("This isn't a valid JSON web token.") from None
    if not isinstance(decoded, dict):
        raise BadToken("This isn't a valid JSON web token.")
    return decoded


def _bytes(part: str) -> bytes:
    try:
        return base64.b64decode(part.encode() + b"=" * (-len(part) % 4), b"-_", validate=True)
    except ValueError:
        raise BadToken("This isn't a valid JSON web token.") from None
