"""Client of a running Zulip's HTTP API, with an owner's API key."""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final

import httpx
import msgspec

from tertulia import __version__
from tertulia.imports.source import SourceError
from tertulia.imports.zulip.rows import Row, number, text
from tertulia.store import authorities

PAGE: Final = 1000
"""Messages per request."""
MAX_RESPONSE: Final = 192 * 1024 * 1024
"""Largest response that isn't a file, in bytes."""
MAX_FILE: Final = 2 * 1024**3
PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds between attempts while the server fails. The last one repeats."""
MAX_WAIT: Final = 600.0
"""The longest `Retry-After` that is obeyed, in seconds."""
EVENT_TYPES: Final = (
    *("message", "update_message", "delete_message", "reaction", "submessage"),
    *("update_message_flags", "realm", "realm_user", "user_group", "stream", "subscription"),
    *("channel_folder", "default_streams", "realm_bot"),
)
STATE: Final = (
    *("realm", "realm_user", "realm_bot", "realm_user_groups", "stream", "subscription"),
    *("channel_folders", "default_streams"),
    # To compare at the end:
    *("realm_emoji", "realm_linkifiers", "realm_playgrounds", "custom_profile_fields"),
)
_CAPABILITIES: Final = {
    "notification_settings_null": True,
    "bulk_message_deletion": True,
    "user_avatar_url_field_optional": False,
    "user_list_incomplete": False,
    "include_deactivated_groups": True,
    "archived_channels": True,
    "empty_topic_name": True,
    "linkifier_url_template": True,
}


IDS_LEVEL: Final = 300
"""The feature level from which several messages can be fetched by their IDs."""


class RequestRefused(SourceError):
    """The server refused the request, but accepts the key."""


class QueueLost(Exception):
    """The event queue no longer exists."""


class Interrupted(Exception):
    """Waiting for the server was canceled."""


class ZulipServer:
    """Calls the API. Requests are repeated while the server fails or asks to wait, until
    `is_ended`. Methods block, so call them in a thread."""

    def __init__(
        self,
        url: str,
        email: str,
        api_key: str,
        *,
        is_ended: Callable[[], bool] = lambda: False,
        tell: Callable[[str], None] = lambda _: None,
        rest: Callable[[float], None] | None = None,
    ) -> None:
        """`tell` is called with the reason for waiting, and `rest` waits a number of seconds.
        Raises SourceError for an invalid URL."""
        try:
            parts = httpx.URL(url)
        except httpx.InvalidURL:
            parts = httpx.URL("")
        if parts.scheme not in {"http", "https"} or not parts.host or parts.userinfo:
            raise SourceError(f"'{url}' isn't the URL of a server, such as https://zulip.example.")
        self.url = f"{parts.scheme}://{parts.netloc.decode()}"
        self.host = parts.netloc.decode()
        self._level = 0
        self._is_ended = is_ended
        self._tell = tell
        self._rest = rest or self._wait
        self._http = httpx.Client(
            base_url=self.url,
            auth=(email, api_key),
            headers={"User-Agent": f"Tertulia/{__version__}"},
            timeout=httpx.Timeout(30.0, read=120.0),
            trust_env=False,
            verify=authorities.client_context("http/1.1"),
        )

    def close(self) -> None:
        self._http.close()

    def register(self) -> Row:
        """Register an event queue. Return it, with the organization's state."""
        result = self._asked(
            "POST",
            "/register",
            {
                "event_types": EVENT_TYPES,
                "fetch_event_types": STATE,
                "client_capabilities": _CAPABILITIES,
                "all_public_streams": True,
                "include_subscribers": True,
                "apply_markdown": False,
                "client_gravatar": True,
                "slim_presence": True,
                "idle_queue_timeout": 86400,
            },
            attempts=None if self._level else 3,
        )
        self._level = number(result, "zulip_feature_level") or 0
        return result

    def channels(self) -> list[Row]:
        """Return all channels that the owner can see, including archived ones."""
        wanted = {"include_default": True, "exclude_archived": False}
        result = self._asked("GET", "/streams", {**wanted, "include_all": True})
        ignored = result.get("ignored_parameters_unsupported")
        if isinstance(ignored, list) and "include_all" in ignored:  # An older server.
            result = self._asked("GET", "/streams", {**wanted, "include_all_active": True})
        return _rows(result, "streams")

    def subscribers(self, channel_id: int) -> list[int]:
        """Return a channel's subscribers."""
        result = self._asked("GET", f"/streams/{channel_id}/members", {}).get("subscribers")
        return (
            [value for value in result if isinstance(value, int)]
            if isinstance(result, list)
            else []
        )

    def events(self, queue_id: str, last_id: int, *, block: bool) -> list[Row]:
        """Return the events after `last_id`. Raises QueueLost."""
        result = self._asked(
            "GET",
            "/events",
            {"queue_id": queue_id, "last_event_id": last_id, "dont_block": not block},
        )
        return _rows(result, "events")

    def end_queue(self, queue_id: str) -> None:
        """Delete the event queue, if it exists."""
        with contextlib.suppress(QueueLost, SourceError):
            self._asked("DELETE", "/events", {"queue_id": queue_id}, attempts=1)

    def messages_after(self, message_id: int, narrow: Iterable[Row]) -> list[Row]:
        """Return the messages after this one, ascending and at most `PAGE`."""
        result = self._asked(
            "GET",
            "/messages",
            {
                "anchor": message_id,
                "include_anchor": False,
                "num_before": 0,
                "num_after": PAGE,
                "narrow": list(narrow),
                "apply_markdown": False,
                "client_gravatar": True,
                "allow_empty_topic_name": True,
            },
        )
        rows = [row for row in _rows(result, "messages") if (number(row, "id") or 0) > message_id]
        return sorted(rows, key=lambda row: int(row["id"]))

    def newest_id(self) -> int:
        """Return the ID of the newest message that the owner can read; 0 if there's no message."""
        newest = 0
        for narrow in ([{"operator": "streams", "operand": "public"}], []):
            result = self._asked(
                "GET",
                "/messages",
                {
                    "anchor": "newest",
                    "num_before": 1,
                    "num_after": 0,
                    "narrow": narrow,
                    "apply_markdown": False,
                },
            )
            newest = max([newest, *(number(row, "id") or 0 for row in _rows(result, "messages"))])
        return newest

    def messages_with(self, message_ids: Iterable[int]) -> list[Row]:
        """Return the messages among these that exist and that the owner can read, ascending."""
        form = {
            "apply_markdown": False,
            "client_gravatar": True,
            "allow_empty_topic_name": True,
        }
        if self._level < IDS_LEVEL:
            return [
                row
                for message_id in sorted(message_ids)
                if (row := self._message(message_id, form))
            ]
        result = self._asked("GET", "/messages", {"message_ids": list(message_ids), **form})
        rows = [row for row in _rows(result, "messages") if number(row, "id")]
        return sorted(rows, key=lambda row: int(row["id"]))

    def _message(self, message_id: int, form: Row) -> Row | None:
        try:
            result = self._asked("GET", f"/messages/{message_id}", form).get("message")
        except RequestRefused:
            return None
        return result if isinstance(result, dict) else None

    def file(self, path: str) -> BinaryIO:
        """Download a file. Raises FileNotFoundError."""
        target = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
        try:
            for _ in self._waits(f"{path} can't be downloaded"):
                target.seek(0)
                target.truncate()
                with contextlib.suppress(httpx.TransportError):
                    with self._http.stream("GET", path) as response:
                        if response.status_code == 429 or response.status_code >= 500:
                            continue
                        if response.status_code != 200:
                            raise FileNotFoundError(path)
                        for chunk in response.iter_bytes(65_536):
                            target.write(chunk)
                            if target.tell() > MAX_FILE:
                                raise FileNotFoundError(path)
                    target.seek(0)
                    return target
        except BaseException:
            target.close()
            raise
        raise FileNotFoundError(path)

    def _asked(
        self, method: str, path: str, parameters: Row, attempts: int | None = None
    ) -> dict[str, Any]:
        """Return the response. Raises SourceError if the server refuses the request, or if it still
        fails after `attempts` attempts (None: no limit)."""
        texts = {
            name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for name, value in parameters.items()
        }
        where = {"params": texts} if method in {"GET", "DELETE"} else {"data": texts}
        reason = ""
        for pause in self._waits(f"{self.url} doesn't respond", attempts):
            try:
                with self._http.stream(method, f"/api/v1{path}", **where) as response:  # type: ignore[arg-type]
                    status, headers = response.status_code, response.headers
                    body = _read(response)
            except (httpx.TransportError, httpx.DecodingError) as error:
                reason = str(error)[:200] or type(error).__name__
                continue
            decoded = _decoded(body)
            code = text(decoded, "code")
            if status == 200 and decoded.get("result") == "success":
                return decoded
            if code == "BAD_EVENT_QUEUE_ID":
                raise QueueLost
            if status == 429:
                wait = headers.get("retry-after", "")
                seconds = float(wait) if wait.isdecimal() and len(wait) < 6 else pause
                self._rest(min(seconds, MAX_WAIT))
                reason = "it limits the rate of requests"
                continue
            if decoded.get("result") == "error" and status < 500:
                self._refused(status, path, text(decoded, "msg"))
            reason = f"it responds with status {status}"
        raise SourceError(f"{self.url} isn't responding: {reason}.")

    def _refused(self, status: int, path: str, why: str) -> None:
        if status in {401, 403}:
            raise SourceError(
                f"{self.url} rejected the email address or API key: {why[:200]} Use those of an"
                " owner, from `Personal settings`, `Account & privacy`, `API key`."
            )
        raise RequestRefused(f"{self.url} refuses {path}: {why[:200]}")

    def _waits(self, what: str, attempts: int | None = None) -> Iterator[float]:
        """Yield before each attempt the pause in seconds that follows if it fails."""
        n = 0
        while attempts is None or n < attempts:
            pause = PAUSES[min(n, len(PAUSES) - 1)]
            yield pause
            n += 1
            if attempts is None or n < attempts:
                self._tell(f"{what}; trying again in {pause:g} s")
                self._rest(pause)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._is_ended():
                raise Interrupted
            time.sleep(min(left, 0.5))


def _read(response: httpx.Response) -> bytes:
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_RESPONSE:
            raise SourceError("The server's response is far too large.")
    return bytes(content)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _rows(row: Row, name: str) -> list[Row]:
    given = row.get(name)
    return [value for value in given if isinstance(value, dict)] if isinstance(given, list) else []
