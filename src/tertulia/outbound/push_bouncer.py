"""The push bouncer, a server that forwards encrypted notifications to phones through their vendors'
push services. It uses the protocol of Zulip's push notification service: the parameters of
`/remotes/push/e2ee/register` are documented; the fields of `/remotes/push/e2ee/notify` are inferred
from Zulip's server."""

import base64
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched, WebResponse, is_temporary, seconds_to_wait

CALL_SECONDS: Final = 10.0
MAX_PAYLOAD: Final = 2_800
"""Largest payload in bytes. Encrypted and in base64, it fits into the 4 KiB that vendors allow."""
_PADDED_TO: Final = 256
"""Payloads are padded to multiples of this, to hide their length."""
_MAX_RESPONSE: Final = 65_536
_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"
REGISTRATION_ERRORS: Final = frozenset(
    {"INVALID_BOUNCER_PUBLIC_KEY", "INVALID_ENCRYPTED_PUSH_REGISTRATION", "REQUEST_EXPIRED"}
)
INVALID_REGISTRATION: Final = "INVALID_ENCRYPTED_PUSH_REGISTRATION"
EXPIRED_REGISTRATION: Final = "REQUEST_EXPIRED"


class BouncerFailed(Exception):
    """The bouncer failed, and may succeed later. `str(error)` is the reason."""

    def __init__(self, reason: str, status: int = 0, wait: float = 0.0) -> None:
        """Create an error. `status` is the response's, or 0 without one, and `wait` is its
        `Retry-After` in seconds."""
        super().__init__(reason)
        self.status = status
        self.wait = wait


class BouncerRefused(Exception):
    """The bouncer refuses, and always will. `str(error)` is the reason."""

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.code = code


class _Error(Struct):
    msg: str = ""
    code: str = ""


class _Notified(Struct):
    delete_token_ids: list[str] = []


class PushBouncer:
    """Sends requests to the bouncer at `url`, with the ID and key that it knows this server by."""

    def __init__(self, web: Web, url: str, server_id: str, key: str, realm_uuid: str) -> None:
        self._web = web
        self._url = url.rstrip("/")
        self._realm_uuid = realm_uuid
        proof = base64.b64encode(f"{server_id}:{key}".encode()).decode()
        self._headers = {"Authorization": f"Basic {proof}"}

    async def register(self, token_id: str, bouncer_public_key: str, registration: str) -> None:
        """Ask the bouncer to accept a phone's token. Repeating it is safe.

        Raise BouncerRefused, with one of `REGISTRATION_ERRORS`; and BouncerFailed.
        """
        form = {
            "realm_uuid": self._realm_uuid,
            "token_id": token_id,
            "bouncer_public_key": bouncer_public_key,
            "encrypted_push_registration": registration,
        }
        try:
            await self._sent("register", urlencode(form).encode(), _FORM)
        except BouncerRefused as error:
            code = error.code if error.code in REGISTRATION_ERRORS else INVALID_REGISTRATION
            raise BouncerRefused(str(error), code) from None

    async def notify(self, requests: Sequence[dict[str, Any]]) -> set[str]:
        """Forward notifications. Return the IDs of those tokens that no longer exist.

        Raise BouncerFailed, BouncerRefused.
        """
        body = msgspec.json.encode({"realm_uuid": self._realm_uuid, "push_requests": requests})
        reply = await self._sent("notify", body, _JSON)
        try:
            return set(msgspec.json.decode(reply.body, type=_Notified).delete_token_ids)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BouncerFailed("its response isn't valid", 502) from None

    async def _sent(self, endpoint: str, body: bytes, kind: str) -> WebResponse:
        url = f"{self._url}/api/v1/remotes/push/e2ee/{endpoint}"
        headers = {**self._headers, "Content-Type": kind}
        try:
            reply = await self._web.send(
                url, body, headers, seconds=CALL_SECONDS, limit=_MAX_RESPONSE
            )
        except NotFetched as error:
            raise BouncerFailed(str(error)) from None
        if reply.status == 200:
            return reply
        try:
            said = msgspec.json.decode(reply.body, type=_Error)
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = _Error()
        reason = f"it responded with status {reply.status} {said.code} {said.msg}"[:300].rstrip()
        # Unknown servers and organizations are a problem that the operator can solve.
        if is_temporary(reply.status) or reply.status in {401, 402, 403, 404}:
            raise BouncerFailed(reason, reply.status, seconds_to_wait(reply.headers))
        if 400 <= reply.status < 500:
            raise BouncerRefused(reason, said.code)
        raise BouncerFailed(reason, reply.status)


def push_request(
    payload: bytes,
    token_id: str,
    key_id: int,
    key: bytes,
    *,
    is_apple: bool,
    is_shown: bool,
    is_urgent: bool,
) -> dict[str, Any]:
    """Return a notification in the bouncer's format, encrypted with the phone's key. `is_shown` is
    whether the phone shows it, or only removes notifications that it shows. Raise ValueError if
    it's too long."""
    content: dict[str, Any] = {"push_key_id": key_id, "encrypted_data": encrypted(payload, key)}
    if not is_apple:
        priority = "high" if is_urgent else "normal"
        return {"token_id": token_id, "fcm_priority": priority, "payload": content}
    aps: dict[str, Any] = {"content-available": 1}
    headers: dict[str, Any] = {"apns_priority": 5, "apns_push_type": "background"}
    if is_shown:
        # The app replaces this text with the decrypted one.
        aps = {"mutable-content": 1, "alert": {"title": "New notification"}, "sound": "default"}
        headers = {"apns_priority": 10, "apns_push_type": "alert"}
    return {"token_id": token_id, "http_headers": headers, "payload": {**content, "aps": aps}}


def encrypted(payload: bytes, key: bytes) -> str:
    """Encrypt JSON with a key of 32 bytes, as libsodium's secretbox does, and encode it in base64.
    The nonce comes first, and white space hides the length. Raise ValueError if it's too long."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError("the payload is too long")
    from nacl.secret import SecretBox

    blank = min(-len(payload) % _PADDED_TO, MAX_PAYLOAD - len(payload))
    return base64.b64encode(bytes(SecretBox(key).encrypt(payload + b" " * blank))).decode()
