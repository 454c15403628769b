"""No message can hide another, whatever it contains."""

import json
import random
from typing import Any

from playwright.sync_api import Route, expect

from tests.browser.conftest import Open
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

TOPIC = "narrow/channel/general/topic/hostile"
BROKEN = "http://pictures.example/%E0%A4%A.png"
FORM = {
    "widget_type": "zform",
    "extra_data": {
        "type": "choices",
        "heading": "Which?",
        "choices": [{"short_name": "A", "long_name": f"{n}", "reply": "A"} for n in range(3)],
    },
}


def test_a_message_with_a_broken_address_and_equal_form_choices_is_shown(
    sqlite_site: Site, shared_page: Open
) -> None:
    town = sqlite_site
    to = {"type": "stream", "to": "general", "topic": "hostile"}
    with client_of(town.ben, town.server) as client:
        ok(client.send_message(to | {"content": "before"}))
        ok(client.send_message(to | {"content": f"{BROKEN} ![]({BROKEN})"}))
        ok(client.send_message(to | {"content": "form", "widget_content": json.dumps(FORM)}))
        ok(client.send_message(to | {"content": "after"}))
    ann = shared_page(town.server, town.ann)
    ann.go(TOPIC)
    for text in ("before", "after", "Which?"):
        expect(ann.message(text)).to_be_visible()
    expect(ann.message("Which?").get_by_role("button", name="A", exact=True)).to_have_count(3)


PARTS = (
    '<a href="%E0%A4%A">x</a>',
    '<a href="http://[">x</a>',
    '<a href="/user_uploads/1/%ff/%E0%A4%A.png">x</a>',
    '<div class="message_inline_image"><a href="/user_uploads/%E0%A4%A"><img src="%E0"></a></div>',
    '<img class="inline-image" data-original-dimensions="1e999xNaN" src="%">',
    '<div class="message_inline_image"><a><img></a></div>',
    '<div class="message_inline_video"><a href="%"><video src="%"></video></a></div>',
    '<audio controls src="/user_uploads/%E0%A4%A.ogg"></audio>',
    '<div class="spoiler-block"><div class="spoiler-header"></div></div>',
    '<div class="codehilite" data-code-language="\\u202e%">x</div>',
    '<div class="codehilite"><pre></pre></div>',
    '<span class="user-mention" data-user-id="1e400">@x</span>',
    '<span class="user-group-mention" data-user-group-id="-1">@x</span>',
    '<time datetime="+275760-09-13T00:00:01Z">x</time>',
    '<time datetime="">x</time>',
    '<span class="katex"><span class="katex-html"></span></span>',
    "<table><thead></thead></table>",
    '<span class="emoji emoji-1f9ff-" role="img">x</span>',
    '<div class="message_embed"><a class="message_embed_image" style="background-image: url(%)">',
    "<blockquote>" * 40,
    "\u202e\u2067<li>",
)
"""Kinds of HTML that a server may send, with invalid values."""


def _hostile(made: random.Random, message: dict[str, Any]) -> None:
    message["content"] = "".join(made.choices(PARTS, k=made.randrange(1, 5)))
    junk: list[Any] = [None, 7, "", "\u202e", [], {}, "[" * 50, json.dumps({"widget_type": "poll"})]
    if made.random() < 0.4:
        content = {"widget_type": made.choice(["poll", "todo", "zform"])}
        content["extra_data"] = made.choice([*junk, {"options": junk, "tasks": junk}])
        parts = [json.dumps(content), *map(json.dumps, junk)]
        message["submessages"] = [
            {
                "id": n,
                "sender_id": 1,
                "message_id": message["id"],
                "msg_type": "widget",
                "content": c,
            }
            for n, c in enumerate(parts)
        ]
    if made.random() < 0.3:
        message["reactions"] = [
            {
                "emoji_name": name,
                "emoji_code": code,
                "reaction_type": kind,
                "user_id": made.choice([1, -1]),
            }
            for name, code, kind in (("x", "ffffffff", "unicode_emoji"), ("", "", "realm_emoji"))
        ]


def test_random_hostile_messages_leave_others_visible(sqlite_site: Site, shared_page: Open) -> None:
    town, made = sqlite_site, random.Random(7)
    to = {"type": "stream", "to": "general", "topic": "made up"}
    with client_of(town.ben, town.server) as client:
        texts = [f"madeup number {n}" for n in range(40)]
        ids = [ok(client.send_message(to | {"content": text}))["id"] for text in texts]
        ok(client.send_message(to | {"topic": "unharmed", "content": "Hello"}))
    ann = shared_page(town.server, town.ann)

    def answered(route: Route) -> None:
        reply = route.fetch()
        body = reply.json()
        for message in body.get("messages", []):
            if message["id"] in ids[:-1]:
                _hostile(made, message)
        route.fulfill(response=reply, json=body)

    ann.page.route("**/api/v1/messages?*", answered)
    ann.go(f"narrow/channel/general/topic/made.20up/near/{ids[-1]}")
    expect(ann.message("number 39")).to_be_visible()
    for message_id in ids[-8:]:
        expect(ann.page.locator(f'[data-message="{message_id}"]')).to_be_attached()
    # They also don't affect search, the inbox, or other conversations.
    ann.go("narrow/search/madeup")
    expect(ann.message("number 39")).to_be_visible()
    ann.go("inbox")
    ann.page.reload()
    expect(ann.page.get_by_role("main").get_by_text("unharmed").first).to_be_visible()
    # Messages that can't be shown are logged, as are images that fail to load.
    ann.troubles.clear()
