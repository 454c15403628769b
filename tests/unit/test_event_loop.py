"""Work on the event loop doesn't grow with people times messages, and large work is split over
several turns."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from tertulia.delivery import waiting_polls
from tertulia.log import commits
from tertulia.model.changes import ChannelCreated, Subscribed
from tertulia.model.channels import Channel
from tertulia.model.transients import Typing
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.store.database import Connection
from tertulia.store.writing import Batch
from tertulia.wire.http import responses
from tests.property.test_message_rows import changes_of, subscribed_channel
from tests.support import Listener, Organization, until

PEOPLE = 150
FEW, MANY = 8, 80
"""Messages in a topic."""
FOR_EACH = 60
"""The most function calls per message, no matter whom it concerns."""


class Calls:
    """Counts function calls in this thread."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        self.count += event == "call"


@contextmanager
def counted() -> Iterator[Calls]:
    calls = Calls()
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(None)


async def joined_by_and_by(org: Organization, people: list[int], ids: list[int]) -> int:
    """A private channel with a protected history, whose subscribers joined one after the other
    while these messages were sent."""
    state = org.node.state
    channel = Channel(
        id=state.channels.next_id(),
        name=f"private {len(ids)}",
        created_at=1,
        is_private=True,
        history_public=False,
    )
    groups: dict[int, list[int]] = {}
    for number, user_id in enumerate(people):
        groups.setdefault(ids[number % 4], []).append(user_id)
    await org.do(
        ChannelCreated(channel=channel),
        *(
            Subscribed(channel_id=channel.id, colors=dict.fromkeys(some, "#76ce90"), after=after)
            for after, some in groups.items()
        ),
    )
    return channel.id


@pytest.mark.parametrize("private", [False, True])
async def test_moving_messages_costs_per_person_plus_per_message(
    org: Organization, private: bool
) -> None:
    """Not per person times message."""
    ann = org["ann"]
    source = await subscribed_channel(org, PEOPLE)
    people = [*org.node.state.subscribers(source)]
    calls: list[int] = []
    sizes: list[int] = []
    for count in (FEW, MANY):
        sending = (ann.send(source, f"topic {count}", f"one of {count}") for _ in range(count))
        ids = sorted(await asyncio.gather(*sending))
        if private:
            target = await joined_by_and_by(org, [*people[: PEOPLE // 2], ann.user_id], ids)
        else:
            target = await subscribed_channel(org, PEOPLE + count)
            # They had joined before, and join again: their unread messages stay unread.
            await org.do(
                Subscribed(
                    channel_id=target, colors=dict.fromkeys(people, "#76ce90"), after=ids[-1]
                )
            )
        before = await org.node.store.read(changes_of)
        with counted() as found:
            move = {"stream_id": target, "propagate_mode": "change_all"}
            reply = await ann.patch(f"/messages/{ids[0]}", **move)
        assert reply.ok
        calls.append(found.count)
        after = await org.node.store.read(changes_of)
        assert after["message_flags"] == before["message_flags"]
        sizes.append(await org.node.store.read(_longest_move))
    assert calls[1] - calls[0] < (MANY - FEW) * FOR_EACH
    assert sizes[1] - sizes[0] < (MANY - FEW) * FOR_EACH


def _longest_move(connection: Connection) -> int:
    rows = connection.query("SELECT change FROM log ORDER BY seq DESC LIMIT 5")
    return max(len(change) for (change,) in rows if "messages_moved" in change)


async def test_a_moved_unread_message_is_a_row_of_its_reader(
    org: Organization,
) -> None:
    """In the database and in memory. It's deleted with the message."""
    ann, ben = org["ann"], org["ben"]
    source = await org.channel("source", "ann", "ben")
    message_id = await ann.send(source, "t", "one")
    target = await org.channel("target", "ann", "ben")
    move = {"stream_id": target, "send_notification_to_new_thread": False}
    assert (await ann.patch(f"/messages/{message_id}", **move)).ok
    unread = (await ben.register()).data["unread_msgs"]
    assert [one["unread_message_ids"] for one in unread["streams"]] == [[message_id]]
    shown = (await ben.get(f"/messages/{message_id}")).ok["message"]
    assert "read" not in shown["flags"]
    assert (await ann.delete(f"/messages/{message_id}")).ok
    rows = await org.node.store.read(lambda c: c.query("SELECT bitmap FROM record_state"))
    assert all(len(bytes(bitmap)) < 10 for (bitmap,) in rows)


# Turns of the loop


async def waiting(
    org: Organization, names: list[str]
) -> "list[asyncio.Task[list[dict[str, Any]]]]":
    """A client for each account, which polls. Returns its events up to this message."""

    async def listen(listener: Listener) -> list[dict[str, Any]]:
        heard: list[dict[str, Any]] = []
        while not any(e["type"] == "message" and "end" in e["message"]["content"] for e in heard):
            heard += await listener.events(block=True)
        return heard

    listeners = [await org[name].register(event_types=["message", "typing"]) for name in names]
    tasks = [asyncio.create_task(listen(one)) for one in listeners]
    await until(lambda: org.node.delivery.waiting == len(names))
    return tasks


async def test_waiting_clients_are_answered_in_turns_and_in_order(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["ben", "cleo", "ann"]
    channel_id = await org.channel("talk", *names)
    monkeypatch.setattr(waiting_polls, "TURN_SECONDS", 0)
    monkeypatch.setattr(waiting_polls, "BATCH_SIZE", 1)
    tasks = await waiting(org, [*names, *names])
    users = tuple(sorted(org[name].user_id for name in names))
    ids = []
    for number in range(5):
        ids.append(await org["ann"].send(channel_id, "t", f"{number}"))
        org.node.delivery.publish(
            Typing(sender_id=users[0], recipients=users, started=bool(number % 2))
        )
    ids.append(await org["ann"].send(channel_id, "t", "the end"))
    for heard in await asyncio.gather(*tasks):
        assert [e["message"]["id"] for e in heard if e["type"] == "message"] == ids
        typing = [e["op"] for e in heard if e["type"] == "typing"]
        # The last clients may be answered after later commits.
        assert typing == (["stop", "start"] * 3)[: len(typing)]
        assert len(typing) >= 1


@pytest.mark.parametrize("is_large", [True, False])
async def test_the_clock_is_checked_after_each_large_response(
    org: Organization, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    await org.channel("talk", "ann", "ben", "cleo")
    monkeypatch.setattr(waiting_polls, "TURN_SECONDS", 0)
    monkeypatch.setattr(waiting_polls, "LARGE", 100 if is_large else 10**6)
    tasks = await waiting(org, ["ben", "cleo"] * 4)
    turns: list[int] = []
    real = waiting_polls.WaitingPolls._take_turn

    def take_turn(polls: waiting_polls.WaitingPolls) -> None:
        before = len(polls)
        real(polls)
        turns.append(before - len(polls))

    monkeypatch.setattr(waiting_polls.WaitingPolls, "_take_turn", take_turn)
    await org["ann"].send("talk", "t", "the end")
    await asyncio.gather(*tasks)
    assert [one for one in turns if one] == ([1] * 8 if is_large else [8])


async def test_postponed_events_are_delivered_before_the_poll_ends(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel_id = await org.channel("talk", "ann", "ben")
    listeners = [await org["ben"].register(event_types=["message"]) for _ in range(4)]
    polls = [asyncio.create_task(listener.events(block=True)) for listener in listeners]
    await until(lambda: org.node.delivery.waiting == 4)
    monkeypatch.setattr(waiting_polls.WaitingPolls, "_take_turn", lambda _: None)
    message_id = await org["ann"].send(channel_id, "t", "hello")
    assert len(org.node.delivery.polls._undelivered) == 4
    # This ends the polls, which use the key.
    assert (await org["ben"].post("/users/me/api_key/regenerate")).ok
    for heard in await asyncio.gather(*polls):
        assert [event["message"]["id"] for event in heard] == [message_id]
    assert not org.node.delivery.polls._undelivered


async def test_slow_commands_yield_to_others(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "TURN_SECONDS", 0)
    order: list[str] = []

    def decide(_: CommandContext, name: str) -> Decision[None]:
        order.append(name)
        asyncio.get_running_loop().call_soon(order.append, "a turn")
        return Decision(None)

    await asyncio.gather(*(org.node.log.submit(None, decide, name) for name in "abc"))
    await asyncio.sleep(0)
    assert [one for one in order if one != "a turn"] == ["a", "b", "c"]
    assert order.index("a turn") < order.index("b")


async def test_a_register_response_is_built_in_several_steps(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribed_channel(org, 400)
    ann = org["ann"]
    for name in ("one", "two", "three"):
        await org.channel(name, "ann", "ben")
        await org["ben"].send(name, "t", "unread")
    usual = (await ann.register()).data
    org.node.fragments.clear()
    monkeypatch.setattr(responses, "STEP_SECONDS", -1)
    made: list[int] = []
    in_one_step = responses.Fragments.in_one_step

    def turn(shared_org: responses.Fragments, make: Any) -> Any:
        try:
            return in_one_step(shared_org, make)
        finally:
            made.append(shared_org._made)

    monkeypatch.setattr(responses.Fragments, "in_one_step", turn)
    before = await org.node.store.read(changes_of)
    slow = (await ann.register()).data
    assert len(made) > 4
    assert max(made) <= 1
    assert org.node.fragments._made <= 1  # No time was left for the response itself.
    assert len(usual["unread_msgs"]["streams"]) == 3
    shown = ("realm_users", "subscriptions", "never_subscribed", "user_status", "unread_msgs")
    for name in shown:
        assert slow[name] == usual[name]
    org.node.fragments.clear()
    assert len((await ann.get("/users")).ok["members"]) == len(usual["realm_users"])
    assert (await org["ben"].register()).data["realm_users"]
    # Queues registered by attempts that took too long are gone.
    after = await org.node.store.read(changes_of)
    assert after["queues"] - before["queues"] == 2


async def test_a_state_that_must_be_reloaded_is_loaded_in_a_thread(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    load = State.load

    def noted(*arguments: Any) -> State:
        threads.append(threading.get_ident())
        return load(*arguments)

    async def failing(_: Batch) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(State, "load", noted)
    with monkeypatch.context() as patch:
        patch.setattr(org.node.log.store, "commit", failing)
        (await org["ann"].post("/users/me/status", status_text="out")).refused(
            "SERVER_NOT_READY", 503
        )
    assert (await org["ann"].post("/users/me/status", status_text="out")).ok
    assert threads
    assert threading.get_ident() not in threads
