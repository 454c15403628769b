"""Scheduled messages that become due while the server is down or running."""

import time
from typing import Any

import zulip

from tests.e2e.conftest import Site
from tests.e2e.people import client_of, listening, ok


def sent_messages(client: zulip.Client) -> list[str]:
    """All messages by people, as Markdown."""
    window = {"anchor": "newest", "num_before": 100, "num_after": 0, "apply_markdown": False}
    return [message["content"] for message in ok(client.get_messages(window))["messages"]]


def test_scheduled_messages_are_sent_exactly_once_despite_restarts(site: Site) -> None:
    server = site.server
    with client_of(site.ann, server) as ann, client_of(site.ben, server) as ben:
        general = ok(ann.get_stream_id("general"))["stream_id"]
        asked = ok(
            ann.send_message({"type": "stream", "to": "general", "topic": "t", "content": "?"})
        )

        def due(path: str, seconds: int, **sent: Any) -> int:
            """Ask for something in this many seconds. Return its time, which is later if the
            machine was too slow."""
            while True:
                at = int(time.time()) + seconds
                request = {**sent, "scheduled_delivery_timestamp": at}
                answer = ann.call_endpoint(path, method="POST", request=request)
                if "in the future" not in answer["msg"]:
                    ok(answer)
                    return at

        def schedule(content: str, seconds: int = 2) -> int:
            sent = {"type": "channel", "to": general, "topic": "storm", "content": content}
            return due("scheduled_messages", seconds, **sent)

        with listening(server, site.ben) as (listener,):
            soon = schedule("while it runs")
            event = listener.hears(
                lambda e: e["type"] == "message" and e["message"]["content"] == "while it runs"
            )
            assert event["message"]["timestamp"] >= soon
            at = max(
                *(schedule(f"while it is down {number}", 5) for number in range(5)),
                due("reminders", 5, message_id=asked["id"]),
            )
            server.kill()
            while time.time() <= at:
                # Only the machine's clock can make it due, and no event precedes it.
                time.sleep(0.1)
            server.start()
            last = listener.hears(
                lambda e: e["type"] == "message" and e["message"]["content"].endswith("down 4")
            )
            server.kill()
            server.start()
            schedule("the end")
            listener.hears(
                lambda e: e["type"] == "message" and e["message"]["content"] == "the end"
            )
            contents = [content for _, content in listener.messages()]
        expected = [f"while it is down {number}" for number in range(5)]
        assert contents == ["while it runs", *expected, "the end"]
        assert sent_messages(ben)[-7:] == ["while it runs", *expected, "the end"]
        assert last["message"]["sender_email"] == site.ann.email
        assert len([text for text in sent_messages(ann) if "asked to be reminded" in text]) == 1
        for path, key in (("scheduled_messages", "scheduled_messages"), ("reminders", "reminders")):
            assert ok(ann.call_endpoint(path, method="GET"))[key] == []
