"""Clients in a thread that wait for all events."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.api import BadAnswer, body_of, form, poll_around
from bench.connections import Connection, Loop

OLD = 20
"""One client out of this many has no capabilities except bulk deletion of messages. Without that,
its queue would end when thousands are deleted."""
CAPABILITIES = {
    "notification_settings_null": True,
    "bulk_message_deletion": True,
    "user_avatar_url_field_optional": True,
    "stream_typing_notifications": True,
    "user_settings_object": True,
    "linkifier_url_template": True,
    "user_list_incomplete": True,
    "include_deactivated_groups": True,
    "archived_channels": True,
    "empty_topic_name": True,
}


class _Listener:
    def __init__(self, loop: Loop, port: int, number: int, authorization: str) -> None:
        self._connection = Connection(loop, port, number)
        old = number % OLD == OLD - 1
        values = {
            "fetch_event_types": [],
            "apply_markdown": True,
            "client_gravatar": True,
            "client_capabilities": {"bulk_message_deletion": True} if old else CAPABILITIES,
        }
        answer = self._connection.answer(form("POST", "/register", authorization, values).encode())
        registered = json.loads(body_of(answer))
        self._before, self._after = poll_around(authorization, registered["queue_id"])
        self._last: int = registered["last_event_id"]
        self.answers = 0

    def poll(self) -> None:
        request = self._before + str(self._last).encode() + self._after
        self._connection.ask(request, self._heard)

    def _heard(self, answer: bytes) -> None:
        self.answers += 1
        events = json.loads(body_of(answer))["events"]
        if events:
            self._last = events[-1]["id"]
        self.poll()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def listening(port: int, people: Sequence[str]) -> Iterator[None]:
    """Let each of these people wait with one client, within the context. Raises BadAnswer at the
    end if a request was refused."""
    loop = Loop()
    over = threading.Event()
    errors: list[BadAnswer] = []
    clients = [_Listener(loop, port, number, person) for number, person in enumerate(people)]

    def listen() -> None:
        try:
            for client in clients:
                client.poll()
            while not over.is_set():
                loop.turn(0.1)
        except BadAnswer as error:
            errors.append(error)

    thread = threading.Thread(target=listen, name="listeners")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for client in clients:
            client.close()
    if errors:
        raise errors[0]
