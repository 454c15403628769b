"""Reports of imports in the reader's language.

Reports are stored in English, and their sentences are the keys of the texts, so that they can be
translated when they're read. `{x}` in a key stands for a variable part of the sentence. Reasons
that are this server's errors stay in English.
"""

import re
from collections.abc import Mapping
from functools import cache

from tertulia.imports.report import MAX_SHOWN, ImportReport
from tertulia.texts import texts


def kind_in(language: str, kind: str) -> str:
    """Return the plural noun of imported records in that language."""
    kinds: Mapping[str, str] = texts(language, "imports").texts["kinds"]
    return kinds.get(kind, kind)


def reason_in(language: str, reason: str) -> str:
    """Return why records were skipped or changed in that language."""
    reasons: Mapping[str, str] = texts(language, "imports").texts["reasons"]
    known = reasons.get(reason)
    if known is not None:
        return known
    for pattern, name in _patterns():
        if match := pattern.fullmatch(reason):
            return reasons[name].replace("{x}", match["x"])
    return reason


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(re.escape(name).replace(re.escape("{x}"), "(?P<x>.+)")), name)
        for name in texts("en", "imports").texts["reasons"]
        if "{x}" in name
    ]


def message_of(report: ImportReport, origin: str, language: str) -> str:
    """Return the message about a finished import as Markdown: the counts and the most frequent
    remarks."""
    phrases = texts(language, "imports")
    lines = [phrases("title", origin=origin), ""]
    counts = sorted(report.imported.items())
    lines += [f"* {number:,} {kind_in(language, kind)}" for kind, number in counts]
    for heading, remarks in (("skipped", report.skipped), ("changed", report.changed)):
        shown = sorted(remarks.values(), key=lambda remark: -remark.count)[:MAX_SHOWN]
        if shown:
            lines += ["", f"**{phrases(heading)}**", ""]
        lines += [
            f"* {remark.count:,} {kind_in(language, remark.kind)}:"
            f" {reason_in(language, remark.reason)}"
            for remark in shown
        ]
        if len(remarks) > MAX_SHOWN:
            lines.append(f"* {phrases('more', count=len(remarks) - MAX_SHOWN)}")
    return "\n".join(lines)
