"""Finding out what an import would do, without writing anything."""

import time
from collections.abc import Iterable

from tertulia.imports.channels import memberships
from tertulia.imports.commits import CHANGES_AT_ONCE
from tertulia.imports.identifiers import Identifiers, assign_ids
from tertulia.imports.organization import OrganizationChanges
from tertulia.imports.progress import Expired, Progress, Tell, read_batches, read_from
from tertulia.imports.records import SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.source import Source
from tertulia.model.changes import AnyChange, Entry
from tertulia.model.users import Credential
from tertulia.state.folds import fold
from tertulia.state.state import State


def dry_run(source: Source, tell: Tell, state: State, *, matches_accounts: bool = True) -> Progress:
    """Read everything, and count what would be imported. `state` is a copy of the organization that
    the import would come into, or empty: everything but messages is folded into it, so that names
    that are taken and limits count as in an import. Raises SourceError."""
    survey = read_from(source.survey)
    progress = Progress(
        fingerprint=survey.fingerprint,
        kind=source.kind,
        origin=survey.origin,
        expected=survey.messages,
        is_new=state.is_empty,
    )
    report = progress.report
    organization = read_from(lambda: source.organization(report))
    rehearsal = _Rehearsal(state, organization, report, keeps_ids=source.keeps_ids)
    read_from(lambda: rehearsal.run(matches_accounts))
    expired = Expired(organization, time.time(), report)
    progress.step = "messages"
    for batch in read_batches(source, "", report):
        progress.messages += len(batch.messages)
        report.count("messages", len(batch.messages))
        report.count("reactions", sum(len(message.reactions) for message in batch.messages))
        report.count("files", sum(len(message.attachments) for message in batch.messages))
        for message in batch.messages:
            expired.look(message)
        tell(progress)
    return progress


class _NoSecrets:
    """Stands for what accounts need from the installation's secret, as `Secrets`."""

    def credential(self, user_id: int, *, is_bot: bool) -> Credential:
        return Credential(user_id=user_id, key_digest=f"of {user_id}", key_sealed="")

    def sealed(self, text: str) -> str:
        return ""

    def nonce(self) -> str:
        return ""


class _Rehearsal:
    """Makes the changes of an import that are no messages, and folds them into a state that nobody
    else uses."""

    def __init__(
        self, state: State, source: SourceOrganization, report: ImportReport, *, keeps_ids: bool
    ) -> None:
        self._state = state
        self._source = source
        self._report = report
        self._is_new = state.is_empty
        self._keeps_ids = keeps_ids and self._is_new

    def run(self, matches_accounts: bool) -> None:
        source, ids, now = self._source, Identifiers(), time.time()
        assign_ids(
            self._state,
            source,
            ids,
            keep=self._keeps_ids,
            matches_accounts=matches_accounts,
            report=self._report,
        )
        made = OrganizationChanges(
            self._state, source, ids, _NoSecrets(), self._report, now, is_new=self._is_new
        )
        if self._is_new:
            self._fold(made.founding("dry run"))
        users = made.accounts.users()
        for begin in range(0, len(users), CHANGES_AT_ONCE):
            self._fold(made.accounts.created(users[begin:][:CHANGES_AT_ONCE], {}))
        self._fold(made.channels.groups())
        self._fold(made.channels.group_contents())
        self._fold(made.channels.folders())
        self._fold(made.channels.channels())
        first, later = memberships(source.subscriptions)
        self._fold(made.channels.first_subscriptions(first))
        for emoji in source.emoji:
            if (emoji_id := ids.find("emoji", emoji.key)) is not None:
                made.pictures.emoji[emoji_id] = ("", "")
        self._fold(made.rest())
        self._fold(made.personal())
        self._report.count("files", len(source.attachments))
        begun = (step.subscription for step in later if step.is_first)
        known = [
            subscription
            for subscription in begun
            if ids.find("user", subscription.user) and ids.find("channel", subscription.channel)
        ]
        self._report.count("subscriptions", len(known))

    def _fold(self, changes: Iterable[AnyChange]) -> None:
        for change in changes:
            fold(self._state, Entry(self._state.seq + 1, 0, None, change))
