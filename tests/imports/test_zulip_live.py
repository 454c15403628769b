"""Following a running server: every change there appears here with the same IDs."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tertulia.app.composition import opened_node
from tertulia.app.founding import opened_log, opened_vault
from tertulia.domain.organization import lifecycle
from tertulia.imports import preparation
from tertulia.imports.progress import ImportRefused
from tertulia.imports.source import SourceError
from tertulia.imports.target import ImportTarget
from tertulia.imports.zulip.live import history
from tertulia.imports.zulip.live.followed import FACT, FINISH_FACT, IMPORT_FACT, Followed
from tertulia.imports.zulip.live.following import UNREADABLE, Follower
from tertulia.imports.zulip.live.server import Interrupted, ZulipServer
from tertulia.log.replica import replay_differences
from tertulia.model.changes import UserChanged
from tertulia.service.config import Config
from tertulia.store import installation
from tertulia.store.database import READING
from tertulia.store.store import database_at
from tests.e2e.server import PASSWORD, Account, Server, ended
from tests.external_web import Page, external_web, redirect
from tests.imports.invented import Killed, kill_after
from tests.support import Person, open_organization

pytestmark = pytest.mark.anyio
NOTE = b"a small file"


class Old:
    """The old server, with Ann, its owner, and Ben."""

    def __init__(self, server: Server, ann: Account, ben: Account) -> None:
        self.server = server
        self.accounts = {"ann": ann, "ben": ben}

    @asynccontextmanager
    async def people(self) -> AsyncIterator[tuple[Person, Person]]:
        async with httpx.AsyncClient(base_url=self.server.url, timeout=60) as http:
            found = [Person(http, a.user_id, a.email, a.api_key) for a in self.accounts.values()]
            yield found[0], found[1]


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Old]:
    server = Server(tmp_path / "old")
    ann = server.create_organization()
    ben = server.add("ben")
    with ended(server):
        server.start()
        yield Old(server, ann, ben)


def own(old: Old) -> ZulipServer:
    ann = old.accounts["ann"]
    return ZulipServer(old.server.url, ann.email, ann.api_key)


async def followed(
    config: Config,
    server: ZulipServer,
    tell: Callable[[str], None] = lambda _: None,
    *,
    to_end: bool = False,
) -> Followed:
    """Follow until all changes are here, or to the end."""
    steps: list[str] = []

    def note(step: str, _: Followed) -> None:
        steps.append(step)
        tell(step)

    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    try:
        async with opened_log(config, print) as log:
            follower = Follower(
                ImportTarget(log, vault, files, disk),
                server,
                is_ended=lambda: not to_end and "following" in steps,
                tell=note,
                processes=1,
                poll_seconds=0,
            )
            return await follower.run()
    finally:
        server.close()
        await files.close()
        vault.close()


async def finished(config: Config, server: ZulipServer) -> Followed:
    async with opened_log(config, print) as log:
        await log.store.write(lambda c: installation.put(c, FINISH_FACT, "1"))
    return await followed(config, server, to_end=True)


@contextmanager
def readonly(config: Config) -> Iterator[Any]:
    database = database_at(config.data_path, config.database_url)
    with closing(database.connect(readonly=True, limits=READING)) as connection:
        yield connection


def contents(config: Config) -> dict[str, Any]:
    """Return the data that two equal organizations have in common."""
    with readonly(config) as connection:
        assert replay_differences(connection) == []
        messages = connection.query(
            "SELECT m.id, sender_id, m.channel_id, t.name, content, rendered"
            " FROM messages AS m LEFT JOIN message_topics AS t ON t.id = m.topic_id ORDER BY m.id"
        )
        reactions = connection.query("SELECT message_id, user_id, kind, code FROM reactions")
        edits = connection.query(
            "SELECT message_id, user_id, was_content FROM message_edits"
            " WHERE was_content IS NOT NULL"
        )
        return {
            # A link to a topic has the topic's newest message at the time of rendering.
            "messages": [(*row[:-1], re.sub("/with/[0-9]+", "", row[-1])) for row in messages],
            "reactions": sorted(map(tuple, reactions)),
            "edits": sorted(map(tuple, edits)),
            **organization(config),
        }


def organization(config: Config) -> dict[str, Any]:
    from tertulia.state.state import State
    from tertulia.store import queries

    with readonly(config) as connection:
        state = State.load(0, queries.records(connection))
    return {
        "users": {
            one.id: (one.full_name, one.address, one.role, one.is_active)
            for one in state.users
            if not one.is_system_bot
        },
        "channels": {
            one.id: (one.name, one.description, one.is_private, one.is_archived)
            for one in state.channels
        },
        "subscribers": {one.id: state.subscribers(one.id) for one in state.channels},
        "groups": {one.id: (one.name, one.members, one.subgroups) for one in state.groups},
        "realm": (state.realm.name, state.realm.description),
    }


def require_equal(config: Config, old: Old) -> None:
    here, there = contents(config), contents(Config(data_dir=str(old.server.data_dir)))
    # Ann can't read what the notification bot writes to Ben.
    there["messages"] = [
        row for row in there["messages"] if (row[1], row[2]) != (lifecycle.NOTIFICATION_BOT, None)
    ]
    for name, values in there.items():
        if isinstance(values, list):
            assert [one for one in here[name] if one not in values] == []
            assert [one for one in values if one not in here[name]] == []
        assert here[name] == values, name


async def test_everything_that_happens_there_arrives_here(config: Config, old: Old) -> None:
    async with old.people() as (ann, ben):
        first = await ann.send("general", "greetings", "Hello @**Ben**")
        doomed = await ann.send("general", "greetings", "a mistake")
        path = await ben.upload("note.txt", NOTE)
        await ben.send("general", "files", f"[note](/user_uploads/{path})")
        await ann.write([ben.user_id], "between us")
        await followed(config, own(old))
        require_equal(config, old)
        # While it is followed:
        (await ann.patch(f"/messages/{first}", content="Hello **all**")).ok
        (await ben.post(f"/messages/{first}/reactions", emoji_name="tada")).ok
        (await ann.delete(f"/messages/{doomed}")).ok
        second = await ben.send("general", "files", "another")
        (await ann.patch(f"/messages/{second}", topic="moved away", propagate_mode="change_one")).ok
        made = {"subscriptions": [{"name": "kitchen", "description": "Coffee"}]}
        (await ann.post("/users/me/subscriptions", **made, principals=[ben.user_id])).ok
        await ben.send("kitchen", "milk", "We need *milk*.")
        (
            await ann.post(
                "/user_groups/create", name="cooks", description="", members=[ben.user_id]
            )
        ).ok
        (await ann.patch(f"/users/{ben.user_id}", full_name="Benjamin")).ok
        (await ann.patch("/realm", name="Harbor Café")).ok
        await ann.write([ben.user_id], "still between us")
        found = await followed(config, own(old))
        assert found.step == "following"
        require_equal(config, old)
        async with opened_node(config, print) as node:
            files = [one.path for one in node.state.tables["attachments"]]
            assert files == [path]
            assert (config.files_path / node.uploads.final_path(path)).read_bytes() == NOTE


async def test_what_happened_in_the_meantime_is_found_without_events(
    config: Config, old: Old
) -> None:
    """The event queue is lost, so everything is compared."""
    async with old.people() as (ann, ben):
        ids = [await ann.send("general", "one", f"message {n}") for n in range(6)]
        found = await followed(config, own(old))
        lost = own(old)
        lost.end_queue(found.queue_id)
        lost.close()
        (await ann.patch(f"/messages/{ids[0]}", content="edited")).ok
        (await ben.post(f"/messages/{ids[1]}/reactions", emoji_name="tada")).ok
        (await ann.delete(f"/messages/{ids[2]}")).ok
        (await ann.patch(f"/messages/{ids[3]}", topic="two", propagate_mode="change_later")).ok
        await ann.send("general", "one", "new")
        await followed(config, own(old))
        require_equal(config, old)


async def test_nobody_can_write_here_before_the_end(config: Config, old: Old) -> None:
    async with old.people() as (ann, ben):
        message_id = await ann.send("general", "one", "first")
        await followed(config, own(old))
        moving = msgspec.structs.replace(config, moving_from_url=old.server.url)
        async with open_organization(moving) as org:
            here = Person(org.http, ben.user_id, ben.email, ben.api_key)
            assert (await here.get("/users/me")).ok["user_id"] == ben.user_id
            send = {"type": "stream", "to": "general", "topic": "one", "content": "too early"}
            assert "still moving" in (await here.post("/messages", **send)).refused()["msg"]
            (await here.post(f"/messages/{message_id}/reactions", emoji_name="tada")).refused()
            (await here.post("/user_groups/create", name="x", description="", members=[])).refused()
            assert (await here.get("/messages", anchor="newest", num_before=9, num_after=0)).ok
            (await here.register()).data
        found = await finished(config, own(old))
        assert found.step == "done"
        async with open_organization(moving) as org:
            here = Person(org.http, ben.user_id, ben.email, ben.api_key)
            assert await here.send("general", "one", "now") > message_id
            login = {"username": ben.email, "password": PASSWORD}
            assert (await org.nobody.post("/fetch_api_key", **login)).ok["api_key"] == ben.api_key
    with pytest.raises(ImportRefused, match="is finished"):
        await followed(config, own(old))


async def as_imported(config: Config, **progress: Any) -> None:
    """Forget that the organization was followed, as if an export had been imported."""
    stored = msgspec.json.encode({"step": "done", "keep_ids": True, **progress}).decode()

    def put(connection: Any) -> None:
        installation.put(connection, IMPORT_FACT, stored)
        installation.forget(connection, FACT)

    async with opened_log(config, print) as log:
        await log.store.write(put)


async def test_an_imported_export_is_continued(config: Config, old: Old) -> None:
    async with old.people() as (ann, ben):
        ids = [await ben.send("general", "one", f"message {n}") for n in range(4)]
        await followed(config, own(old))
        await as_imported(config)
        (await ben.patch(f"/messages/{ids[0]}", content="edited")).ok
        (await ann.delete(f"/messages/{ids[1]}")).ok
        (await ann.patch(f"/messages/{ids[2]}", topic="two", propagate_mode="change_one")).ok
        (await ann.post(f"/messages/{ids[3]}/reactions", emoji_name="tada")).ok
        made = {"email": "cleo@example.com", "full_name": "Cleo", "password": PASSWORD}
        (await ann.post("/users", **made)).ok
        await ben.send("general", "one", "new")
        await followed(config, own(old))
        require_equal(config, old)
        found = await finished(config, own(old))
        assert found.differences == [UNREADABLE]


async def rename(config: Config, people: dict[int, tuple[str, str]]) -> None:
    async with open_organization(config) as org:
        for user_id, (name, address) in people.items():
            values = {"full_name": name, "address": address}
            await org.do(UserChanged(user_id=user_id, values=values, was={}))


async def test_only_the_organization_that_was_imported_is_followed(
    config: Config, old: Old
) -> None:
    async with old.people() as (ann, ben):
        last_id = await ben.send("general", "one", "there")
        await followed(config, own(old))
        for stored in ({"step": "messages"}, {"keep_ids": False}):
            await as_imported(config, **stored)
            with pytest.raises(ImportRefused, match="import of an export"):
                await followed(config, own(old))
        await as_imported(config, started_at=1)
        with pytest.raises(ImportRefused, match="written here after the export"):
            await followed(config, own(old))
        await as_imported(config)
        others = {ann.user_id: ("Cy", "cy@example.com"), ben.user_id: ("Di", "di@example.com")}
        await rename(config, others)
        with pytest.raises(ImportRefused, match="other IDs"):
            await followed(config, own(old))
        await rename(config, {ann.user_id: ("Ann", ann.email), ben.user_id: ("Ben", ben.email)})
        async with open_organization(config) as org:
            await org.change_realm(moving_from="")
            here = org.person_of("ben", org.node.state.users[ben.user_id])
            assert await here.send("general", "one", "too early") > last_id
        with pytest.raises(ImportRefused, match="newer messages here"):
            await followed(config, own(old))


@pytest.mark.parametrize("commits", [1, 2, 3])
async def test_a_killed_follower_continues(
    config: Config, old: Old, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "BATCH", 4)
    async with old.people() as (ann, ben):
        for n in range(10):
            await (ann, ben)[n % 2].send("general", f"topic {n % 3}", f"message {n}")
        with pytest.raises(Killed):
            await followed(config, own(old), tell=kill_after(commits))
        await ann.send("general", "topic 1", "one more")
        await followed(config, own(old))
        require_equal(config, old)


async def test_only_the_newest_edits_of_a_message_arrive(
    config: Config, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "MAX_EDITS", 2)
    async with old.people() as (ann, _):
        message_id = await ann.send("general", "greetings", "one")
        for text in ("two", "three", "four", "five"):
            (await ann.patch(f"/messages/{message_id}", content=text)).ok
    progress = await followed(config, own(old))
    assert [was for _, _, was in contents(config)["edits"]] == ["four", "three"]
    assert progress.report.skipped["edits: A message has more than 2."].count == 2


async def test_a_wrong_key_is_refused(config: Config, old: Old) -> None:
    server = ZulipServer(old.server.url, "ann@example.com", "x" * 32)
    with pytest.raises(SourceError, match="rejected the email address or API key"):
        await followed(config, server)
    with pytest.raises(SourceError, match="isn't the URL of a server"):
        ZulipServer("ftp://example.com", "ann@example.com", "x" * 32)


FAILURES = (
    Page(b"<html>Bad gateway</html>", status=502),
    Page(b'{"result": "error"}', status=429, headers={"Retry-After": "7"}),
    Page(b'{"result": "success"', "application/json"),
    Page(b"\xff\xfe", "application/json"),
    Page(b"[1, 2]", "application/json"),
    lambda writer: writer.close(),
)


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failing_server_is_asked_again(failure: Any) -> None:
    async with external_web() as web:
        path = "/api/v1/streams/7/members"
        web.pages[path] = failure

        def tell(_: str) -> None:
            if len(web.asked) == 3:
                body = b'{"result": "success", "subscribers": [1, 2, "x"]}'
                web.pages[path] = Page(body, "application/json")

        server = ZulipServer(
            web.url("", "127.0.0.1"), "a@example.com", "k", tell=tell, rest=lambda _: None
        )
        assert await asyncio.to_thread(server.subscribers, 7) == [1, 2]
        server.close()
        assert len(web.asked) == 4


async def test_waiting_for_a_failing_server_can_be_ended() -> None:
    async with external_web() as web:
        server = ZulipServer(
            web.url("", "127.0.0.1"), "a@example.com", "k", is_ended=lambda: bool(web.asked)
        )
        web.pages["/api/v1/streams/7/members"] = FAILURES[0]
        with pytest.raises(Interrupted):
            await asyncio.to_thread(server.subscribers, 7)
        server.close()


async def test_a_file_is_not_fetched_from_elsewhere() -> None:
    """A redirect would get the API key."""
    async with external_web() as web:
        web.pages["/user_uploads/1/a"] = redirect("http://127.0.0.1:9/")
        server = ZulipServer(web.url("", "127.0.0.1"), "a@example.com", "k")
        with pytest.raises(FileNotFoundError):
            await asyncio.to_thread(server.file, "/user_uploads/1/a")
        server.close()
