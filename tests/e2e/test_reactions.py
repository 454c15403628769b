"""Reactions, personal emoji, polls, alert words, and marking as read, through Zulip's own
client."""

import io
import json
from collections.abc import Callable
from typing import Any

import requests
import zulip

from tests.e2e.conftest import Site
from tests.e2e.people import PATIENCE, client_of, listening, ok
from tests.property.histories import picture

KRAKEN = {"emoji_name": "octopus", "emoji_code": "1f419", "reaction_type": "unicode_emoji"}


def test_message_features_work_with_zulips_client(site: Site) -> None:
    server = site.server
    with client_of(site.ann, server) as ann, client_of(site.ben, server) as ben:
        types = ["message", "reaction", "submessage", "realm_emoji", "alert_words"]
        with listening(server, site.ann, event_types=types) as (listener,):
            reacting(ann, ben, listener)
            an_emoji_of_their_own(ann, ben, server.url, listener)
            a_poll(ann, ben, site.ben.user_id, listener)
            alert_words(ann, ben, listener)
        marking_as_read(ann, ben)


def say(client: zulip.Client, content: str) -> int:
    request = {"type": "stream", "to": "general", "topic": "tea", "content": content}
    message_id: int = ok(client.send_message(request))["id"]
    return message_id


def seen(client: zulip.Client, message_id: int) -> dict[str, Any]:
    message: dict[str, Any] = ok(client.call_endpoint(f"messages/{message_id}", method="GET"))[
        "message"
    ]
    return message


def reacting(ann: zulip.Client, ben: zulip.Client, listener: Any) -> None:
    said = say(ann, "Who wants tea?")
    ok(ben.add_reaction({"message_id": said, "emoji_name": "+1"}))
    ok(ben.add_reaction({"message_id": said, **KRAKEN}))
    again = ben.add_reaction({"message_id": said, **KRAKEN})
    assert (again["result"], again["code"]) == ("error", "REACTION_ALREADY_EXISTS")
    assert [one["emoji_code"] for one in seen(ann, said)["reactions"]] == ["1f44d", "1f419"]
    ok(ben.remove_reaction({"message_id": said, **KRAKEN}))
    again = ben.remove_reaction({"message_id": said, **KRAKEN})
    assert (again["result"], again["code"]) == ("error", "REACTION_DOES_NOT_EXIST")
    gone = listener.hears(lambda event: (event["type"], event.get("op")) == ("reaction", "remove"))
    assert (gone["message_id"], gone["emoji_name"]) == (said, "octopus")
    assert gone["user"]["full_name"] == "Ben"


def an_emoji_of_their_own(ann: zulip.Client, ben: zulip.Client, url: str, listener: Any) -> None:
    file = io.BytesIO(picture())
    file.name = "gopher.png"
    ok(ben.upload_custom_emoji("gopher", file))
    (emoji,) = ok(ann.get_realm_emoji())["emoji"].values()
    assert (emoji["name"], emoji["deactivated"]) == ("gopher", False)
    shown = requests.get(url + emoji["source_url"], timeout=PATIENCE)
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")
    heard = listener.hears(lambda event: event["type"] == "realm_emoji")
    assert heard["realm_emoji"][emoji["id"]] == emoji
    said = say(ann, "Look")
    ok(ann.add_reaction({"message_id": said, "emoji_name": "gopher"}))
    ok(ben.delete_custom_emoji("gopher"))
    assert ben.delete_custom_emoji("gopher")["result"] == "error"
    assert seen(ben, said)["reactions"][0]["reaction_type"] == "realm_emoji"


def a_poll(ann: zulip.Client, ben: zulip.Client, ben_id: int, listener: Any) -> None:
    said = say(ann, "/poll Tea?\nyes\nno")
    vote = json.dumps({"type": "vote", "key": "canned,1", "vote": 1})
    request = {"message_id": said, "msg_type": "widget", "content": vote}
    ok(ben.call_endpoint("submessage", method="POST", request=request))
    heard = listener.hears(lambda event: event["type"] == "submessage")
    assert (heard["sender_id"], heard["content"]) == (ben_id, vote)
    assert [part["content"] for part in seen(ann, said)["submessages"]][1:] == [vote]


def alert_words(ann: zulip.Client, ben: zulip.Client, listener: Any) -> None:
    assert ok(ann.add_alert_words(["Gopher", "tea"]))["alert_words"] == ["Gopher", "tea"]
    assert ok(ann.get_alert_words())["alert_words"] == ["Gopher", "tea"]
    said = say(ben, "A gopher!")
    assert listener.hears(lambda event: event["type"] == "alert_words")
    heard = listener.hears(
        lambda event: event["type"] == "message" and event["message"]["id"] == said
    )
    assert heard["flags"] == ["has_alert_word"]
    assert ok(ann.remove_alert_words(["gopher"]))["alert_words"] == ["tea"]


def marking_as_read(ann: zulip.Client, ben: zulip.Client) -> None:
    general = ok(ann.get_stream_id("general"))["stream_id"]

    def unread() -> int:
        count: int = ok(ben.register(fetch_event_types=["message", "update_message_flags"]))[
            "unread_msgs"
        ]["count"]
        return count

    marks: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: ben.mark_topic_as_read(general, "tea"),
        lambda: ben.mark_stream_as_read(general),
        lambda: ben.mark_all_as_read(),
    )
    for mark in marks:
        said = say(ann, "one more **cup**")
        assert unread() > 0
        ok(mark())
        assert unread() == 0
    receipts = ok(ann.call_endpoint(f"messages/{said}/read_receipts", method="GET"))
    assert len(receipts["user_ids"]) == 1
    # The client's annotation wants a dictionary for each parameter.
    asked: dict[str, Any] = {
        "msg_ids": [said],
        "narrow": [{"operator": "search", "operand": "cup"}],
    }
    found = ok(ann.check_messages_match_narrow(**asked))["messages"]
    assert "highlight" in found[str(said)]["match_content"]
    assert ok(ann.render_message({"content": "*tea*"}))["rendered"] == "<p><em>tea</em></p>"
