"""The size of an import's commits while other people use the organization."""

from typing import Any

import pytest
from msgspec.structs import replace

from tertulia.app.founding import opened_log, opened_vault
from tertulia.imports import message_import, preparation
from tertulia.imports.importer import Importer
from tertulia.imports.messages import BatchChanges
from tertulia.imports.pace import SHARED_SECONDS, Pace
from tertulia.imports.progress import Progress
from tertulia.imports.records import SourceOrganization, SourceSubscription
from tertulia.imports.report import ImportReport
from tertulia.imports.target import ImportTarget
from tertulia.model.changes import AlertWordsChanged, MessageSent
from tertulia.model.messages import Message
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import queries
from tests.imports.invented import Invented
from tests.imports.rendering import SameProcess

pytestmark = pytest.mark.anyio


async def test_an_import_writes_smaller_batches_while_others_write(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of the source have 10 messages."""
    monkeypatch.setattr("tertulia.imports.importer.RenderPool", SameProcess)
    monkeypatch.setattr(message_import, "MESSAGE_BATCH", 25)  # Twice that while founding.
    monkeypatch.setattr(preparation, "BATCHES_TOGETHER", 100)
    written: list[int] = []
    pauses: list[int] = []
    now = 1000.0

    def tell(progress: Progress) -> None:
        if progress.messages > sum(written):
            written.append(progress.messages - sum(written))

    async def pause(pace: Pace) -> None:
        if pace.is_shared:
            pauses.append(sum(written))

    monkeypatch.setattr(Pace, "pause", pause)
    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    async with opened_log(config, print) as log:
        log.elapsed = lambda: now
        true = log.submit

        async def submit(*arguments: Any, **more: Any) -> Any:
            nonlocal now
            if sum(written) == 100:  # Another process commits first.
                async with opened_log(config, print) as other:
                    words = AlertWordsChanged(user_id=11, words=("harbor",))
                    await other.submit(11, lambda _: Decision(None, (words,)))
            if sum(written) == 200:
                now += SHARED_SECONDS
            return await true(*arguments, **more)

        monkeypatch.setattr(log, "submit", submit)
        await Importer(ImportTarget(log, vault, files, disk), Invented(400), tell=tell).run()
    vault.close()
    assert written == [50, 50, 50, *[10] * 5, 10, 50, 50, 50, 40]
    assert pauses == [150, 160, 170, 180, 190, 200]


class Joining(Invented):
    """Someone joins a channel after the 55th message, with a setting that doesn't exist here."""

    def organization(self, report: ImportReport) -> SourceOrganization:
        found = super().organization(report)
        joining = SourceSubscription(
            channel=22, user=13, spans=((155, None),), settings={"unheard_of": True}
        )
        return replace(found, subscriptions=(*found.subscriptions, joining))


async def test_changes_that_were_made_before_others_wrote_are_made_again(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are made while the previous messages are written to disk. Remarks are counted once."""
    monkeypatch.setattr("tertulia.imports.importer.RenderPool", SameProcess)
    monkeypatch.setattr(message_import, "MESSAGE_BATCH", 25)
    monkeypatch.setattr(preparation, "BATCHES_TOGETHER", 100)
    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    sent: list[int] = []

    def greet(context: CommandContext) -> Decision[None]:
        sent.append(context.state.last_message_id + 1)
        message = Message(
            id=sent[0], sender_id=11, sent_at=1, channel_id=21, topic="hello", content="hi"
        )
        return Decision(None, (MessageSent(message=message),))

    async with opened_log(config, print) as log:
        true = log.submit

        async def submit(actor_id: int | None, verb: Any, *arguments: Any, **more: Any) -> Any:
            match arguments:
                case (BatchChanges() as changes, *_) if changes.state.last_message_id and not sent:
                    async with opened_log(config, print) as other:
                        await other.submit(11, greet)
            return await true(actor_id, verb, *arguments, **more)

        monkeypatch.setattr(log, "submit", submit)
        progress = await Importer(ImportTarget(log, vault, files, disk), Joining(400)).run()
        stored = await log.store.read(queries.count_messages)
        greeting, *others = await log.store.read(lambda c: queries.messages(c, [sent[0]]))
    vault.close()
    assert (greeting.content, others) == ("hi", [])
    assert progress.report.imported["messages"] == 400
    reason = "settings of subscriptions: There is no setting 'unheard_of' here."
    assert progress.report.skipped[reason].count == 1
    # The report is the last message.
    assert stored == 400 + 1 + 1
