"""Incoming webhooks."""

import asyncio
import codecs
import contextlib
import hashlib
import hmac
import json
import threading
import tracemalloc
from typing import Any
from urllib.parse import urlencode

import pytest

from tertulia.integrations.incoming import Post, WebhookRequest
from tertulia.integrations.payloads import Part
from tertulia.integrations.services import INTEGRATIONS
from tertulia.model.errors import TooOften
from tertulia.service.webhooks import templates
from tertulia.service.webhooks import templates as templates_module
from tertulia.store import webhooks
from tertulia.workers import TaskLimitExceeded
from tests.support import Organization, Person, Reply, TestClock, open_organization, row

PUSHED = {
    "ref": "refs/heads/main",
    "commits": [{"id": "1" * 40, "message": "Mend it", "url": "https://x.test/1"}],
    "pusher": {"name": "ann"},
    "repository": {"name": "chat"},
}
PUSH = {"X-GitHub-Event": "push"}


async def create_webhook(
    org: Organization, owner: str = "ben", name: str = "hook", **more: Any
) -> Person:
    """An incoming webhook bot of the owner's."""
    asked = {"full_name": name, "short_name": name, "bot_type": 2} | more
    bot = (await org[owner].post("/bots", **asked)).ok
    return Person(org.http, bot["user_id"], f"{name}-bot@chat.test", bot["api_key"])


async def send_payload(
    bot: Person,
    integration: str,
    payload: Any,
    headers: dict[str, str] | None = None,
    **parameters: str,
) -> Reply:
    """Send a payload to the bot as a service: bytes unchanged, a dictionary of strings as a form if
    `headers` say so, and everything else as JSON."""
    query = urlencode({"api_key": bot.api_key, **parameters})
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    headers = {"Content-Type": "application/json", "Authorization": "", **(headers or {})}
    if not headers["Authorization"]:
        del headers["Authorization"]
    stranger = Person(bot.http)
    return await stranger.raw(
        "POST", f"/external/{integration}?{query}", content=body, headers=headers
    )


async def newest(org: Organization, who: str = "ben") -> dict[str, Any]:
    """The newest message that someone can read."""
    asked = {"anchor": "newest", "num_before": 1, "num_after": 0, "apply_markdown": False}
    found: dict[str, Any] = (await org[who].get("/messages", **asked)).ok["messages"][-1]
    return found


async def journal(org: Organization, bot: Person, who: str = "ben") -> list[tuple[Any, ...]]:
    """The bot's delivery log, newest first."""
    lines = (await org[who].get(f"/bots/{bot.user_id}/deliveries")).ok["deliveries"]
    return [(one["integration"], one["event"], one["outcome"], one["reason"]) for one in lines]


async def test_a_service_posts_in_a_topic(org: Organization) -> None:
    lounge = await org.channel("lounge", "ben")
    bot = await create_webhook(org)
    for where in ({"stream": "lounge"}, {"stream": str(lounge)}, {"stream": "%6Counge"}):
        assert (await send_payload(bot, "github", PUSHED, PUSH, **where)).ok["ok"]
        message = await newest(org)
        assert (message["display_recipient"], message["subject"]) == ("lounge", "chat / main")
        assert message["content"].startswith("ann pushed 1 commit to branch `main`.\n\n* Mend it")
        assert (message["sender_id"], message["client"]) == (bot.user_id, "GitHub webhook")
    assert (await send_payload(bot, "github", PUSHED, PUSH, stream="lounge", topic="git %26 co")).ok
    assert (await newest(org))["subject"] == "git & co"
    assert (await send_payload(bot, "slack_incoming", {"text": "x" * 20_000}, stream="lounge")).ok
    assert len((await newest(org))["content"]) == 10_000
    packed = urlencode({"payload": json.dumps({"text": "*in a form*"})}).encode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await send_payload(bot, "slack_incoming", packed, form, stream="lounge")).ok
    assert (await newest(org))["content"] == "**in a form**"
    head = await org.http.head(f"/api/v1/external/trello?api_key={bot.api_key}")
    assert head.status_code == 200


async def test_without_a_topic_a_service_posts_in_its_own(org: Organization) -> None:
    await org.channel("lounge", "ben")
    bot = await create_webhook(org)
    for name in ("", " \n ", "\u200b\x07"):
        forked = {"repository": {"name": name}, "forkee": {"full_name": name}}
        body = codecs.BOM_UTF8 + json.dumps({**forked, "sender": {"login": "ann"}}).encode()
        await send_payload(bot, "github", body, {"X-GitHub-Event": "fork"}, stream="lounge")
        assert (await newest(org))["subject"] == "GitHub"


async def test_a_service_sends_direct_messages(org: Organization) -> None:
    bot = await create_webhook(org)
    assert (await send_payload(bot, "slack_incoming", {"text": "to the owner"})).ok
    message = await newest(org)
    assert (message["type"], message["content"]) == ("private", "to the owner")
    assert {one["id"] for one in message["display_recipient"]} == {bot.user_id, org["ben"].user_id}
    assert (await send_payload(bot, "slack_incoming", {"text": "to cleo"}, to=org["cleo"].email)).ok
    assert (await newest(org, "cleo"))["content"] == "to cleo"
    both = f"{org['cleo'].user_id}, {org['ann'].user_id}"
    assert (await send_payload(bot, "slack_incoming", {"text": "to both"}, to=both)).ok
    assert (await newest(org, "ann"))["content"] == "to both"
    await org.channel("lounge", "ben")
    assert (await org["ben"].patch(f"/bots/{bot.user_id}", default_sending_stream="lounge")).ok
    assert (await send_payload(bot, "slack_incoming", {"text": "to the channel"})).ok
    assert (await newest(org))["display_recipient"] == "lounge"


async def test_the_address_filters_events(org: Organization) -> None:
    await org.channel("lounge", "ben")
    bot = await create_webhook(org)
    for wanted in (
        {"only_events": '["issue*"]'},
        {"exclude_events": '["pu*"]'},
        {"branches": "release, next*"},
    ):
        assert (await send_payload(bot, "github", PUSHED, PUSH, stream="lounge", **wanted)).ok
    assert (await send_payload(bot, "github", {}, {"X-GitHub-Event": "ping"})).ok
    star = {"X-GitHub-Event": "sponsorship"}
    refused = (await send_payload(bot, "github", {}, star)).refused(
        "UNSUPPORTED_WEBHOOK_EVENT_TYPE", 200
    )
    assert (refused["webhook_name"], refused["event_type"]) == ("GitHub", "sponsorship")
    lines = await journal(org, bot)
    assert [line[:3] for line in lines] == [
        ("github", "sponsorship", "refused"),
        ("github", "", "nothing"),
        *[("github", "push", "filtered")] * 3,
    ]
    assert (await send_payload(bot, "github", PUSHED, PUSH, stream="lounge", branches="main")).ok
    assert (await newest(org))["subject"] == "chat / main"
    assert (await journal(org, bot))[0][:3] == ("github", "push", "sent")
    (await org["cleo"].get(f"/bots/{bot.user_id}/deliveries")).refused()


REFUSED: list[tuple[str, Any, dict[str, str], str, str]] = [
    ("github", b"{", {}, "INVALID_JSON", "The request body isn't valid JSON."),
    ("github", b"[" * 100_000, {}, "INVALID_JSON", "The request body isn't valid JSON."),
    ("github", b"\xff", {}, "INVALID_JSON", "The request body isn't valid JSON."),
    ("github", [], {}, "ANOMALOUS_WEBHOOK_PAYLOAD", "Invalid payload (GitHub): "),
    ("slack_incoming", {}, {}, "ANOMALOUS_WEBHOOK_PAYLOAD", "Invalid payload (Slack format): "),
    ("slack_incoming", {"text": "x"}, {"stream": "x"}, "STREAM_DOES_NOT_EXIST", "No channel named"),
    (
        "slack_incoming",
        {"text": "x"},
        {"to": "x@y"},
        "BAD_REQUEST",
        "No user has the email address",
    ),
    ("other", {}, {}, "BAD_REQUEST", "No integration named 'other' exists."),
]
"""An integration, its payload and parameters, and the error's code and reason."""


async def test_invalid_requests_are_refused(org: Organization) -> None:
    bot = await create_webhook(org)
    for number, (integration, payload, parameters, code, reason) in enumerate(REFUSED):
        with row(integration, payload, parameters):
            refused = (await send_payload(bot, integration, payload, PUSH, **parameters)).refused(
                code
            )
            assert refused["msg"].startswith(reason)
            (what, _, outcome, why), *earlier = await journal(org, bot)
            assert len(earlier) == number
            assert (what, outcome, why) == (integration, "refused", refused["msg"])


async def test_who_a_bot_can_send_to(org: Organization) -> None:
    bot = await create_webhook(org)
    text = {"text": "x"}
    (await send_payload(org["robo"], "slack_incoming", text)).refused()
    (await send_payload(org["ben"], "slack_incoming", text)).refused()
    nobody = Person(org.http, api_key="x" * 32)
    (await send_payload(nobody, "slack_incoming", text)).refused("INVALID_API_KEY", 401)
    (await org.nobody.post("/external/slack_incoming")).refused("UNAUTHORIZED", 401)
    assert (await bot.raw("POST", "/external/slack_incoming", json=text)).ok
    large = b'{"text": "' + b"x" * (1 << 20) + b'"}'
    (await send_payload(bot, "slack_incoming", large)).refused(status=413)
    assert (await org["ben"].delete(f"/bots/{bot.user_id}")).ok
    (await send_payload(bot, "slack_incoming", text)).refused("USER_DEACTIVATED", 401)


async def test_a_bot_with_a_secret_accepts_signed_requests(org: Organization) -> None:
    bot, options = await create_webhook(org), "/bots/{}/webhook"
    place = options.format(bot.user_id)
    assert (await org["ben"].get(place)).ok["has_secret"] is False
    assert (await org["ben"].patch(place, secret="s3cret")).ok["has_secret"] is True
    body = json.dumps(PUSHED).encode()
    signed = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    headers = {**PUSH, "X-Hub-Signature-256": f"sha256={signed}"}
    assert (await send_payload(bot, "github", body, headers)).ok
    wrong = {**PUSH, "X-Hub-Signature-256": f"sha256={signed[:-1]}"}
    for refused in (
        await send_payload(bot, "github", body, PUSH),
        await send_payload(bot, "github", body, wrong),
        await send_payload(bot, "github", body + b" ", headers),
        await send_payload(bot, "github", body, {**PUSH, "X-Hook-Secret": "x"}),
    ):
        assert "signature" in refused.refused()["msg"]
    assert (
        "doesn't sign"
        in (await send_payload(bot, "slack_incoming", {"text": "x"})).refused()["msg"]
    )
    assert "s3cret" not in org.node.state.users[bot.user_id].bot.incoming.secret_sealed  # type: ignore[union-attr]
    async with open_organization(org.node.config) as again:
        again_bot = Person(again.http, bot.user_id, bot.email, bot.api_key)
        assert (await send_payload(again_bot, "github", body, headers)).ok
    (await org["cleo"].patch(place, secret="")).refused()
    (await org["ben"].patch(options.format(org["robo"].user_id), secret="x")).refused()
    (await org["ben"].patch(place, secret="x" * 501)).refused()
    assert (await org["ben"].patch(place, secret="")).ok["has_secret"] is False
    assert (await send_payload(bot, "github", body, PUSH)).ok


async def test_templates_accept_any_json(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = await create_webhook(org)
    place = f"/bots/{bot.user_id}/webhook"
    payload = {"host": "a@**all**", "load": [1, 2], "deep": {"er": "x"}}
    assert (await send_payload(bot, "json", payload)).ok
    assert (await newest(org))["content"].startswith('~~~ json\n{\n  "host": "a@**all**"')
    templates = {
        "topic_template": "{{ host }}",
        "content_template": "{% for one in load %}{{ one }};{% endfor %} {{ payload.deep.er }}"
        "{{ not.there }} of {{ host }}",
    }
    templates["content_template"] = templates["content_template"].replace("not.there", "no.thing")
    await org.channel("lounge", "ben")
    assert (await org["ben"].patch(place, **templates)).ok["topic_template"] == "{{ host }}"
    assert (await send_payload(bot, "json", payload, stream="lounge")).ok
    message = await newest(org)
    assert message["subject"] == "a@**all**"
    assert message["content"] == "1;2; x of a@\u200b**all**"
    for wrong in ("{{", "{% for %}", "x" * 4001):
        (await org["ben"].patch(place, content_template=wrong)).refused()
    # The sandbox turns forbidden expressions into empty text, so there is nothing to send.
    for template in ("{{ ''.__class__.__mro__ }}", "{{ payload.__init__.__globals__ }}"):
        assert (await org["ben"].patch(place, content_template=template)).ok
        assert (await send_payload(bot, "json", payload)).ok
        assert (await journal(org, bot))[0][2] == "nothing"
    assert (await org["ben"].patch(place, content_template="{{ 1 / 0 }}")).ok
    refused = (await send_payload(bot, "json", payload)).refused()
    assert refused["msg"] == "Invalid template: division by zero"
    endless = (
        "{% for a in range(9999) %}{% for b in range(99999) %}{{ '' }}{% endfor %}{% endfor %}"
    )
    assert (await org["ben"].patch(place, content_template=endless)).ok
    refused = (await send_payload(bot, "json", payload)).refused()
    assert refused["msg"] == "The template takes too long to render."
    assert (await journal(org, bot))[0][2:] == ("refused", "The template takes too long to render.")
    # Everyone shares the helper process: people with slow templates have to wait for a while.
    monkeypatch.setattr(templates_module, "BURST_SECONDS", 0.5)
    assert (await send_payload(bot, "json", payload)).refused("RATE_LIMIT_HIT", 429)[
        "retry-after"
    ] > 1
    assert (await org["ben"].patch(place, content_template="x")).status == 429
    assert (await journal(org, bot))[0][2] == "refused"
    other = await create_webhook(org, "ann", "other")
    assert (await org["ann"].patch(f"/bots/{other.user_id}/webhook", content_template="x")).ok
    assert (await send_payload(other, "json", payload)).ok


def test_each_person_s_templates_have_a_share_of_the_time() -> None:
    clock = TestClock(stopped_at=1000.0)
    shares = templates_module.Shares(clock)

    def take(person_id: int, seconds: float) -> None:
        with shares.spent(person_id) as allowance:
            allowance.processor -= seconds
            if allowance.processor <= 0:
                raise TaskLimitExceeded("it took too long")

    for _ in range(100):
        take(1, 0.01)
    for _ in range(2):
        with pytest.raises(TaskLimitExceeded):
            take(1, 1)
    with pytest.raises(TooOften) as caught:
        take(1, 0.01)
    take(2, 0.01)
    clock.ahead += caught.value.wait
    take(1, 0.01)
    # Renderings in progress count with their maximum time.
    with contextlib.ExitStack() as under_way:
        for _ in range(12):
            under_way.enter_context(shares.spent(3))
        with pytest.raises(TooOften):
            take(3, 0.01)


def test_only_the_shown_part_of_a_payload_is_formatted() -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    tracemalloc.start()
    try:
        post = INTEGRATIONS["json"].translate(WebhookRequest(Part([deep] * 50), {}, b"", ""))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(post, Post)
    assert len(post.content) > 1000
    assert most < 2_000_000  # With indentation, it has 16 million characters.


def test_a_template_s_output_is_limited() -> None:
    found = templates.render_templates(["{{ a }}{{ a }}", "{{ payload }}"], '{"a": "xyz"}', 4)
    assert found == ["xyzx", "{'a'"]


async def test_template_values_mention_nobody(org: Organization) -> None:
    await org.channel("lounge", "ben")
    bot = await create_webhook(org)
    place = f"/bots/{bot.user_id}/webhook"
    template = "{{ a }}{{ b }} {{ c }} {{ payload.d[0] }}**Ben** @**Ann**"
    assert (await org["ben"].patch(place, content_template=template)).ok
    payload = {"a": "@", "b": "**all**", "c": "@\x01**all**", "d": ["@_"]}
    assert (await send_payload(bot, "json", payload, stream="lounge")).ok
    said = (await newest(org))["content"]
    assert said.replace("\x01", "") == ("@\u200b**all** @\u200b**all** @\u200b_**Ben** @**Ann**")


async def test_forbidden_mentions_do_not_lose_the_message(
    org: Organization,
) -> None:
    await org.channel("lounge", "ben")
    for n in range(16):
        await org.add(f"m{n}")
        assert (
            await org[f"m{n}"].post("/users/me/subscriptions", subscriptions='[{"name": "lounge"}]')
        ).ok
    bot = await create_webhook(org)
    assert (await send_payload(bot, "slack_incoming", {"text": "<!here> look"}, stream="lounge")).ok
    assert (await newest(org))["content"] == "@\u200b**all** look"


async def test_a_handshake_is_answered(org: Organization) -> None:
    bot = await create_webhook(org)
    asked = {"type": "url_verification", "challenge": "3eZbrw1a"}
    assert (await send_payload(bot, "slack_incoming", asked)).ok["challenge"] == "3eZbrw1a"
    shaken = await send_payload(bot, "asana", b"", {"X-Hook-Secret": "b537"})
    assert shaken.ok
    assert shaken.headers["x-hook-secret"] == "b537"


async def test_clients_get_the_list_of_integrations(org: Organization) -> None:
    listed = (await org["ben"].register()).data["realm_incoming_webhook_bots"]
    assert {one["name"] for one in listed} == INTEGRATIONS.keys()
    (github,) = (one for one in listed if one["name"] == "github")
    assert github["display_name"] == "GitHub"
    assert "push" in github["all_event_types"]
    assert github["url_options"] == [
        {"key": "branches", "label": "Only these branches", "input_type": "text"}
    ]
    assert (github["config_options"], github["is_signed"]) == ([], True)


async def test_the_delivery_log_is_limited(org: Organization) -> None:
    bot = await create_webhook(org)
    other = await create_webhook(org, name="other")
    assert (await send_payload(other, "slack_incoming", {"text": "x"})).ok
    for n in range(60):
        assert (await send_payload(bot, "github", PUSHED, PUSH, only_events="[]", topic=str(n))).ok
        if n == 30:
            # Written by several concurrently, it's stored once.
            await asyncio.gather(*(journal(org, bot) for _ in range(3)))
            assert len(await journal(org, bot)) == 31
    assert len(await journal(org, bot)) == 50
    assert len(await journal(org, other)) == 1


@pytest.mark.usefixtures("no_jobs")
async def test_the_delivery_log_is_written_once_when_a_node_stops_while_it_writes(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = await create_webhook(org)
    assert (await send_payload(bot, "github", PUSHED, PUSH)).ok
    begun, released = threading.Event(), threading.Event()
    write_journal = webhooks.write_journal

    def slowly(*arguments: Any) -> None:
        begun.set()
        assert released.wait(60)
        write_journal(*arguments)

    monkeypatch.setattr(webhooks, "write_journal", slowly)
    node = org.node
    writing = asyncio.create_task(node.journal.write(node.store))
    assert await asyncio.to_thread(begun.wait, 60)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    released.set()
    await node.store.write(lambda _: None)  # Ends after the canceled write.
    assert len(await journal(org, bot)) == 1


@pytest.mark.usefixtures("no_jobs")
async def test_the_delivery_log_is_written_once_when_a_node_stops_while_it_waits_for_the_database(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = await create_webhook(org)
    assert (await send_payload(bot, "github", PUSHED, PUSH)).ok
    begun, released = threading.Event(), threading.Event()
    store = org.node.store
    begin_write = store._housekeeping.begin_write

    def slowly() -> Any:
        begun.set()
        assert released.wait(60)
        return begin_write()

    monkeypatch.setattr(store._housekeeping, "begin_write", slowly)
    writing = asyncio.create_task(org.node.journal.write(store))
    assert await asyncio.to_thread(begun.wait, 60)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    released.set()
    assert len(await journal(org, bot)) == 1
