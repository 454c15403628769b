"""People and bots talk through Zulip's own client while the server is killed."""

from collections.abc import Callable

import zulip

from tests.e2e.conftest import Site
from tests.e2e.people import Event, Listener, client_of, listening, ok
from tests.e2e.senders import sending
from tests.e2e.server import Account

KILLS = 3


def add_bot(client: zulip.Client) -> Account:
    """Create a bot owned by the client's user, with no subscriptions."""
    request = {"full_name": "Robo", "short_name": "robo", "bot_type": 1}
    made = ok(client.call_endpoint("bots", method="POST", request=request))
    profile = ok(client.get_user_by_id(made["user_id"]))["user"]
    return Account(made["user_id"], profile["email"], made["api_key"])


def test_two_people_and_a_bot_have_a_conversation(site: Site) -> None:
    server = site.server
    with client_of(site.ann, server) as ann, client_of(site.ben, server) as ben:
        robo_account = add_bot(ben)
        people = [site.ann.user_id, site.ben.user_id, robo_account.user_id]
        ok(ann.add_subscriptions([{"name": "kitchen"}], principals=people))
        with (
            client_of(robo_account, server) as robo,
            listening(server, site.ann, site.ben, robo_account) as listeners,
        ):
            in_channel(ann, ben, robo, listeners)
            in_direct_messages(ann, ben, robo_account, listeners)
            presence_and_typing(ann, site.ben, listeners)
        what_there_is(ann, people)
        assert [listener.registrations for listener in listeners] == [1, 1, 1]


def in_channel(
    ann: zulip.Client, ben: zulip.Client, robo: zulip.Client, listeners: list[Listener]
) -> None:
    question = {"type": "stream", "to": "kitchen", "topic": "supper", "content": "Who is hungry?"}
    asked = ok(ann.send_message(question))["id"]
    for listener in listeners:
        heard = listener.hears_message(asked)
        assert (heard["sender_email"], heard["subject"]) == (ann.email, "supper")
    answered = ok(robo.send_message({**question, "content": "Bots never are"}))["id"]
    agreed = ok(ben.send_message({**question, "content": "I am, very"}))["id"]
    for listener in listeners:
        for message_id in (answered, agreed):
            assert listener.hears_message(message_id)["display_recipient"] == "kitchen"

    narrow = [
        {"operator": "channel", "operand": "kitchen"},
        {"operator": "topic", "operand": "supper"},
    ]
    window = {"anchor": "newest", "num_before": 100, "num_after": 0}
    history = ok(ben.get_messages({**window, "narrow": narrow}))
    assert [m["id"] for m in history["messages"]] == [asked, answered, agreed]
    assert (history["found_newest"], history["found_oldest"]) == (True, True)
    assert history["messages"][0]["content"] == "<p>Who is hungry?</p>"

    search = [{"operator": "search", "operand": "hungry"}]
    found = ok(ben.get_messages({**window, "narrow": search}))["messages"]
    assert [m["id"] for m in found] == [asked]
    assert "highlight" in found[0]["match_content"]

    # Includes his own: a message sent by a program isn't marked as read for its sender.
    seen = [asked, answered, agreed]
    flags = {"messages": seen, "op": "add", "flag": "read"}
    assert ok(ben.update_message_flags(flags))["messages"] == seen
    read = listeners[1].hears(lambda e: e["type"] == "update_message_flags")
    assert (read["op"], read["flag"], read["messages"]) == ("add", "read", seen)
    unread = [*narrow, {"operator": "is", "operand": "unread"}]
    assert ok(ben.get_messages({**window, "narrow": unread}))["messages"] == []


def in_direct_messages(
    ann: zulip.Client, ben: zulip.Client, robo: Account, listeners: list[Listener]
) -> None:
    to_ann = {"type": "private", "to": [ann.email], "content": "Between us"}
    whispered = ok(ben.send_message(to_ann))["id"]
    ann_hears, ben_hears, robo_hears = listeners
    for listener in (ann_hears, ben_hears):
        assert listener.hears_message(whispered)["type"] == "private"
    both = {"type": "private", "to": [ben.email, robo.email], "content": "All of us"}
    announced = ok(ann.send_message(both))["id"]
    for listener in listeners:
        recipients = listener.hears_message(announced)["display_recipient"]
        assert {one["email"] for one in recipients} == {ann.email, ben.email, robo.email}
    assert whispered not in [message_id for message_id, _ in robo_hears.messages()]

    narrow = [{"operator": "dm", "operand": [ben.email]}]
    window = {"anchor": "newest", "num_before": 10, "num_after": 0, "narrow": narrow}
    assert [m["id"] for m in ok(ann.get_messages(window))["messages"]] == [whispered]


def is_typing(op: str) -> Callable[[Event], bool]:
    return lambda event: event["type"] == "typing" and event["op"] == op


def presence_and_typing(ann: zulip.Client, ben: Account, listeners: list[Listener]) -> None:
    ann_id = listeners[0].account.user_id
    ok(ann.update_presence({"status": "active", "ping_only": False, "new_user_input": True}))
    seen = listeners[1].hears(lambda e: e["type"] == "presence" and e["user_id"] == ann_id)
    assert seen["presence"]["website"]["status"] == "active"
    for op in ("start", "stop"):
        ok(ann.set_typing_status({"op": op, "to": [ben.user_id]}))
        typing = listeners[1].hears(is_typing(op))
        assert typing["sender"]["user_id"] == ann_id


def what_there_is(ann: zulip.Client, people: list[int]) -> None:
    assert {m["user_id"] for m in ok(ann.get_users())["members"]} >= set(people)
    channels = {c["name"]: c["stream_id"] for c in ok(ann.get_streams())["streams"]}
    assert {"general", "kitchen"} <= set(channels)
    topics = ok(ann.get_stream_topics(channels["kitchen"]))["topics"]
    assert topics[0]["name"] == "supper"
    assert ok(ann.get_profile())["user_id"] == people[0]


def test_a_killed_server_loses_no_acknowledged_message(site: Site) -> None:
    server, ann, ben = site.server, site.ann, site.ben
    in_channel = {"type": "stream", "to": "general", "topic": "storm"}
    direct = {"type": "private", "to": [ben.user_id]}
    with listening(server, ann, ben) as listeners:
        with sending(
            server,
            ("ann", ann, in_channel),
            ("ben", ben, in_channel),
            ("again ann", ann, in_channel),
            ("direct", ann, direct),
        ) as tally:
            for _ in range(KILLS):
                newest = tally.wait_for_more(20)
                for listener in listeners:
                    listener.hears_message(newest)
                server.kill()
                server.start()
            tally.wait_for_more(20)
        assert not tally.errors
        with client_of(ann, server) as client:
            last = ok(client.send_message({**in_channel, "content": "the end"}))["id"]
            for listener in listeners:
                listener.hears_message(last)
            history = whole_history(client)

    acknowledged = set(tally.acknowledged)
    assert acknowledged <= history, "what was acknowledged is there"
    for listener in listeners:
        ids = [event["id"] for event in listener.events]
        assert ids == sorted(set(ids)), "event IDs strictly increase"
        heard = listener.messages()
        assert len(heard) == len(set(heard)), "each message comes once"
        assert set(heard) == history, "what is heard is what is there"
        assert listener.registrations == 1, "the queue carries on"
    contents = [content for message_id, content in history if message_id != last]
    assert len(contents) == len(set(contents)), "what was attempted once is there once at most"
    assert set(contents) <= tally.attempted


def whole_history(client: zulip.Client) -> set[tuple[int, str]]:
    """Everything the client's user can read: message IDs and contents."""
    found: set[tuple[int, str]] = set()
    anchor: int | str = "oldest"
    while True:
        window = {"anchor": anchor, "num_before": 0, "num_after": 1000, "apply_markdown": False}
        page = ok(client.get_messages({**window, "include_anchor": anchor == "oldest"}))
        found.update((m["id"], m["content"]) for m in page["messages"])
        if page["found_newest"]:
            return found
        anchor = page["messages"][-1]["id"]
