"""Scheduled messages that become due while the server is down or running."""

import time
from typing import Any

import zulip

from tests.e2e.conftest import Site
from tests.e2e.people import client_of, listening, ok


def post(client: zulip.Client, path: str, **sent: Any) -> dict[str, Any]:
    return ok(client.call_endpoint(path, method="POST", request=sent))


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

        def schedule(content: str, at: int) -> None:
            sent = {"type": "channel", "to": general, "topic": "storm", "content": content}
            post(ann, "scheduled_messages", **sent, scheduled_delivery_timestamp=at)

        def schedule_soon(content: str) -> int:
            """Schedule a message as soon as possible. Return its time, which is later if the
            machine was too slow."""
            while True:
                at = int(time.time()) + 2
                sent = {"type": "channel", "to": general, "topic": "storm", "content": content}
                sent["scheduled_delivery_timestamp"] = at
                answer = ann.call_endpoint("scheduled_messages", method="POST", request=sent)
                if "in the future" not in answer["msg"]:
                    ok(answer)
                    return at

        with listening(server, site.ben) as (listener,):
            soon = schedule_soon("while it runs")
            event = listener.hears(
                lambda e: e["type"] == "message" and e["message"]["content"] == "while it runs"
            )
            assert event["message"]["timestamp"] >= soon
            at = int(time.time()) + 5
            for number in range(5):
                schedule(f"while it is down {number}", at)
            post(ann, "reminders", message_id=asked["id"], scheduled_delivery_timestamp=at)
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
            schedule_soon("the end")
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
