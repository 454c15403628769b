"""Memory of the state: `python -m bench.state_memory`. For each size, a separate process loads
records like a starting node, kind by kind, and reports the memory that each kind takes with its
indexes.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from bench import processes
from tertulia.model.attachments import Attachment, AttachmentMessage
from tertulia.model.channels import Channel, Subscription, Topic
from tertulia.model.organization import Realm
from tertulia.model.sessions import Session
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.model.users import Credential, PersonalSettings, User
from tertulia.state.state import State

ACCOUNTS: Final = (20_000, 100_000, 300_000)
SUBSCRIPTIONS: Final = 20
"""The number of subscriptions per account. The other constants are also per account: data that it
has or creates in a few years."""
TOPICS: Final = 20
ATTACHMENTS: Final = 10
FOLLOWED: Final = 10
TEAM: Final = 100
"""Accounts per team channel."""
BEGAN: Final = 1_700_000_000


class Growth(NamedTuple):
    """The memory of one kind of record."""

    kind: str
    records: int
    size: int
    """In bytes."""


def _users(accounts: int) -> Iterator[Struct]:
    for n in range(1, accounts + 1):
        yield User(
            id=n, address=f"person.{n}@example.com", full_name=f"Person {n}", joined_at=BEGAN + n
        )


def _credentials(accounts: int) -> Iterator[Struct]:
    for n in range(1, accounts + 1):
        hashed = f"$argon2id$v=19$m=19456,t=2,p=1${n:022d}${n:043d}"
        yield Credential(
            user_id=n, password_hash=hashed, key_digest=f"{n:064x}", key_sealed=f"{n:0100d}"
        )


def _settings(accounts: int) -> Iterator[Struct]:
    return (PersonalSettings(user_id=n, edited_by_owner=True) for n in range(1, accounts + 1))


def _sessions(accounts: int) -> Iterator[Struct]:
    for n in range(1, accounts + 1):
        yield Session(
            id=n,
            user_id=n,
            digest=f"{n:064x}",
            agent=f"Mozilla/5.0 (X11; Linux x86_64; {n})",
            created_at=BEGAN + n,
            used_at=BEGAN + n,
        )


def _channels(accounts: int) -> Iterator[Struct]:
    for n in range(1, accounts // TEAM + 1):
        yield Channel(
            id=n,
            name=f"channel {n}",
            description=f"What team {n} talks about",
            created_at=BEGAN + n,
        )


def _subscriptions(accounts: int) -> Iterator[Struct]:
    """Each account is in its team's channel, in the first few channels, and in others nearby."""
    channels = accounts // TEAM
    for n in range(1, accounts + 1):
        team = n % channels
        near = {1 + (team + step) % channels for step in range(SUBSCRIPTIONS - 3)}
        everybody = {1, 2, 3} if channels >= 3 else {1}
        for channel in sorted(near | everybody):
            yield Subscription(
                channel_id=channel, user_id=n, spans=((n * 7, None),), began=n, color="#76ce90"
            )


def _topics(accounts: int) -> Iterator[Struct]:
    channels = accounts // TEAM
    for n in range(accounts * TOPICS):
        name = f"about the matter of {n}"
        yield Topic(
            channel_id=1 + n % channels, key=name, name=name, last_message_id=n, message_count=12
        )


def _attachments(accounts: int) -> Iterator[Struct]:
    for n in range(1, accounts * ATTACHMENTS + 1):
        yield Attachment(
            id=n,
            user_id=1 + n % accounts,
            name=f"report {n}.pdf",
            path=f"2/{n % 100:02d}/{n:032x}/report-{n}.pdf",
            size=100_000,
            media_type="application/pdf",
            created_at=BEGAN + n,
        )


def _linked(accounts: int) -> Iterator[Struct]:
    for n in range(1, accounts * ATTACHMENTS + 1):
        yield AttachmentMessage(attachment_id=n, message_id=n * 3)


def _followed(accounts: int) -> Iterator[Struct]:
    channels = accounts // TEAM
    for n in range(accounts * FOLLOWED):
        yield UserTopic(
            user_id=1 + n % accounts,
            channel_id=1 + n % channels,
            key=f"about the matter of {n}",
            name=f"about the matter of {n}",
            visibility=Visibility.FOLLOWED,
            changed_at=BEGAN + n,
        )


KINDS: Final = {
    "users": _users,
    "credentials": _credentials,
    "personal_settings": _settings,
    "sessions": _sessions,
    "channels": _channels,
    "subscriptions": _subscriptions,
    "topics": _topics,
    "attachments": _attachments,
    "attachment_messages": _linked,
    "user_topics": _followed,
}
"""The functions that create records, by table of the state."""


def measured(accounts: int) -> list[Growth]:
    """Measure a state with this many accounts, kind by kind, in a new process."""
    gc.collect()
    gc.disable()  # As at startup: nothing that is loaded is garbage.
    state = State.load(0, {"realm": [Realm(id=2, name="Bench", uuid="00", created_at=BEGAN)]})
    before = processes.pss(os.getpid())
    result = []
    for kind, records in KINDS.items():
        count = _load(state, kind, records(accounts))
        after = processes.pss(os.getpid())
        result.append(Growth(kind, count, after - before))
        before = after
    return result


def _load(state: State, kind: str, records: Iterable[Struct]) -> int:
    table = state.tables[kind]
    count = 0
    for record in records:
        table.put(record)
        count += 1
    table.dirty.clear()  # As in a starting node.
    return count


def in_process(accounts: int) -> list[Growth]:
    """Measure in a separate process."""
    command = [sys.executable, "-m", "bench.state_memory", "--one", str(accounts)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=1800, text=True)
    return [Growth(*load) for load in json.loads(done.stdout)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.state_memory", description=__doc__)
    parser.add_argument("--one", type=int, metavar="ACCOUNTS", help="measure here, as JSON")
    parser.add_argument("--accounts", type=int, action="append", help="sizes; several times")
    options = parser.parse_args()
    if options.one:
        json.dump(measured(options.one), sys.stdout)
        return
    print("| accounts | kind | records | bytes each | MiB |\n|---:|---|---:|---:|---:|")
    for accounts in options.accounts or ACCOUNTS:
        results = in_process(accounts)
        for kind, records, size in results:
            print(
                f"| {accounts:,} | {kind} | {records:,} | {size / records:,.0f}"
                f" | {size / 2**20:,.0f} |"
            )
        total = sum(item.size for item in results)
        print(
            f"| {accounts:,} | all | | {total / accounts:,.0f} an account | {total / 2**20:,.0f} |"
        )


if __name__ == "__main__":
    main()
