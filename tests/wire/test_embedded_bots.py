"""Embedded bots, each in a separate process."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tertulia.domain.accounts import bots
from tertulia.embedded import catalog, hosting
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.service.webhooks.calling import ServiceCaller
from tertulia.service.webhooks.embedded import BotCallResult
from tests.conftest import OTHERS
from tests.support import (
    Organization,
    Person,
    Reply,
    TestClock,
    new_organization,
    open_organization,
)
from tests.wire.test_outgoing_webhooks import (
    _no_caller,  # noqa: F401 (a fixture)
    _once,
    caller_of,
    newest,
    next_due,
    outcomes,
)

OWN = """
import os, socket, sqlite3, subprocess, sys, time
from zulip_bots.custom_exceptions import ConfigValidationError


class Own:
    told = 0

    @staticmethod
    def validate_config(config):
        if config["key"] == "wrong":
            raise ConfigValidationError("that key is not right")

    def handle_message(self, message, bot_handler):
        self.told += 1
        text = message["content"]
        print("told", text)
        if text == "raise":
            raise RuntimeError("no idea")
        if text == "leak":
            raise RuntimeError("key=" + bot_handler.get_config_info("own")["key"])
        if text == "die":
            os._exit(3)
        if text == "quit":
            bot_handler.quit("enough")
        if text == "hang":
            time.sleep(1000)
        if text == "spin":
            while True:
                pass
        if text == "many":
            for _ in range(200):
                bot_handler.storage.get("nothing") if bot_handler.storage.contains("x") else None
        if text == "scribble":
            for descriptor in (0, 3):  # 3 is where it hears from its node.
                try:
                    os.write(descriptor, b"nonsense")
                except OSError:
                    pass
        if text == "chat":
            os.write(1, b"x\\n" * 100_000)
        if text == "eat":
            "x" * 2**31
        said = [str(self.told), bot_handler.get_config_info("own")["key"]]
        if text.startswith("try"):
            said += [tried(one) for one in TRIED]
            said += [str(sorted(one for one in os.environ if "TERTULIA" in one))]
            edit = {"message_id": "../users", "content": "x"}
            said += [bot_handler.update_message(edit)["result"]]
        bot_handler.react(message, "tada")
        bot_handler.send_reply(message, " ".join(said))


TRIED = (
    lambda: open("/etc/passwd"),
    lambda: open("/tmp/made-by-a-bot", "w"),
    lambda: open(os.path.join(os.path.dirname(__file__), "data", "secret")),
    lambda: sqlite3.connect("file:/etc/passwd?mode=ro", uri=True),
    lambda: subprocess.run(["true"]),
    lambda: os.system("true"),
    lambda: os.remove("/tmp/nothing-there"),
    lambda: socket.create_connection(("127.0.0.1", 9)),
    lambda: socket.create_connection(("169.254.169.254", 80)),
)


def tried(one):
    try:
        one()
    except PermissionError:
        return "no"
    return "yes"


handler_class = Own
"""
"""A bot from another package."""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package is installed."""
    (tmp_path / "own_bots.py").write_text(OWN)
    (tmp_path / "own.conf").write_text("[own]\nkey=<your key>\n")
    information = tmp_path / "own_bots-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: own-bots\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[zulip_bots.registry]\nown = own_bots\n")
    monkeypatch.syspath_prepend(tmp_path)
    catalog.runnable.cache_clear()
    yield
    catalog.runnable.cache_clear()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    for name in ("START_SECONDS", "MESSAGE_SECONDS", "PATIENCE"):
        monkeypatch.setattr(hosting, name, 1000.0)


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
async def org(config: Config, clock: TestClock, own: None) -> AsyncIterator[Organization]:
    """The organization, with embedded bots enabled."""
    config = msgspec.structs.replace(config, embedded_bots="all")
    async with new_organization(config, clock=clock, others=OTHERS) as organization:
        yield organization


@pytest.fixture
async def caller(org: Organization) -> AsyncIterator[ServiceCaller]:
    found = caller_of(org)
    yield found
    await found.close()


async def create_bot(org: Organization, program: str, **more: Any) -> Person:
    """An embedded bot of ben's."""
    asked = {"full_name": "Hal", "short_name": "hal", "bot_type": 4, "service_name": program}
    bot = (await org["ben"].post("/bots", **(asked | more))).ok
    address = f"{more.get('short_name', 'hal')}-bot@chat.test"
    return Person(org.http, bot["user_id"], address, bot["api_key"])


async def run_bots(
    org: Organization, caller: ServiceCaller, clock: TestClock | None = None
) -> None:
    """Run the embedded bots on waiting messages. With the clock, until none waits."""
    while (due := await next_due(org)) is not None:
        if due > org.node.clock():
            if clock is None:
                break
            clock.ahead += due - org.node.clock() + 1
        await _once(caller)
        await caller.tasks.settled()


async def newest_contents(org: Organization, number: int = 1) -> list[str]:
    return [message["content"] for message in await newest(org, number=number)]


async def test_the_packaged_bots_work(org: Organization, caller: ServiceCaller) -> None:
    lounge = await org.channel("lounge", "ben")
    hello = await create_bot(org, "helloworld")
    sums = await create_bot(org, "incrementor", full_name="Sum", short_name="sum")
    await org["ben"].send(lounge, "greetings", "@**Hal** hi")
    await run_bots(org, caller)
    (answer,) = await newest(org)
    assert answer["content"].startswith("beep boop")
    assert (answer["sender_id"], answer["subject"]) == (hello.user_id, "greetings")
    assert answer["client"] == "Embedded bot"
    assert await outcomes(org, hello) == [("mention", "delivered", "")]
    # A mention within the text doesn't count, as with these bots everywhere.
    await org["ben"].send(lounge, "greetings", "I like @**Hal**")
    await org["ben"].write([sums.user_id], "one")
    await run_bots(org, caller)
    await org["ben"].write([sums.user_id], "two")
    await run_bots(org, caller)
    # It edits its reply, whose ID is in its storage.
    assert await newest_contents(org, 4) == ["I like @**Hal**", "one", "2", "two"]
    assert (await sums.get("/bot_storage")).ok["storage"]["number"] == "2"
    # Another node uses the bot's storage, although the first one's process has it in memory.
    async with open_organization(org.node.config, clock=org.node.clock) as again:
        other = caller_of(again)
        await again["ben"].write([sums.user_id], "three")
        await run_bots(again, other)
        await other.close()
    await org.node.log.catch_up()
    await org["ben"].write([sums.user_id], "four")
    await run_bots(org, caller)
    assert (await sums.get("/bot_storage")).ok["storage"]["number"] == "4"


async def test_each_message_is_handled_by_one_node(
    org: Organization, caller: ServiceCaller, clock: TestClock
) -> None:
    bot = await create_bot(org, "own", config_data={"key": "k"})
    async with open_organization(org.node.config, clock=clock) as again:
        other = caller_of(again)
        for number in range(4):
            await org["ben"].write([bot.user_id], f"{number}")
        await again.node.log.catch_up()
        await asyncio.gather(run_bots(org, caller), run_bots(again, other))
        await run_bots(org, caller)
        await other.close()
    await org.node.log.catch_up()  # Those sent by the other bot.
    answers = [one for one in await newest(org, number=20) if one["sender_id"] == bot.user_id]
    assert len(answers) == 4
    assert [one["outcome"] for one in await deliveries(org, bot)] == ["delivered"] * 4


async def test_messages_are_handled_in_the_order_sent(
    org: Organization, caller: ServiceCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long each query takes."""
    bot = await create_bot(org, "own", config_data={"key": "k"})
    first, second = [await org["ben"].write([bot.user_id], text) for text in ("one", "two")]
    ask = caller.embedded._interface

    async def late(
        who: User, operation: str, fields: Mapping[str, Any], mark: str
    ) -> BotCallResult:
        for _ in range(1000 if fields.get("message_id") == first else 0):
            await asyncio.sleep(0)
        return await ask(who, operation, fields, mark)

    monkeypatch.setattr(caller.embedded, "_interface", late)
    await run_bots(org, caller)
    assert [one["message_id"] for one in await deliveries(org, bot)] == [second, first]


async def deliveries(org: Organization, bot: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await org["ben"].get(f"/bots/{bot.user_id}/deliveries")).ok[
        "deliveries"
    ]
    return found


async def test_a_failing_bot_does_no_harm(
    org: Organization,
    caller: ServiceCaller,
    clock: TestClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "tertulia.embedded")
    monkeypatch.setattr(hosting, "FIRST_PAUSE", 0.0)
    bot = await create_bot(org, "own", config_data={"key": "k"})
    host = caller.embedded.host

    async def outcome(text: str) -> str:
        await org["ben"].write([bot.user_id], text)
        await run_bots(org, caller, clock)
        newest = (await deliveries(org, bot))[0]
        return f"{newest['outcome']}: {newest['reason']}"

    assert await outcome("hi") == "delivered: "
    first = host.process_id(bot.user_id)
    assert first is not None
    assert await outcome("raise") == "given up: The bot failed: no idea"
    assert await outcome("many") == (
        "given up: The bot failed: it made more than 100 requests for one message"
    )
    assert (await outcome("eat")).startswith("given up: The bot failed: it ran out of memory")
    # However much it prints, only a part is logged.
    looked_at: list[str] = []
    masked = hosting._masked

    def noting(text: str, of: hosting.HostedBot) -> str:
        looked_at.append(text)
        return masked(text, of)

    monkeypatch.setattr(hosting, "_masked", noting)
    assert await outcome("chat") == "delivered: "
    assert await outcome("scribble") == "delivered: "
    assert not [record for record in caplog.records if record.name == "asyncio"]
    assert len(looked_at) < 2 * hosting.MOST_LINES
    assert host.process_id(bot.user_id) == first
    assert await outcome("die") == "given up: The bot used too much time or memory and was stopped."
    assert host.process_id(bot.user_id) is None
    assert await outcome("hi") == "delivered: "
    assert await newest_contents(org) == ["1 k"]  # A separate process.
    # A process that exits has handled its messages; the next message starts a new one.
    for text in ("quit", "hi"):
        await org["ben"].write([bot.user_id], text)
    await run_bots(org, caller)
    ended, after = reversed((await deliveries(org, bot))[:2])
    assert (ended["reason"], after["outcome"]) == (
        "The bot failed: enough",
        "delivered",
    )
    assert await newest_contents(org) == ["1 k"]
    monkeypatch.setattr(hosting, "PROCESSOR_SECONDS", 0.3)
    last = host.process_id(bot.user_id)
    await caller.embedded.host.close()
    assert last is not None
    with pytest.raises(ProcessLookupError):
        os.kill(last, 0)
    assert (
        await outcome("spin") == "given up: The bot used too much time or memory and was stopped."
    )
    monkeypatch.setattr(hosting, "PROCESSOR_SECONDS", 5.0)
    assert await outcome("try") == "delivered: "
    # What its process may not do.
    assert await newest_contents(org) == ["1 k" + " no" * 9 + " [] error"]
    monkeypatch.setattr(hosting, "MESSAGE_SECONDS", 0.5)
    assert await outcome("hang") == "given up: The bot took longer than 0 seconds and was stopped."
    assert host.process_id(bot.user_id) is None
    lines = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert {"bot_id": bot.user_id, "bot": "Hal", "line": "told raise"} in lines


async def test_processes_are_limited_and_end_when_idle(
    org: Organization, caller: ServiceCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting, "MOST_PROCESSES", 1)
    host = caller.embedded.host
    hal = await create_bot(org, "own", config_data={"key": "k"})
    sal = await create_bot(org, "helloworld", full_name="Sal", short_name="sal")
    for bot, other in ((hal, sal), (sal, hal)):
        await org["ben"].write([bot.user_id], "hi")
        await run_bots(org, caller)
        assert host.process_id(bot.user_id) is not None
        assert host.process_id(other.user_id) is None
    # With other settings, it's another process.
    changed = (await org["ben"].patch(f"/bots/{hal.user_id}", config_data={"key": "other"})).ok
    assert changed["config_data"] == {"key": ""}
    monkeypatch.setattr(hosting, "IDLE_SECONDS", 0.0)
    await org["ben"].write([hal.user_id], "hi")
    await run_bots(org, caller)
    assert await newest_contents(org) == ["1 other"]
    assert host.process_id(hal.user_id) is None  # The loop has checked its timers since.


async def test_invalid_settings_are_reported(
    org: Organization, caller: ServiceCaller, clock: TestClock
) -> None:
    queue = await org["ben"].register(event_types=["realm_bot"])
    asked = {"full_name": "Hal", "short_name": "hal", "bot_type": 4}
    for settings, why in (
        ({}, "needs the setting 'key'"),
        ({"key": " "}, "needs the setting 'key'"),
        ({"key": "k", "other": "x"}, "doesn't have a setting named 'other'"),
        ({"key": "x" * 1001}, "too long"),
    ):
        reply = await org["ben"].post("/bots", **asked, service_name="giphy", config_data=settings)
        assert why in reply.refused()["msg"]
    for name in ("file_uploader", "connect_four", "nowhere"):
        reply = await org["ben"].post("/bots", **asked, service_name=name)
        assert "No embedded bot named" in reply.refused()["msg"]
    bot = await create_bot(org, "own", config_data={"key": "wrong"})
    (event,) = await queue.events()
    shown = [{"service_name": "own", "config_data": {"key": ""}}]
    assert event["bot"]["services"] == shown
    (found,) = [
        one
        for one in (await org["ben"].post("/register", event_types=["realm_bot"])).ok["realm_bots"]
        if one["user_id"] == bot.user_id
    ]
    assert found["services"] == shown
    await org["ben"].write([bot.user_id], "hi")
    await run_bots(org, caller)
    (line,) = await deliveries(org, bot)
    assert line["outcome"] == "failed"
    assert line["reason"] == ("The bot couldn't start: that key is not right")
    # The message is retried and not lost.
    (await org["ben"].patch(f"/bots/{bot.user_id}", config_data={"key": "right"})).ok
    await run_bots(org, caller, clock)
    assert await newest_contents(org) == ["1 right"]
    # Settings are secret, both in errors and in the database.
    await org["ben"].write([bot.user_id], "leak")
    await run_bots(org, caller, clock)
    assert (await deliveries(org, bot))[0]["reason"] == "The bot failed: key=…"
    record = org.node.state.users[bot.user_id].bot
    assert record is not None
    assert record.embedded is not None
    assert "right" not in record.embedded.settings_sealed["key"]
    (await org["cleo"].patch(f"/bots/{bot.user_id}", config_data={"key": "x"})).refused()
    generic = org["robo"].user_id
    (await org["ann"].patch(f"/bots/{generic}", config_data={"key": "x"})).refused()


async def test_concurrent_changes_of_settings_are_all_stored(org: Organization) -> None:
    settings = {"api_key": "a", "access_token": "b", "user_name": "c"}
    bot = await create_bot(org, "trello", config_data=settings)

    async def told_anew(**settings: str) -> Reply:
        return await org["ben"].patch(f"/bots/{bot.user_id}", config_data=settings)

    await asyncio.gather(told_anew(api_key="x"), told_anew(user_name="y"))
    record = org.node.state.users[bot.user_id].bot
    assert record is not None
    assert record.embedded is not None
    assert bots.embedded_settings(record.embedded, org.node.vault.unsealed) == {
        **settings,
        "api_key": "x",
        "user_name": "y",
    }
    assert "needs the setting" in (await told_anew(user_name=" ")).refused()["msg"]
    # A bot that doesn't need settings can't fail for them again.
    names = {"full_name": "Sal", "short_name": "sal"}
    bot = await create_bot(org, "github_detail", **names, config_data={"owner": "a", "repo": "b"})
    assert (await told_anew(owner="", repo="")).ok["config_data"] == {}


def test_disabled_embedded_bots_are_not_loaded() -> None:
    for setting, is_read in (("", False), (" , ", False), ("all", True)):
        catalog.runnable.cache_clear()
        assert catalog.not_offered(setting) == {}
        assert bool(catalog.runnable.cache_info().currsize) is is_read
        assert bool(catalog.offered(setting)) is is_read


async def test_only_configured_bots_are_offered(
    config: Config, own: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = msgspec.structs.replace(config, embedded_bots="giphy, own,file_uploader, nowhere")
    async with new_organization(config, others=OTHERS) as org:
        fetched = {"fetch_event_types": ["realm_embedded_bots"]}
        found = (await org["ben"].post("/register", **fetched)).ok["realm_embedded_bots"]
        assert found == [
            {"name": "giphy", "config": {"key": "12345678"}},
            {"name": "own", "config": {"key": "<your key>"}},
        ]
        assert catalog.not_offered(config.embedded_bots).keys() == {"file_uploader", "nowhere"}
        asked = {"full_name": "Hal", "short_name": "hal", "bot_type": 4}
        (await org["ben"].post("/bots", **asked, service_name="helloworld")).refused()
        (await org["gus"].post("/bots", **asked, service_name="giphy")).refused()
        # The package isn't installed.
        monkeypatch.setattr(catalog, "find_spec", lambda name: None)
        catalog.runnable.cache_clear()
        assert (await org["ben"].post("/register", **fetched)).ok["realm_embedded_bots"] == []
        reply = await org["ben"].post("/bots", **asked, service_name="giphy")
        assert "the extra `bots`" in reply.refused()["msg"]
