"""Widgets in messages: polls, to-do lists, and forms."""

import asyncio
import json
from typing import Any

import pytest

from tertulia.domain.messages import widgets
from tertulia.service.config import Config
from tests.support import Listener, Organization, Person, Reply, open_organization, row

pytestmark = pytest.mark.usefixtures("no_logged_errors")

FORM = {
    "widget_type": "zform",
    "extra_data": {
        "type": "choices",
        "heading": "What now?",
        "choices": [{"short_name": "A", "long_name": "Tea", "reply": "tea, please"}],
    },
}


async def parts(who: Person, message_id: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await who.get(f"/messages/{message_id}")).ok["message"][
        "submessages"
    ]
    return found


async def use(who: Person, message_id: int, content: Any, kind: str = "widget") -> Any:
    text = content if isinstance(content, str) else json.dumps(content)
    return await who.post("/submessage", message_id=message_id, msg_type=kind, content=text)


BEGUN: list[tuple[str, dict[str, Any]]] = [
    (
        "/poll Tea or coffee?\n- tea\n* coffee\n\n  water  ",
        {
            "widget_type": "poll",
            "extra_data": {
                "question": "Tea or coffee?",
                "options": ["tea", "coffee", "water"],
            },
        },
    ),
    ("/poll", {"widget_type": "poll", "extra_data": {"question": "", "options": []}}),
    ("/poll\nyes", {"widget_type": "poll", "extra_data": {"question": "", "options": ["yes"]}}),
    (
        "/todo Today\n- shop: milk: two\nsleep",
        {
            "widget_type": "todo",
            "extra_data": {
                "task_list_title": "Today",
                "tasks": [
                    {"task": "shop", "desc": "milk: two"},
                    {"task": "sleep", "desc": ""},
                ],
            },
        },
    ),
    ("/todo", {"widget_type": "todo", "extra_data": {"task_list_title": "", "tasks": []}}),
]
"""What is sent, and the resulting widget."""


async def test_a_command_creates_a_widget(org: Organization) -> None:
    """The message's content stays the same. Its first submessage describes the widget."""
    await org.channel("lounge", "ann", "ben")
    listener = await org["ben"].register()
    for content, widget in BEGUN:
        with row(content):
            sent = await org["ann"].send("lounge", "t", content)
            (part,) = await parts(org["ben"], sent)
            assert json.loads(part["content"]) == widget
            assert (part["message_id"], part["sender_id"]) == (sent, org["ann"].user_id)
            assert part["msg_type"] == "widget"
            (event,) = await listener.events()
            assert event["message"]["submessages"] == [part]
            message = (await org["ben"].get(f"/messages/{sent}")).ok["message"]
            assert message["content"].startswith(f"<p>{content.split()[0]}")


@pytest.mark.parametrize(
    "content", ["/polling", "poll", "x /poll", "/ poll", "/POLL a", "/me poll"]
)
async def test_other_text_creates_no_widget(shared_org: Organization, content: str) -> None:
    sent = await shared_org["ann"].write([shared_org["ben"].user_id], content)
    assert await parts(shared_org["ben"], sent) == []


async def test_a_form_is_sent_unchanged(org: Organization) -> None:
    to = [org["ben"].user_id]
    sent = await org["robo"].write(to, "What now?", widget_content=FORM)
    (part,) = await parts(org["ben"], sent)
    assert json.loads(part["content"]) == FORM
    (await use(org["ben"], sent, {"type": "vote", "key": "canned,0", "vote": 1})).refused()


@pytest.mark.parametrize(
    "form",
    [
        "no json",
        "[]",
        "{}",
        {"widget_type": "poll", "extra_data": {"question": "x", "options": []}},
        {**FORM, "more": 1},
        {"widget_type": "zform", "extra_data": {"type": "choices", "heading": "x"}},
        {"widget_type": "zform", "extra_data": {"type": "other", "heading": "", "choices": []}},
        {"widget_type": "zform", "extra_data": {"type": "choices", "heading": 1, "choices": []}},
        json.dumps(FORM).replace("Tea", "\\u0000"),
        json.dumps(FORM).replace("Tea", "x" * 10_000),
    ],
)
async def test_an_invalid_form_is_refused(sqlite_org: Organization, form: Any) -> None:
    reply = await sqlite_org["ann"].post(
        "/messages", type="direct", to=[sqlite_org["ben"].user_id], content="x", widget_content=form
    )
    reply.refused()


POLL = "/poll Tea?\nyes\nno"
TODO = "/todo Today\nshop"


USES: list[tuple[str, dict[str, Any], str]] = [
    (POLL, {"type": "new_option", "option": "maybe", "idx": 0}, "ben"),
    (POLL, {"type": "new_option", "option": "never", "idx": 1000}, "ann"),
    (POLL, {"type": "vote", "key": "canned,0", "vote": 1}, "ben"),
    (POLL, {"type": "vote", "key": "7,1", "vote": -1}, "ben"),
    (POLL, {"type": "question", "question": "Tea now?"}, "ann"),
    (TODO, {"type": "new_task", "key": 2, "task": "a", "desc": "", "completed": False}, "ben"),
    (TODO, {"type": "strike", "key": "canned,0"}, "ben"),
    (TODO, {"type": "strike", "key": "7,2"}, "ann"),
    (TODO, {"type": "new_task_list_title", "title": "Tomorrow"}, "ann"),
]
"""A widget, a submessage, and its sender."""


async def test_submessages_are_stored_and_sent(org: Organization, config: Config) -> None:
    await org.channel("lounge", "ann", "ben")
    told: list[tuple[Listener, int, list[dict[str, Any]]]] = []
    for begun, payload, who in USES:
        with row(payload):
            sent = await org["ann"].send("lounge", "t", begun)
            queues = [await org[name].register() for name in ("ann", "ben")]
            text = json.dumps(payload)
            assert (await use(org[who], sent, text)).ok
            first, second = await parts(org["ann"], sent)
            assert second["id"] > first["id"]
            assert (second["content"], second["sender_id"]) == (text, org[who].user_id)
            for queue in queues:
                (event,) = await queue.events(acknowledge=False)
                assert event == {
                    "type": "submessage",
                    "id": event["id"],
                    "msg_type": "widget",
                    "content": text,
                    "message_id": sent,
                    "sender_id": org[who].user_id,
                    "submessage_id": second["id"],
                }
            told.append((queues[0], sent, [first, second]))
    async with open_organization(config) as later:
        for queue, sent, (first, second) in told:
            assert await parts(later["ann"], sent) == [first, second]
            again = await later["ann"].get(
                "/events",
                queue_id=queue.queue_id,
                last_event_id=queue.last_event_id,
                dont_block=True,
            )
            assert again.ok["events"][0]["content"] == second["content"]


@pytest.mark.parametrize(
    ("begun", "payload"),
    [
        (POLL, "no json"),
        (POLL, "[]"),
        (POLL, "null"),
        (POLL, {}),
        (POLL, {"type": "other"}),
        (POLL, {"type": "strike", "key": "canned,0"}),
        (POLL, {"type": "new_option", "option": "x", "idx": -1}),
        (POLL, {"type": "new_option", "option": "x", "idx": 1001}),
        (POLL, {"type": "new_option", "option": "x", "idx": "0"}),
        (POLL, {"type": "new_option", "option": 1, "idx": 0}),
        (POLL, {"type": "new_option", "option": "x"}),
        (POLL, {"type": "new_option", "option": "x", "idx": 0, "more": 1}),
        (POLL, {"type": "vote", "key": "canned,0", "vote": 0}),
        (POLL, {"type": "vote", "key": "canned,0", "vote": 2}),
        (POLL, {"type": "vote", "key": "canned", "vote": 1}),
        (POLL, {"type": "vote", "key": 1, "vote": 1}),
        (POLL, {"type": "question", "question": None}),
        (POLL, {"type": "new_option", "option": "a\0b", "idx": 0}),
        (POLL, {"type": "new_option", "option": "x" * 10_000, "idx": 0}),
        (TODO, {"type": "vote", "key": "canned,0", "vote": 1}),
        (TODO, {"type": "new_task", "key": 1, "task": "a", "desc": ""}),
        (TODO, {"type": "new_task", "key": -1, "task": "a", "desc": "", "completed": False}),
        (TODO, {"type": "strike", "key": "x"}),
        (TODO, {"type": "new_task_list_title", "title": ["x"]}),
    ],
)
async def test_an_invalid_submessage_is_refused(
    shared_org: Organization, begun: str, payload: Any
) -> None:
    sent = await shared_org["ann"].write([shared_org["ann"].user_id], begun)
    (await use(shared_org["ann"], sent, payload)).refused()
    assert len(await parts(shared_org["ann"], sent)) == 1


async def test_only_the_sender_changes_the_title(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    poll, todo = [await org["ann"].send("lounge", "t", text) for text in (POLL, TODO)]
    (await use(org["ben"], poll, {"type": "question", "question": "x"})).refused()
    (await use(org["ben"], todo, {"type": "new_task_list_title", "title": "x"})).refused()


async def test_a_message_without_a_widget_accepts_no_submessages(org: Organization) -> None:
    vote = {"type": "vote", "key": "canned,0", "vote": 1}
    sent = await org["ann"].write([org["ben"].user_id], "no poll")
    (await use(org["ann"], sent, vote)).refused()
    (await use(org["ann"], sent, {"widget_type": "poll", "extra_data": {}})).refused()
    poll = await org["ann"].write([org["ben"].user_id], POLL)
    for kind in ("", "other", "x" * 5000):
        (await use(org["ann"], poll, vote, kind)).refused()


async def test_the_widget_of_an_inaccessible_message_looks_like_an_unknown_one(
    org: Organization,
) -> None:
    vote = {"type": "vote", "key": "canned,0", "vote": 1}
    await org.channel("den", "ann", is_private=True)
    hidden = [
        await org["ann"].send("den", "t", POLL),
        await org["ann"].write([org["cleo"].user_id], POLL),
    ]
    unknown = (await use(org["ben"], 999_999, vote)).refused()
    for sent in hidden:
        assert (await use(org["ben"], sent, vote)).refused() == unknown
        assert len(await parts(org["ann"], sent)) == 1
    (await use(org.nobody, hidden[0], vote)).refused("UNAUTHORIZED", 401)


async def test_access_to_the_history_is_enough_to_vote(org: Organization) -> None:
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", POLL)
    listener = await org["ben"].register()
    assert (await use(org["ben"], sent, {"type": "vote", "key": "canned,1", "vote": 1})).ok
    assert [event["type"] for event in await listener.events()] == ["submessage"]


async def test_messages_sent_together_have_their_own_widgets(org: Organization) -> None:
    sent = [await org["ann"].write([org["ben"].user_id], POLL) for _ in range(3)]
    found = [(await parts(org["ben"], one))[0] for one in sent]
    assert [part["message_id"] for part in found] == sent
    assert len({part["id"] for part in found}) == 3


async def test_additions_to_a_widget_are_limited_in_bytes(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = ("ann", "ben", "cleo", "gus")
    await org.channel("lounge", *people)
    one, two = [await org["ann"].send("lounge", "t", "/todo Today") for _ in range(2)]

    def task(key: int) -> dict[str, Any]:
        text = {"task": "\u00e4" * 40, "desc": "", "completed": False}  # Two bytes each.
        return {"type": "new_task", "key": key, **text}

    size = len(json.dumps(task(1), ensure_ascii=False).encode())
    first = len((await parts(org["ann"], one))[0]["content"].encode())
    monkeypatch.setattr(widgets, "MAX_SUBMESSAGES_OF_PERSON", 3 * size)
    monkeypatch.setattr(widgets, "MAX_SUBMESSAGES_OF_MESSAGE", first + 5 * size)

    async def add(who: str, message_id: int, key: int) -> Reply:
        reply: Reply = await use(org[who], message_id, json.dumps(task(key), ensure_ascii=False))
        return reply

    replies = await asyncio.gather(*(add("ben", one, key) for key in range(5)))
    assert sorted(reply.status for reply in replies) == [200, 200, 200, 400, 400]
    late = next(reply for reply in replies if reply.status == 400)
    assert "You have reached the limit" in late.refused()["msg"]
    replies = await asyncio.gather(*(add(who, one, 9) for who in ("cleo", "gus", "ann")))
    assert sorted(reply.status for reply in replies) == [200, 200, 400]
    late = next(reply for reply in replies if reply.status == 400)
    assert "All participants together have reached" in late.refused()["msg"]
    (await add("ben", two, 1)).ok
    assert len(await parts(org["ann"], one)) == 6
