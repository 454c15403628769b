"""Permissions that are revoked at one node and then used at all nodes."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tests.chaos.cluster import Cluster, Node
from tests.chaos.record import Outcome, Probe, Record, Revocation
from tests.chaos.requests import Account, Answer, NodeClient

PAUSE = (2.0, 5.0)
"""Seconds between two revocations, unless a node is paused before."""
PROBED_SECONDS = 32.0
"""How long a revoked permission is tried."""
PROBE_EVERY = 1.5
"""Seconds between two tries at one node. They don't wait for each other's responses."""
PROBE_PATIENCE = 25.0
ASK_PATIENCE = 3.0


Use = Callable[[Node], Awaitable[Answer]]


@dataclass
class Spare:
    """Accounts and channels for revocations. Each is used once."""

    people: list[Account]
    channels: list[int]
    """Public channels, each with a message, to which only the owner is subscribed."""


class Revocations:
    """Revokes permissions and uses them."""

    def __init__(
        self,
        cluster: Cluster,
        record: Record,
        owner: NodeClient,
        outsider: NodeClient,
        spare: Spare,
        channel_id: int,
        chance: random.Random,
    ) -> None:
        """`outsider` is subscribed to none of the spare channels. `channel_id` is public."""
        self.probes: list[Probe] = []
        """The successful uses."""
        self.count = 0
        """The number of acknowledged revocations."""
        self.refused = 0
        """The number of refused uses."""
        self._cluster = cluster
        self._record = record
        self._owner = owner
        self._outsider = outsider
        self._spare = spare
        self._channel_id = channel_id
        self._chance = chance
        self._tasks: set[asyncio.Task[None]] = set()
        self._askers: list[NodeClient] = []

    async def run(self) -> None:
        """Revoke one permission after another until canceled."""
        while self._spare.people or self._spare.channels:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._cluster.stopping.wait(), self._chance.uniform(*PAUSE))
            self._cluster.stopping.clear()
            if self._spare.people and (not self._spare.channels or self._chance.random() < 0.7):
                await self._deactivate(self._spare.people.pop())
            else:
                await self._hide(self._spare.channels.pop())

    async def close(self) -> None:
        """Cancel pending tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for asker in self._askers:
            await asker.close()

    async def _deactivate(self, account: Account) -> None:
        asker = NodeClient(account)
        self._askers.append(asker)
        revocation = Revocation(f"account {account.user_id} deactivated")
        path = f"/users/{account.user_id}"
        if not await self._revoke(revocation, "DELETE", path):
            return

        async def read(node: Node) -> Answer:
            return await asker.ask(node, "GET", "/users/me", PROBE_PATIENCE)

        async def write(node: Node) -> Answer:
            return await asker.ask(
                *(node, "POST", "/messages", PROBE_PATIENCE),
                type="stream",
                to=self._channel_id,
                topic="over",
                content=f"of the deactivated {account.user_id}",
            )

        self._spawn(self._use(revocation, read, write))

    async def _hide(self, channel_id: int) -> None:
        revocation = Revocation(f"channel {channel_id} made private")
        path = f"/streams/{channel_id}"
        if not await self._revoke(
            revocation, "PATCH", path, is_private=True, history_public_to_subscribers=False
        ):
            return

        async def read(node: Node) -> Answer:
            return await self._outsider.ask(
                *(node, "GET", "/messages", PROBE_PATIENCE),
                narrow=[["channel", channel_id]],
                anchor="newest",
                num_before=1,
                num_after=0,
            )

        self._spawn(self._use(revocation, read, None))

    async def _revoke(
        self, revocation: Revocation, method: str, path: str, **parameters: object
    ) -> bool:
        """Retry until it's acknowledged, but not for long."""
        is_tried = False
        for _ in range(6):
            # A node that was paused must learn of this before it shows anything again.
            stopped = self._cluster.stopped
            awake = [node for node in self._cluster.serving if node.number not in stopped]
            node = self._chance.choice(awake or self._cluster.serving)
            answer = await self._owner.ask(node, method, path, ASK_PATIENCE, **parameters)
            if answer.status == 200:
                revocation.acknowledged = time.monotonic()
                revocation.what += f" at node {node.number}"
                self.count += 1
                return True
            if answer.status >= 400 and answer.status != 503:
                if answer.status == 500 or not is_tried:
                    self._record.fail(f"{revocation.what}: {answer}")
                return False  # (An attempt without a response may have succeeded.)
            is_tried = is_tried or answer.outcome is Outcome.UNKNOWN
            if answer.outcome is Outcome.REFUSED:
                await asyncio.sleep(0.3)
        return False

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _use(self, revocation: Revocation, read: Use, write: Use | None) -> None:
        until = revocation.acknowledged + PROBED_SECONDS
        while time.monotonic() < until:
            for node in self._cluster.serving:
                self._spawn(self._probe(revocation, node, read, is_write=False))
                if write is not None:
                    self._spawn(self._probe(revocation, node, write, is_write=True))
            await asyncio.sleep(PROBE_EVERY)

    async def _probe(self, revocation: Revocation, node: Node, use: Use, *, is_write: bool) -> None:
        sent = time.monotonic()
        answer = await use(node)
        if answer.status == 200:
            self.probes.append(Probe(revocation, node.number, sent, time.monotonic(), is_write))
        else:
            self.refused += 1
