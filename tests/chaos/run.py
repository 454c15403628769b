"""One run: create the organization, inject faults while clients act, end all faults, and check the
invariants."""

import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tertulia.log.health import STALE_SECONDS
from tertulia.service.config import Config
from tests.chaos.clients import PATIENCE, Client, shown
from tests.chaos.cluster import Cluster, Node
from tests.chaos.organization import add_channels, add_people
from tests.chaos.plan import Fault
from tests.chaos.record import Attempt, Outcome, Record, last, once, stale
from tests.chaos.requests import Account, NodeClient
from tests.chaos.revocations import Revocations, Spare
from tests.postgres import Standalone, standalone
from tests.reference_client import differences

NODES = 3
CLIENTS = 8
SPARE_PEOPLE = 90
SPARE_CHANNELS = 40
SETTLE_SECONDS = 120.0
"""The longest time to recover after the last fault."""
LATE_SECONDS = 3.0
"""After this time, requests sent to nodes before they were ready have reached their writers."""
PROGRESS_SECONDS = 10.0
PAGE = 1000
Say = Callable[[str], None]


class Chaos:
    """One run."""

    def __init__(
        self, database: Standalone, directory: Path, seed: int, faults: Sequence[Fault], say: Say
    ) -> None:
        self.record = Record()
        self._database = database
        self._directory = directory
        self._seed = seed
        self._faults = faults
        self._began = time.monotonic()
        self._said = say
        self._clients: list[Client] = []
        self._revocations: Revocations | None = None
        self._owner: NodeClient | None = None
        self._public: list[int] = []

    def say(self, text: str) -> None:
        """Print a line with the time."""
        self._said(f"{time.monotonic() - self._began:6.1f} s  {text}")

    async def run(self, seconds: float) -> list[str]:
        """Run with faults for this many seconds. Return the violations."""
        cluster = Cluster(self._database, self._directory, NODES, self.say)
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            await self._prepare(cluster)
            self._began = time.monotonic()
            await self._let_happen(cluster, seconds)
            if await self._settle(cluster):
                await self._judge(cluster)
        finally:
            await asyncio.to_thread(cluster.close)
            for asker in [*(client.asker for client in self._clients), self._owner]:
                if asker is not None:
                    await asker.close()
        wrong = self.record.violations + cluster.complaints + cluster.tracebacks()
        return [*wrong, *await asyncio.to_thread(self._checked, cluster)]

    # Setup

    async def _prepare(self, cluster: Cluster) -> None:
        first = cluster.nodes[0]
        owner = await asyncio.to_thread(first.create_organization)
        names = [f"client{n}" for n in range(CLIENTS)]
        spares = [f"spare{n}" for n in range(SPARE_PEOPLE)]
        config = Config(data_dir=str(first.data_dir), database_url=first.database_url)
        people = await add_people(config, [*names, *spares])
        accounts, spare = people[:CLIENTS], people[CLIENTS:]
        everybody = [owner.user_id, *(account.user_id for account in accounts)]
        hidden = {f"hidden {n}": [owner.user_id] for n in range(SPARE_CHANNELS)}
        channels = await add_channels(
            config, {"east": everybody, "west": everybody, "visited": [owner.user_id], **hidden}
        )
        self._public = [channels["east"], channels["west"]]
        cluster.share_secret()
        cluster.start()
        await self._await_ready(cluster)
        for account in accounts:
            client = Client(
                account.email.partition("@")[0],
                account,
                cluster,
                self.record,
                self._public,
                channels["visited"],
                random.Random(f"{self._seed} {account.email}"),
            )
            client.others = [other.user_id for other in accounts if other is not account]
            self._clients.append(client)
            await client.begin(first)
        self._owner = NodeClient(Account(owner.user_id, owner.email, owner.api_key))
        for name in hidden:
            answer = await self._owner.ask(
                *(first, "POST", "/messages", 30),
                type="stream",
                to=channels[name],
                topic="secret",
                content="for those who may read it",
            )
            assert answer.status == 200, answer
        self._revocations = Revocations(
            cluster,
            self.record,
            self._owner,
            self._clients[0].asker,
            Spare(spare, [channels[name] for name in hidden]),
            channels["east"],
            random.Random(f"{self._seed} revocations"),
        )

    async def _await_ready(self, cluster: Cluster) -> None:
        """Return when every node is fully working."""

        async def ready(node: Node) -> bool:
            try:
                async with httpx.AsyncClient(trust_env=False) as http:
                    response = await http.get(f"{node.url}/ready", timeout=15)
            except httpx.TransportError:
                return False
            node.has_served = node.has_served or response.status_code == 200
            return response.status_code == 200

        async def all_ready() -> bool:
            return all(await asyncio.gather(*(ready(node) for node in cluster.serving))) and all(
                node.is_newer == cluster.is_upgraded for node in cluster.serving
            )

        if not await _until(all_ready):
            late = [node for node in cluster.serving if not await ready(node)]
            logs = "\n".join(f"node {node.number}: {node.log_text()[-1000:]}" for node in late)
            raise NotReady(f"not every node was ready after {SETTLE_SECONDS:g} s:\n{logs}")

    # Faults

    async def _let_happen(self, cluster: Cluster, seconds: float) -> None:
        assert self._revocations is not None
        acting = [asyncio.create_task(client.act()) for client in self._clients]
        hearing = [asyncio.create_task(client.hear()) for client in self._clients]
        others = [
            asyncio.create_task(self._revocations.run()),
            asyncio.create_task(self._tell(cluster)),
        ]
        faults = asyncio.gather(*(self._strike(cluster, fault) for fault in self._faults))
        try:
            await asyncio.gather(_first_failure([*acting, *hearing, *others], seconds), faults)
            self.say("all is mended")
            for client in self._clients:
                client.rest()
            await asyncio.wait(acting, timeout=PATIENCE[1] * 2)
        finally:
            tasks = [*acting, *hearing, *others]
            for task in tasks:
                task.cancel()
            faults.cancel()
            await asyncio.gather(*tasks, faults, return_exceptions=True)
            await self._revocations.close()

    async def _strike(self, cluster: Cluster, fault: Fault) -> None:
        await asyncio.sleep(max(0.0, self._began + fault.at - time.monotonic()))
        await cluster.strike(fault)

    async def _tell(self, cluster: Cluster) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            self.say(self.summary())

    def summary(self) -> str:
        """Counts of what happened."""
        record, revocations = self.record, self._revocations
        assert revocations is not None
        late = (probe.sent - probe.revocation.acknowledged for probe in revocations.probes)
        return (
            f"{record.count(Outcome.DONE)} done, {record.count(Outcome.REFUSED)} refused,"
            f" {record.count(Outcome.UNKNOWN)} unknown; {record.events} events in"
            f" {sum(client.polls for client in self._clients)} polls; {revocations.count} rights"
            f" taken away, used {len(revocations.probes)} times with (until"
            f" {max(late, default=0.0):.1f} s after) and {revocations.refused} without success;"
            f" {len(record.violations)} violations"
        )

    # Results

    async def _settle(self, cluster: Cluster) -> bool:
        """Return whether everything has recovered."""
        try:
            await self._await_ready(cluster)
        except NotReady as error:
            self.record.fail(str(error))
            return False
        self.say("all nodes are ready")
        await asyncio.sleep(LATE_SECONDS)
        assert self._owner is not None
        last_id = 0
        # One message from each client: its earlier requests are done by then.
        for node in cluster.serving:
            answer = await self._owner.ask(
                *(node, "POST", "/messages", 40),
                type="stream",
                to=self._public[0],
                topic="end",
                content="the last message",
            )
            if answer.status != 200:
                self.record.fail(f"a message to node {node.number} when all was mended: {answer}")
                return False
            last_id = answer.body["id"]
        for client in self._clients:
            heard = partial(self._heard, client, cluster, last_id)
            if not await _until(heard):
                self.record.fail(f"{client.name} did not hear of message {last_id}")
        return True

    async def _heard(self, client: Client, cluster: Cluster, message_id: int) -> bool:
        for node in cluster.serving:
            while True:
                before = client.last_event_id
                await client.poll(node, 40, block=False)
                if client.last_event_id == before:
                    break
        return message_id in client.messages

    async def _judge(self, cluster: Cluster) -> None:
        record = self.record
        assert self._revocations is not None
        for text in [*record.order(), *stale(self._revocations.probes, STALE_SECONDS)]:
            record.fail(text)
        messages: dict[int, dict[str, Any]] = {}
        starred: dict[int, bool] = {}
        names: dict[int, str] = {}
        for number, client in enumerate(self._clients):
            node = cluster.serving[number % len(cluster.serving)]
            fresh = await client.register(node)
            assert client.picture is not None
            for difference in differences(client.picture.shown(), fresh.shown())[:5]:
                record.fail(f"{client.name}, beside node {node.number}: {difference[:600]}")
            fetched = await self._fetched(client, node)
            messages |= fetched
            self._compare(client, fetched, node)
            starred |= {sent.id: sent.id in fresh.starred for sent in client.sent}
            names |= {i: user["full_name"] for i, user in fresh.users.items()}
            self._judge_reading(client, fetched)
        await self._judge_attempts(messages, starred, names, cluster)

    def _compare(self, client: Client, fetched: dict[int, dict[str, Any]], node: Node) -> None:
        """Compare what events said about messages with what is stored."""
        there = {i: shown(message) for i, message in fetched.items()}
        known = {i: message for i, message in client.messages.items() if i in there}
        first = min(known, default=0)
        due = {
            i
            for i, (channel_id, _, _) in there.items()
            if i >= first and (channel_id is None or channel_id in self._public)
        }
        for i in sorted(due - known.keys())[:5]:
            self.record.fail(f"{client.name} did not hear of message {i} {there[i]}")
        for i, message in known.items():
            if message != there[i]:
                self.record.fail(
                    f"{client.name}: message {i} is {message} by events, {there[i]} at node"
                    f" {node.number}"
                )
        assert client.picture is not None
        for i in known:
            held = client.picture.hanging.get(i)
            reactions = [dict(one) for one in fetched[i]["reactions"]]
            for reaction in reactions:
                reaction.pop("user", None)  # The account's current name.
            if held is not None and held["reactions"] != reactions:
                self.record.fail(
                    f"{client.name}: reactions to {i} are {held['reactions']} by events,"
                    f" {reactions} at node {node.number}"
                )

    async def _fetched(self, client: Client, node: Node) -> dict[int, dict[str, Any]]:
        """All messages that the client's user has received."""
        found: dict[int, dict[str, Any]] = {}
        anchor = 0
        while True:
            answer = await client.asker.ask(
                *(node, "GET", "/messages", 60),
                anchor=anchor,
                include_anchor=False,
                num_before=0,
                num_after=PAGE,
                apply_markdown=False,
                allow_empty_topic_name=True,
            )
            assert answer.status == 200, answer
            page = answer.body["messages"]
            found |= {message["id"]: message for message in page}
            if answer.body["found_newest"]:
                return found
            anchor = page[-1]["id"]

    def _judge_reading(self, client: Client, fetched: dict[int, dict[str, Any]]) -> None:
        for attempt in self.record.attempts:
            if attempt.what != "read" or attempt.outcome is not Outcome.DONE:
                continue
            for message_id, message in fetched.items():
                if attempt.subject == (client.name, message_id) and "read" not in message["flags"]:
                    self.record.fail(f"{attempt}: it is unread")

    async def _judge_attempts(
        self,
        messages: dict[int, dict[str, Any]],
        starred: dict[int, bool],
        names: dict[int, str],
        cluster: Cluster,
    ) -> None:
        """Compare acknowledged, refused, and unknown attempts with what is stored."""
        by_subject: defaultdict[str, defaultdict[Any, list[Attempt]]]
        by_subject = defaultdict(lambda: defaultdict(list))
        for attempt in self.record.attempts:
            by_subject[attempt.what][attempt.subject].append(attempt)
        wrong: list[str] = []
        senders = {client.account.user_id for client in self._clients}
        contents = [m["content"].split()[0] for m in messages.values() if m["sender_id"] in senders]
        sends = by_subject["send"]["messages"]
        wrong += once(sends, contents)
        for attempt in sends:
            made = messages.get(attempt.result)
            if made is not None and made["content"].split()[0] != attempt.value:
                wrong.append(f"{attempt}: it is another message")
        for message_id in {*by_subject["edit"], *by_subject["move"]}:
            if message_id not in messages:
                continue  # Already reported as missing.
            edits, moves = by_subject["edit"][message_id], by_subject["move"][message_id]
            versions, moved, first = await self._history(message_id, cluster)
            message = messages[message_id]
            wrong += once(edits, versions) + once(moves, moved)
            wrong += last(edits, message["content"], first[0])
            wrong += last(moves, message["subject"], first[1])
        for message_id, attempts in by_subject["star"].items():
            wrong += last(attempts, starred[message_id], False)
        for (user_id, message_id, emoji), attempts in by_subject["react"].items():
            if message_id not in messages:
                continue
            reactions = [
                one
                for one in messages[message_id]["reactions"]
                if (one["user_id"], one["emoji_name"]) == (user_id, emoji)
            ]
            if len(reactions) > 1:
                wrong.append(
                    f"{user_id} reacted to {message_id} {len(reactions)} times with {emoji}"
                )
            wrong += last(attempts, bool(reactions), False)
        for user_id, attempts in by_subject["name"].items():
            account = next(c.account for c in self._clients if c.account.user_id == user_id)
            wrong += last(attempts, names[user_id], account.email.partition("@")[0])
        for text in wrong:
            self.record.fail(text)

    async def _history(
        self, message_id: int, cluster: Cluster
    ) -> tuple[list[str], list[str], tuple[str, str]]:
        """The contents and topics that the message was changed to, and the original ones."""
        client = next(c for c in self._clients if message_id in c.messages)
        answer = await client.asker.ask(
            cluster.serving[-1], "GET", f"/messages/{message_id}/history", 60
        )
        assert answer.status == 200, answer
        versions = answer.body["message_history"]
        contents = [version["content"] for version in versions if "prev_content" in version]
        topics = [version["topic"] for version in versions if "prev_topic" in version]
        return contents, topics, (versions[0]["content"], versions[0]["topic"])

    def _checked(self, cluster: Cluster) -> list[str]:
        """The problems that `tertulia check` finds."""
        node = cluster.nodes[0]
        node.is_newer = cluster.is_upgraded
        node.database_url = self._database.url  # Its proxy has been closed.
        try:
            answer = node.command("check")
        except AssertionError as error:
            return [f"tertulia check: {error}"]
        return [f"tertulia check: {one}" for one in answer["checks"] if not one["ok"]]


class NotReady(Exception):
    """The nodes didn't recover."""


async def _until(holds: Callable[[], Awaitable[bool]]) -> bool:
    """Return whether the condition becomes true in time."""
    until = time.monotonic() + SETTLE_SECONDS
    while not await holds():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.2)
    return True


async def _first_failure(tasks: Sequence["asyncio.Task[None]"], seconds: float) -> None:
    """Wait, and raise the first exception of the tasks."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


def happened(seed: int, faults: Sequence[Fault], seconds: float, say: Say) -> list[str] | None:
    """Run the test and print its progress. Return the violations, or None if PostgreSQL isn't
    available."""
    with standalone() as database:
        if database is None:
            return None
        directory = Path(tempfile.mkdtemp(prefix="tertulia-chaos-"))
        chaos = Chaos(database, directory, seed, faults, say)
        wrong = asyncio.run(chaos.run(seconds))
        say(chaos.summary())
        for reason, times in sorted(chaos.record.refusals.items(), key=lambda one: -one[1])[:12]:
            say(f"  {times} times {reason}")
        if wrong:
            say(f"What the nodes wrote is in {directory}")
        else:
            shutil.rmtree(directory)
        return wrong


def print_line(text: str) -> None:
    """Print it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
