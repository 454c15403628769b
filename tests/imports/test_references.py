"""References in imported texts: they become links and mentions, and can't be forged."""

from contextlib import closing
from typing import Any

import msgspec
import pytest

from tertulia.imports import references
from tertulia.imports.context import ImportContext
from tertulia.imports.dry_run import _NoSecrets
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.messages import LINK_FACT, MessageWriter
from tertulia.imports.preparation import PreparedMessage
from tertulia.imports.records import (
    SourceAttachment,
    SourceFile,
    SourceMessage,
    SourceOrganization,
    SourceUser,
)
from tertulia.imports.report import ImportReport
from tertulia.model.changes import MessageSent
from tertulia.model.channels import Channel
from tertulia.model.messages import Rendered
from tertulia.model.numbers import Counter
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext
from tertulia.state.state import State
from tertulia.store import installation
from tertulia.store.database import READING
from tertulia.store.notes import Note
from tertulia.store.store import database_at
from tests.imports.invented import Invented, Killed, imported, kill_at_message

pytestmark = pytest.mark.anyio
OLD = "https://old.example.com/p1"


class Referring(Invented):
    """An export with these texts as messages. The first one may be linked."""

    def __init__(self, *texts: str, size: int = 10) -> None:
        super().__init__(len(texts), size=size, keeps_ids=False)
        self._texts = texts

    def organization(self, report: ImportReport) -> SourceOrganization:
        made = super().organization(report)
        twin = SourceUser(key="twin", full_name="Ben", address="ben2@example.com")
        return msgspec.structs.replace(made, users=(*made.users, twin))

    def message(self, n: int) -> SourceMessage:
        return SourceMessage(
            key=101 + n,
            sender=11,
            sent_at=1_600_000_000 + n,
            channel=21,
            topic="bread & butter",
            content=self._texts[n],
            is_linked=n == 0,
        )


def stored(config: Config) -> list[tuple[str, str]]:
    """Return the content and HTML of the messages."""
    with closing(
        database_at(config.data_path, config.database_url).connect(readonly=True, limits=READING)
    ) as connection:
        assert installation.values(connection, LINK_FACT) == {}
        rows = connection.query("SELECT content, rendered FROM messages ORDER BY id")
        return [(str(content), str(html)) for content, html in rows]


async def test_people_channels_and_messages_get_their_ids(config: Config) -> None:
    link = f"[there]({references.message_url(101, OLD)})"
    await imported(
        config,
        Referring(
            "first",
            f"{references.person('twin', 'Ben')} and {references.person(12, 'Ben', silent=True)}",
            f"{references.channel(21, '#kitchen')} {references.channel(99, '#gone')}",
            f"{references.person(99, 'Dan')} {references.group('none', '@cooks')} {link}",
        ),
    )
    rows = stored(config)
    assert rows[1][0].startswith("@**Ben|")
    assert "@_**Ben|" in rows[1][0]
    first, second = (one.partition("**")[0] for one in rows[1][0].split("Ben|")[1:])
    assert first != second
    assert f'data-user-id="{first}"' in rows[1][1]
    assert rows[2][0] == "#**kitchen** #gone"
    assert rows[3][0].startswith("Dan @cooks [there](/#narrow/channel/")
    address = rows[3][0].partition("(")[2].rstrip(")")
    assert address.endswith("/topic/bread.20.26.20butter/near/1")
    assert f'<a href="{address}">there</a>' in rows[3][1]


async def test_a_message_that_is_not_there_keeps_its_old_link(config: Config) -> None:
    link = f"[there]({references.message_url(777, OLD + '?a=1&b=2')})"
    await imported(config, Referring("first", link))
    content, html = stored(config)[1]
    assert content == f"[there]({OLD}?a=1&b=2)"
    assert f'href="{OLD}?a=1&amp;b=2"' in html


async def test_links_survive_an_interruption(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.imports.message_import.MESSAGE_BATCH", 1)
    link = f"[there]({references.message_url(101, OLD)})"
    source = Referring("first", *["between"] * 5, link, size=1)

    with pytest.raises(Killed):
        await imported(config, source, kill_at_message(3))
    await imported(config, source)
    assert stored(config)[-2][0].endswith("/near/1)")  # It's before the report.


def test_texts_cannot_forge_references() -> None:
    forged = references.person(11, "Ann")
    assert not set(references.clean(f"a\r\nb\t{forged}\0")) & set("\x00\x02\x03\x1f\r")
    assert references.person("a\x03b", "\x02x") == references.person("ab", "x")


async def test_a_file_that_is_missing_is_linked_where_it_was(config: Config) -> None:
    class WithFile(Referring):
        def message(self, n: int) -> SourceMessage:
            path = f"1/ab/{'k' * 24}{n}/a.txt"
            file: Any = SourceAttachment(
                key=n,
                owner=11,
                path=path,
                file=SourceFile(place=f"place {n}", name="a.txt"),
                otherwise=OLD,
            )
            content = f"[a.txt](/user_uploads/{path})"
            return msgspec.structs.replace(super().message(n), content=content, attachments=(file,))

    source = WithFile("", "")
    source.files["place 0"] = b"hello"
    progress = await imported(config, source)
    rows = stored(config)
    assert rows[0][0].startswith("[a.txt](/user_uploads/")
    assert rows[1][0] == f"[a.txt]({OLD})"
    assert progress.report.imported["files"] == 1


def test_changes_that_are_made_again_forget_the_first_ids() -> None:
    """A message of the same batch isn't linked before it's written, so nothing else is either."""
    state = State()
    state.channels.put(Channel(id=5, name="kitchen", created_at=0))
    state.counters.put(Counter(name="messages", last=100))
    state.seq = 10
    ids = Identifiers()
    ids.put("user", 11, 7)
    ids.put("channel", 21, 5)
    context = ImportContext(
        lambda: state,
        SourceOrganization(name="x"),
        ids,
        _NoSecrets(),
        ImportReport(),
        0,
        is_new=False,
    )
    writer = MessageWriter(context, [], {}, keep_ids=False)

    def prepared(key: int, content: str, *links: references.MessageLink) -> PreparedMessage:
        source = SourceMessage(
            key=key, sender=11, sent_at=1, channel=21, topic="t", content=content, is_linked=True
        )
        return PreparedMessage(
            source=source,
            content=content,
            sent_at=1,
            edits=(),
            rendered=Rendered(html=""),
            links=links,
        )

    later = references.MessageLink("LATER", 2, f"{OLD}/2")
    itself = references.MessageLink("ITSELF", 2, f"{OLD}/itself")
    batch = [prepared(1, "see LATER", later), prepared(2, "me ITSELF", itself)]
    changes = writer.changes(state, batch, 0)
    # Someone else sends messages in the meantime.
    state.counters.put(Counter(name="messages", last=103))
    state.seq += 3
    notes: list[Note] = []
    decision = writer.write(CommandContext(state, 0, None), changes, notes, lambda _: [])
    assert decision.result.ids == (104, 105)
    sent = [change.message for change in decision.changes if isinstance(change, MessageSent)]
    assert [message.content for message in sent] == [f"see {OLD}/2", f"me {OLD}/itself"]
    # Later messages link to the batch as it was written.
    third = writer.changes(state, [prepared(3, "see LATER", later)], 0)
    (change,) = third.changes
    assert isinstance(change, MessageSent)
    assert change.message.content.endswith("/near/105")
