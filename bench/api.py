"""Requests as they're sent over the socket."""

import base64
import json
import re
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

HOST = "127.0.0.1"
CONTENT = "Shall we have supper at **seven**? The others come a little later, as far as I know."
OK, REFUSED = b"200", b"503"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class BadAnswer(Exception):
    """The server's response wasn't a success, or there was no response."""


def basic(email: str, api_key: str) -> str:
    """Return the value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{email}:{api_key}".encode()).decode()


def get(target: str, authorization: str) -> str:
    """Return a request to a path below /api/v1."""
    return (
        f"GET /api/v1{target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n\r\n"
    )


def form(method: str, target: str, authorization: str, values: Mapping[str, Any]) -> str:
    """Return a request with a form. Values that aren't strings are sent as JSON."""
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}
    body = urlencode(texts)
    return (
        f"{method} /api/v1{target} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: {authorization}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        f"{body}"
    )


def request(method: str, target: str, authorization: str, **values: Any) -> str:
    """Return a request with parameters: in the query for GET, and otherwise in a form."""
    if method != "GET":
        return form(method, target, authorization, values)
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}
    return get(f"{target}?{urlencode(texts)}" if texts else target, authorization)


def empty(authorization: str) -> str:
    """Return an authenticated request that needs no database."""
    return get("/users/me", authorization)


def send(authorization: str, channel: str, topic: str) -> str:
    """Return a request that sends a channel message."""
    values = {"type": "stream", "to": channel, "topic": topic, "content": CONTENT}
    return form("POST", "/messages", authorization, values)


def listen(authorization: str) -> str:
    """Return a request that registers a queue for messages without fetching data."""
    values = {"event_types": ["message"], "fetch_event_types": []}
    return form("POST", "/register", authorization, values)


def register(authorization: str) -> str:
    """Return a request that registers a queue for everything and fetches all data, like a starting
    client."""
    values = {"apply_markdown": True, "client_gravatar": True, "slim_presence": True}
    return form("POST", "/register", authorization, values)


def read_everything(authorization: str) -> str:
    """Return a request that marks all messages as read, or as many as one request can."""
    return form("POST", "/mark_all_as_read", authorization, {})


def users(authorization: str) -> str:
    """Return a request for all users."""
    return get("/users", authorization)


def newest(authorization: str, narrow: list[list[str]]) -> str:
    """Return a request for the newest 100 messages in a narrow."""
    text = quote(json.dumps(narrow))
    page = f"/messages?anchor=newest&num_before=100&num_after=0&narrow={text}"
    return get(page, authorization)


def by_id(authorization: str, ids: list[int]) -> str:
    """Return a request for messages by ID."""
    return get(f"/messages?message_ids={quote(json.dumps(ids))}", authorization)


def poll_around(authorization: str, queue_id: str) -> tuple[bytes, bytes]:
    """Return a poll of the queue, as the parts before and after `last_event_id`."""
    before, after = get(f"/events?queue_id={queue_id}&last_event_id=|", authorization).split("|")
    return before.encode(), after.encode()


def end_of(answer: bytes | bytearray, expected: frozenset[bytes] | None = frozenset({OK})) -> int:
    """Return the length of the complete response, or 0 if its headers are incomplete. Raises
    BadAnswer for an unexpected status."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return 0
    length = _LENGTH.search(answer, 0, end + 2)
    if length is None or (expected is not None and bytes(answer[9:12]) not in expected):
        raise BadAnswer(answer.decode(errors="replace")[:2000])
    return end + 4 + int(length[1])


def asked(port: int, request: str, seconds: float = 60) -> bytes:
    """Send a request on a new connection and return the whole response. `seconds` limits the wait
    for each part of it. Raises OSError and BadAnswer."""
    with socket.create_connection((HOST, port), seconds) as connection:
        connection.sendall(request.encode())
        answer = b""
        needed = 0
        while not needed or len(answer) < needed:
            data = connection.recv(1 << 18)
            if not data:
                raise BadAnswer("the connection was closed")
            answer += data
            needed = needed or end_of(answer)
        return answer


def body_of(answer: bytes) -> bytes:
    """Return the response's body."""
    return answer[answer.index(b"\r\n\r\n") + 4 :]
