"""The result of an import: counts by kind, and what it skipped or changed, with reasons."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

SAMPLES: Final = 5
"""The number of examples kept for each reason."""
MAX_REASONS: Final = 100
"""The most different reasons that are counted separately. The report is stored with every commit,
so it must stay small."""
SAMPLE_LENGTH: Final = 100
"""Longest example, in characters."""
REASON_LENGTH: Final = 200
"""Longest reason, in characters. It may contain names from the export."""

MAX_SHOWN: Final = 15
"""The most reasons that the message about the import lists."""

T = TypeVar("T")


class Remark(Struct):
    """Records of one kind that were skipped or changed for the same reason."""

    kind: str
    """The plural noun: `people`, `messages`, …"""
    reason: str
    """A sentence."""
    count: int = 0
    samples: list[str] = field(default_factory=list)


class ImportReport(Struct):
    imported: dict[str, int] = field(default_factory=dict)
    """The numbers of imported records, by plural noun."""
    skipped: dict[str, Remark] = field(default_factory=dict)
    changed: dict[str, Remark] = field(default_factory=dict)
    record: int = 0
    """The number of the record that the import's step looks at, or 0 before the first one."""
    known: int = 0
    """The number of the step's records that were looked at before the import was interrupted. The
    step looks at them again in the same order, but their remarks are already here."""

    def begin_step(self) -> None:
        self.record = self.known = 0

    def resume_step(self) -> None:
        self.record, self.known = 0, max(self.record, self.known)

    def begin_record(self) -> None:
        """Note that the step looks at its next record. All remarks about the record must be made
        before its first change is yielded, which may be committed before the import ends."""
        self.record += 1

    def each(self, records: Iterable[T]) -> Iterator[T]:
        """Yield the records as the step's next ones."""
        for record in records:
            self.begin_record()
            yield record

    @property
    def _is_known(self) -> bool:
        return 0 < self.record <= self.known

    def count(self, kind: str, number: int = 1) -> None:
        """Count imported records."""
        if number:
            self.imported[kind] = self.imported.get(kind, 0) + number

    def skip(self, kind: str, reason: str, sample: object = "", number: int = 1) -> None:
        """Report records that aren't imported."""
        if not self._is_known:
            _note(self.skipped, kind, reason, sample, number)

    def change(self, kind: str, reason: str, sample: object = "", number: int = 1) -> None:
        """Report records that are imported with changes."""
        if not self._is_known:
            _note(self.changed, kind, reason, sample, number)

    def add(self, other: "ImportReport") -> None:
        """Add another report's counts and remarks."""
        for kind, number in other.imported.items():
            self.count(kind, number)
        for mine, remarks in ((self.skipped, other.skipped), (self.changed, other.changed)):
            for remark in remarks.values():
                samples = remark.samples or [""]
                _note(mine, remark.kind, remark.reason, samples[0], remark.count)
                for sample in samples[1:]:
                    _note(mine, remark.kind, remark.reason, sample, 0)

    def taken(self) -> "ImportReport":
        """Return the report's contents as a new report, and empty this one."""
        merged = ImportReport(self.imported, self.skipped, self.changed)
        self.imported, self.skipped, self.changed = {}, {}, {}
        return merged

    def forget_samples(self) -> None:
        """Remove the samples, because they contain names and addresses."""
        for remark in (*self.skipped.values(), *self.changed.values()):
            remark.samples.clear()

    def to_json(self) -> dict[str, Any]:
        return {
            "imported": dict(sorted(self.imported.items())),
            "skipped": msgspec.to_builtins(list(self.skipped.values())),
            "changed": msgspec.to_builtins(list(self.changed.values())),
        }


def _note(remarks: dict[str, Remark], kind: str, reason: str, sample: object, number: int) -> None:
    reason = _plain(reason, REASON_LENGTH)
    key = f"{kind}: {reason}"
    remark = remarks.get(key)
    if remark is None:
        if len(remarks) >= MAX_REASONS:
            key, reason = f"{kind}: …", "There are other reasons, too many to list."
        remark = remarks.setdefault(key, Remark(kind=kind, reason=reason))
    remark.count += number
    text = _plain(str(sample), SAMPLE_LENGTH)
    if text and len(remark.samples) < SAMPLES and text not in remark.samples:
        remark.samples.append(text)


def _plain(text: str, longest: int) -> str:
    return text[:longest].replace("\0", "").encode(errors="ignore").decode()
