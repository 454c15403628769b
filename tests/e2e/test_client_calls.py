"""A day of work with the calls of Zulip's own client, checking each response."""

import io
import time
from typing import Any

import requests
import zulip

from tests.e2e.conftest import Site
from tests.e2e.people import PATIENCE, client_of, ok
from tests.pictures import picture

Answer = dict[str, Any]


def call(client: zulip.Client, method: str, path: str, sent: Any = None) -> Answer:
    """Call an endpoint for which the client has no method."""
    return ok(client.call_endpoint(path, method=method, request=sent))


def say(client: zulip.Client, content: str, topic: str = "tea", to: str = "general") -> int:
    message = {"type": "stream", "to": to, "topic": topic, "content": content}
    message_id: int = ok(client.send_message(message))["id"]
    return message_id


def messages(client: zulip.Client, *narrow: tuple[str, Any]) -> list[Answer]:
    terms = [{"operator": operator, "operand": operand} for operator, operand in narrow]
    window = {"anchor": "newest", "num_before": 50, "num_after": 0, "narrow": terms}
    found: list[Answer] = ok(client.get_messages(window))["messages"]
    return found


def named(name: str, content: bytes) -> io.BytesIO:
    file = io.BytesIO(content)
    file.name = name
    return file


def test_messages_are_edited_moved_and_deleted(shared_site: Site) -> None:
    with (
        client_of(shared_site.ann, shared_site.server) as ann,
        client_of(shared_site.ben, shared_site.server) as ben,
    ):
        said = say(ann, "first *draft*")
        answer = ok(ann.update_message({"message_id": said, "content": "second **draft**"}))
        assert answer["detached_uploads"] == []
        raw = ok(ben.get_raw_message(said))
        assert raw["raw_content"] == "second **draft**"
        assert "<strong>draft</strong>" in raw["message"]["content"]
        then, now = ok(ben.get_message_history(said))["message_history"]
        assert (then["content"], now["content"]) == ("first *draft*", "second **draft**")
        assert (now["prev_content"], now["user_id"]) == ("first *draft*", shared_site.ann.user_id)

        both = [shared_site.ann.user_id, shared_site.ben.user_id]
        ok(ann.add_subscriptions([{"name": "kitchen"}], principals=both))
        later = say(ann, "and another")
        ok(ann.move_topic("general", "kitchen", "tea", "supper"))
        moved = messages(ben, ("channel", "kitchen"), ("topic", "supper"))
        assert [m["id"] for m in moved if m["sender_id"] == shared_site.ann.user_id] == [
            said,
            later,
        ]
        left = messages(ben, ("channel", "general"), ("topic", "tea"))
        assert said not in [m["id"] for m in left]
        assert {m["sender_email"] for m in left} <= {m["sender_email"] for m in moved}

        assert ben.delete_message(said)["result"] == "error"
        ok(ann.delete_message(said))
        gone = ann.delete_message(said)
        assert (gone["result"], gone["code"]) == ("error", "BAD_REQUEST")
        assert ben.get_message_history(said)["result"] == "error"


def test_messages_are_flagged_read_and_rendered(shared_site: Site) -> None:
    with (
        client_of(shared_site.ann, shared_site.server) as ann,
        client_of(shared_site.ben, shared_site.server) as ben,
    ):
        said = say(ann, "read **this**")
        for flag in ("starred", "read"):
            marked = ok(ben.update_message_flags({"messages": [said], "op": "add", "flag": flag}))
            assert marked["messages"] == [said]
        assert [m["id"] for m in messages(ben, ("is", "starred"))] == [said]
        receipts = call(ann, "GET", f"messages/{said}/read_receipts")
        assert receipts["user_ids"] == [shared_site.ben.user_id]
        ok(ben.update_message_flags({"messages": [said], "op": "remove", "flag": "starred"}))
        assert messages(ben, ("is", "starred")) == []
        rendered = ok(ben.render_message({"content": "~~no~~"}))["rendered"]
        assert rendered == "<p><del>no</del></p>"
        # The client's annotation wants a dictionary for each parameter.
        asked: dict[str, Any] = {
            "msg_ids": [said],
            "narrow": [{"operator": "has", "operand": "link"}],
        }
        matching = ok(ben.check_messages_match_narrow(**asked))
        assert matching["messages"] == {}


def test_unsent_messages_are_stored(shared_site: Site) -> None:
    with (
        client_of(shared_site.ann, shared_site.server) as ann,
        client_of(shared_site.ben, shared_site.server) as ben,
    ):
        general = ok(ann.get_stream_id("general"))["stream_id"]
        draft = {"type": "stream", "to": [general], "topic": "tea", "content": "hm"}
        (draft_id,) = call(ann, "POST", "drafts", {"drafts": [draft]})["ids"]
        call(ann, "PATCH", f"drafts/{draft_id}", {"draft": {**draft, "content": "hm, hm"}})
        (kept,) = call(ann, "GET", "drafts")["drafts"]
        assert (kept["id"], kept["content"], kept["to"]) == (draft_id, "hm, hm", [general])
        assert call(ben, "GET", "drafts")["count"] == 0
        call(ann, "DELETE", f"drafts/{draft_id}")
        assert call(ann, "GET", "drafts")["drafts"] == []

        later = int(time.time()) + 3600
        planned = {
            "type": "channel",
            "to": general,
            "topic": "tea",
            "content": "*later*",
            "scheduled_delivery_timestamp": later,
        }
        planned_id = call(ann, "POST", "scheduled_messages", planned)["scheduled_message_id"]
        path = f"scheduled_messages/{planned_id}"
        call(ann, "PATCH", path, {"content": "**later**"})
        (shown,) = call(ann, "GET", "scheduled_messages")["scheduled_messages"]
        assert shown["rendered_content"] == "<p><strong>later</strong></p>"
        assert (shown["to"], shown["failed"]) == (general, False)
        assert shown["scheduled_delivery_timestamp"] == later
        call(ann, "DELETE", path)
        again = ann.call_endpoint(path, method="DELETE")
        assert again["result"] == "error"

        snippet = {"title": "Hello", "content": "Hello there"}
        snippet_id = call(ann, "POST", "saved_snippets", snippet)["saved_snippet_id"]
        (snippet_kept,) = call(ann, "GET", "saved_snippets")["saved_snippets"]
        assert (snippet_kept["id"], snippet_kept["title"]) == (snippet_id, "Hello")
        call(ann, "DELETE", f"saved_snippets/{snippet_id}")
        said = say(ann, "do this")
        remind = {"message_id": said, "scheduled_delivery_timestamp": later}
        reminder_id = call(ann, "POST", "reminders", remind)["reminder_id"]
        (reminder,) = call(ann, "GET", "reminders")["reminders"]
        assert (reminder["reminder_id"], reminder["reminder_target_message_id"]) == (
            reminder_id,
            said,
        )
        call(ann, "DELETE", f"reminders/{reminder_id}")


def test_files_and_emoji_are_uploaded_and_downloaded(shared_site: Site) -> None:
    url = shared_site.server.url
    with (
        client_of(shared_site.ann, shared_site.server) as ann,
        client_of(shared_site.ben, shared_site.server) as ben,
    ):
        answer = ok(ann.upload_file(named("plan.txt", b"the plan")))
        assert (answer["filename"], answer["uri"]) == ("plan.txt", answer["url"])
        said = say(ann, f"[plan]({answer['url']})")
        sign_in = (shared_site.ben.email, shared_site.ben.api_key)
        opened = requests.get(url + answer["url"], auth=sign_in, timeout=PATIENCE)
        assert opened.content == b"the plan"
        assert requests.get(url + answer["url"], timeout=PATIENCE).status_code == 403
        temporary = call(ben, "GET", answer["url"].removeprefix("/"))["url"]
        assert requests.get(url + temporary, timeout=PATIENCE).content == b"the plan"
        (attachment,) = ok(ann.get_attachments())["attachments"]
        assert (attachment["name"], attachment["size"]) == ("plan.txt", 8)
        assert attachment["message_ids"] == [said]
        edited = ok(ann.update_message({"message_id": said, "content": "no plan"}))
        assert [one["id"] for one in edited["detached_uploads"]] == [attachment["id"]]
        call(ann, "DELETE", f"attachments/{attachment['id']}")
        assert ok(ann.get_attachments())["attachments"] == []
        assert requests.get(url + answer["url"], auth=sign_in, timeout=PATIENCE).status_code == 404

        ok(ann.upload_custom_emoji("gopher", named("gopher.png", picture(64, 64))))
        (emoji,) = ok(ben.get_realm_emoji())["emoji"].values()
        assert (emoji["name"], emoji["author_id"]) == ("gopher", shared_site.ann.user_id)
        assert requests.get(url + emoji["source_url"], timeout=PATIENCE).status_code == 200
        ok(ben.add_reaction({"message_id": said, "emoji_name": "gopher"}))
        ok(ben.remove_reaction({"message_id": said, "emoji_name": "gopher"}))
        ok(ann.delete_custom_emoji("gopher"))
        assert ben.add_reaction({"message_id": said, "emoji_name": "gopher"})["result"] == "error"


def test_the_organization_is_administered(shared_site: Site) -> None:
    with (
        client_of(shared_site.ann, shared_site.server) as ann,
        client_of(shared_site.ben, shared_site.server) as ben,
    ):
        settings = ok(ann.get_server_settings())
        assert settings["realm_name"] == "Example"
        linkifier = ok(ann.add_realm_filter("#(?P<id>[0-9]+)", "https://bugs.test/{id}"))["id"]
        (listed,) = ok(ben.get_realm_linkifiers())["linkifiers"]
        assert (listed["id"], listed["url_template"]) == (linkifier, "https://bugs.test/{id}")
        rendered = ok(ben.render_message({"content": "#7"}))["rendered"]
        assert rendered == '<p><a href="https://bugs.test/7">#7</a></p>'
        assert ben.remove_realm_filter(linkifier)["result"] == "error"
        ok(ann.remove_realm_filter(linkifier))
        assert ok(ben.get_realm_linkifiers())["linkifiers"] == []

        phone = ok(ann.create_realm_profile_field(name="Phone", hint="here", field_type=1))["id"]
        home = ok(ann.create_realm_profile_field(name="Home", field_type=2))["id"]
        ok(ann.reorder_realm_profile_fields(order=[home, phone]))
        ok(ann.update_realm_profile_field(field_id=phone, name="Telephone"))
        fields = ok(ben.get_realm_profile_fields())["custom_fields"]
        assert [one["name"] for one in fields] == ["Home", "Telephone"]
        call(ben, "PATCH", "users/me/profile_data", {"data": [{"id": phone, "value": "*1*"}]})
        seen = ok(ann.get_user_by_id(shared_site.ben.user_id, include_custom_profile_fields=True))
        assert seen["user"]["profile_data"][str(phone)]["value"] == "*1*"
        ok(ann.remove_realm_profile_field(phone))
        assert len(ok(ben.get_realm_profile_fields())["custom_fields"]) == 1

        new = {
            "email": "cleo@example.com",
            "full_name": "Cleo",
            "password": "quite a long one indeed",
        }
        cleo = ok(ann.create_user(new))["user_id"]
        ok(ann.update_user_by_id(cleo, full_name="Cleopatra"))
        ok(ann.deactivate_user_by_id(cleo))
        ok(ann.reactivate_user_by_id(cleo))
        people = {one["user_id"]: one for one in ok(ben.get_members())["members"]}
        assert (people[cleo]["full_name"], people[cleo]["is_active"]) == ("Cleopatra", True)


def test_groups_and_channels_are_managed(shared_site: Site) -> None:
    with (
        client_of(shared_site.ann, shared_site.server) as ann,
        client_of(shared_site.ben, shared_site.server) as ben,
    ):
        ann_id, ben_id = shared_site.ann.user_id, shared_site.ben.user_id
        made = {"name": "cooks", "description": "They cook", "members": [ann_id]}
        group = ok(ann.create_user_group(made))["group_id"]
        ok(ann.update_user_group({"group_id": group, "description": "They still cook"}))
        ok(ann.update_user_group_members(group, {"add": [ben_id], "delete": [ann_id]}))
        shown = {one["id"]: one for one in ok(ben.get_user_groups())["user_groups"]}[group]
        assert (shown["description"], shown["members"]) == ("They still cook", [ben_id])
        members = call(ben, "GET", f"user_groups/{group}/members")["members"]
        assert members == [ben_id]
        said = say(ann, "@*cooks* what is there?")
        assert "mentioned" in {m["id"]: m for m in messages(ben)}[said]["flags"]
        call(ann, "POST", f"user_groups/{group}/deactivate")
        assert group not in [one["id"] for one in ok(ben.get_user_groups())["user_groups"]]

        subscribed = ok(ann.add_subscriptions([{"name": "bakery"}], principals=[ann_id, ben_id]))
        assert subscribed["subscribed"] == {str(ann_id): ["bakery"], str(ben_id): ["bakery"]}
        bakery = ok(ben.get_stream_id("bakery"))["stream_id"]
        ok(ann.update_stream({"stream_id": bakery, "description": "Pots"}))
        (channel,) = (one for one in ok(ben.get_streams())["streams"] if one["stream_id"] == bakery)
        assert channel["description"] == "Pots"
        assert set(ok(ben.get_subscribers(stream="bakery"))["subscribers"]) == {ann_id, ben_id}
        colour = {"stream_id": bakery, "property": "color", "value": "#112233"}
        ok(ben.update_subscription_settings([colour]))
        (own,) = (
            one
            for one in ok(ben.get_subscriptions())["subscriptions"]
            if one["stream_id"] == bakery
        )
        assert own["color"] == "#112233"
        ok(ann.add_default_stream(bakery))
        assert ok(ann.get_subscription_status(ben_id, bakery))["is_subscribed"] is True
        assert ok(ben.remove_subscriptions(["bakery"]))["removed"] == ["bakery"]
        assert ok(ann.get_subscription_status(ben_id, bakery))["is_subscribed"] is False
        ok(ann.delete_stream(bakery))
        assert bakery not in [one["stream_id"] for one in ok(ben.get_streams())["streams"]]


def test_people_manage_their_own_settings(shared_site: Site) -> None:
    with (
        client_of(shared_site.ann, shared_site.server) as ann,
        client_of(shared_site.ben, shared_site.server) as ben,
    ):
        ann_id = shared_site.ann.user_id
        general = ok(ben.get_stream_id("general"))["stream_id"]
        assert ok(ben.add_alert_words(["gopher"]))["alert_words"] == ["gopher"]
        alerted = say(ann, "a gopher")
        assert "has_alert_word" in {m["id"]: m for m in messages(ben)}[alerted]["flags"]
        assert ok(ben.remove_alert_words(["gopher"]))["alert_words"] == []
        ok(ben.mute_topic({"stream": "general", "topic": "noise", "op": "add"}))
        noise = {"stream_id": general, "topic": "noise", "visibility_policy": 3}
        call(ben, "POST", "user_topics", noise)
        topics = ok(ben.register(fetch_event_types=["user_topic"]))["user_topics"]
        assert [t["visibility_policy"] for t in topics if t["topic_name"] == "noise"] == [3]

        call(ben, "POST", f"users/me/muted_users/{ann_id}")
        (muted,) = ok(ben.register(fetch_event_types=["muted_users"]))["muted_users"]
        assert muted["id"] == ann_id
        unheard = say(ann, "psst")
        assert "read" in {m["id"]: m for m in messages(ben)}[unheard]["flags"]
        call(ben, "DELETE", f"users/me/muted_users/{ann_id}")

        ok(ben.update_notification_settings({"enable_desktop_notifications": False}))
        ok(ben.set_typing_status({"op": "start", "to": [ann_id]}))
        active = {"status": "active", "ping_only": False, "new_user_input": True}
        presences = ok(ann.update_presence(active))["presences"]
        assert shared_site.ann.email in presences
        seen = ok(ben.get_user_presence(shared_site.ann.email))["presence"]
        assert seen["aggregated"]["status"] == "active"
        assert shared_site.ann.email in ok(ben.get_realm_presence())["presences"]
        call(ann, "POST", "users/me/status", {"status_text": "at lunch", "away": False})
        status = call(ben, "GET", f"users/{ann_id}/status")["status"]
        assert status["status_text"] == "at lunch"

        queue = ok(ben.register(event_types=["message"]))
        said = say(ann, "heard?")
        events = ok(
            ben.get_events(queue_id=queue["queue_id"], last_event_id=queue["last_event_id"])
        )["events"]
        assert [event["message"]["id"] for event in events] == [said]
        ok(ben.deregister(queue["queue_id"]))
        ended = ben.get_events(queue_id=queue["queue_id"], last_event_id=-1)
        assert (ended["result"], ended["code"]) == ("error", "BAD_EVENT_QUEUE_ID")
