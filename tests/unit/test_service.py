"""Using the organization without HTTP: what is queried, and how often."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tertulia.domain.messages.sending import ToChannel
from tertulia.model.errors import Conflict, Unavailable
from tertulia.service.config import Config
from tertulia.service.messages.editing import edit_message
from tertulia.service.messages.scheduled import ScheduledEdit, change_scheduled, schedule_message
from tertulia.service.messages.sending import compose, send_message
from tertulia.service.node import Caller, retry_on_conflict
from tertulia.service.tasks import SingleFlight
from tertulia.store.readers import Requester, current_requester, reading_for
from tertulia.store.store import Store
from tests.support import Organization


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The kind of database makes no difference here."""
    return Config(data_dir=str(tmp_path), external_url="http://chat.test", rate_limits=False)


@pytest.fixture
def reads(org: Organization, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The queries, each listed once, except for those of jobs."""
    read, found = Store.read, list[Any]()
    jobs = {job.name for job in org.node.jobs()}

    async def counted(self: Store, function: Callable[..., Any], *arguments: Any) -> Any:
        task = asyncio.current_task()
        if task is None or task.get_name() not in jobs:
            found.append(function)
        return await read(self, function, *arguments)

    monkeypatch.setattr(Store, "read", counted)
    return found


def caller(org: Organization, name: str) -> Caller:
    return Caller(node=org.node, user_id=org[name].user_id)


async def test_everything_a_message_needs_is_read_together(
    org: Organization, reads: list[Any]
) -> None:
    channel_id = await org.channel("lounge", "ann", "ben", "cleo")
    paths = [await org["ben"].upload(f"{n}.txt", b"text") for n in range(3)]
    links = " ".join(f"[file](/user_uploads/{path})" for path in paths)
    await org["ben"].send("lounge", "plans", links)
    reads.clear()
    ann = caller(org, "ann")
    composed = await compose(
        org.node, ann.user, f"@**topic** {links}", lambda: (channel_id, "plans")
    )
    assert len(reads) == 1
    assert composed.topic_participants == {org["ben"].user_id}
    assert len(composed.opened_attachments) == 3


async def test_a_plain_message_needs_no_reads(org: Organization, reads: list[Any]) -> None:
    await org.channel("lounge", "ann", "ben")
    own = await org["ann"].upload("own.txt", b"text")
    unsent = await org["ben"].upload("unsent.txt", b"text")
    reads.clear()
    to = ToChannel(topic="plans", name="lounge")
    text = f"hello [file](/user_uploads/{own}) [and](/user_uploads/{unsent})"
    ann = caller(org, "ann")
    sent = await send_message(ann, to, text, client="test", read_by_sender=True)
    assert sent.message_id
    assert not reads


async def test_permissions_revoked_while_composing_apply(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel_id = await org.channel("vault", "ann", "ben", is_private=True)
    path = await org["ann"].upload("gold.txt", b"gold")
    link = f"[file](/user_uploads/{path})"
    await org["ann"].send("vault", "t", link)
    ben = caller(org, "ben")
    assert (await compose(org.node, ben.user, link, lambda: None)).opened_attachments
    read, pending = Store.read, [True]

    async def reading(self: Store, *arguments: Any) -> Any:
        found = await read(self, *arguments)
        if pending:
            pending.clear()
            people = {"subscriptions": ["vault"], "principals": [org["ben"].user_id]}
            (await org["ann"].delete("/users/me/subscriptions", **people)).ok
        return found

    monkeypatch.setattr(Store, "read", reading)
    composed = await compose(org.node, ben.user, link, lambda: (channel_id, "t"))
    assert not pending
    assert not composed.opened_attachments


async def test_a_message_changed_during_an_edit_is_edited_in_its_current_form(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "plans", "one")
    rendered, pending = type(org.node).rendered, [True]

    async def rendering(*arguments: Any, **options: Any) -> Any:
        if pending:
            pending.clear()
            (await org["ann"].patch(f"/messages/{sent}", topic="others")).ok
        return await rendered(*arguments, **options)

    monkeypatch.setattr(type(org.node), "rendered", rendering)
    await edit_message(caller(org, "ann"), sent, "two")
    message = (await org["ben"].get(f"/messages/{sent}")).ok["message"]
    assert (message["subject"], message["content"]) == ("others", "<p>two</p>")


async def test_a_scheduled_message_changed_concurrently_is_edited_in_its_current_form(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel_id = await org.channel("lounge", "ann", "ben")
    ann, at = caller(org, "ann"), int(org.node.clock()) + 1000
    to = ToChannel(topic="plans", channel_id=channel_id)
    waiting = await schedule_message(ann, to, "one", at, client="test", read_by_sender=True)
    rendered, pending = type(org.node).rendered, [True]

    async def rendering(*arguments: Any, **options: Any) -> Any:
        if pending:
            pending.clear()
            await change_scheduled(ann, waiting, ScheduledEdit(topic="others"), client="test")
        return await rendered(*arguments, **options)

    monkeypatch.setattr(type(org.node), "rendered", rendering)
    await change_scheduled(ann, waiting, ScheduledEdit(content="two"), client="test")
    message = org.node.state.scheduled_messages[waiting]
    assert (message.topic, message.content) == ("others", "two")


async def test_a_conflict_that_never_ends_is_raised() -> None:
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise Conflict

    with pytest.raises(Conflict):
        await retry_on_conflict(attempt)
    assert attempts == 10


async def test_concurrent_requests_for_the_same_work_share_it() -> None:
    flights, begun, go = SingleFlight("Too much."), list[str](), asyncio.Event()

    async def work() -> None:
        begun.append("work")
        await go.wait()

    one, two = (asyncio.create_task(flights.do("a", work, 1)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()  # The first client disconnects; the other one still waits.
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="Too much"):
        await flights.do("b", work, 1)
    go.set()
    await two
    assert begun == ["work"]
    await flights.do("b", work, 1)
    assert begun == ["work", "work"]


async def test_shared_work_is_charged_to_nobody() -> None:
    askers: list[Requester] = []

    async def work() -> None:
        askers.append(current_requester.get())

    with reading_for(Requester(5)):
        await SingleFlight("Too much.").do("a", work, 1)
    assert [asker.person for asker in askers] == [None]
