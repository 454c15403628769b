"""The requests that are sent, as they go over the wire."""

import base64
import json
from urllib.parse import urlencode

CONTENT = "Shall we have supper at **seven**? The others come a little later, as far as I know."


def basic(email: str, api_key: str) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{email}:{api_key}".encode()).decode()


def get(target: str, authorization: str) -> str:
    """A request for a path below /api/v1."""
    return (
        f"GET /api/v1{target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n\r\n"
    )


def _post(target: str, authorization: str, form: dict[str, str]) -> str:
    body = urlencode(form)
    return (
        f"POST /api/v1{target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        f"{body}"
    )


def empty(authorization: str) -> str:
    """A request that needs an account and no database."""
    return get("/users/me", authorization)


def send(authorization: str, channel: str, topic: str) -> str:
    """A channel message."""
    form = {"type": "stream", "to": channel, "topic": topic, "content": CONTENT}
    return _post("/messages", authorization, form)


def register(authorization: str) -> bytes:
    """A queue for messages."""
    return _post("/register", authorization, {"event_types": json.dumps(["message"])}).encode()


def poll(authorization: str, queue_id: str, last_event_id: int) -> bytes:
    """Wait for the queue's next events."""
    target = f"/events?queue_id={queue_id}&last_event_id={last_event_id}"
    return get(target, authorization).encode()
