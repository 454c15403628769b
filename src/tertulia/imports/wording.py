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


def kind_in(language: str, kind: str, count: int) -> str:
    """Return the noun for `count` imported records in that language."""
    phrases = texts(language, "imports")
    known = phrases.texts["kinds"].get(kind)
    return kind if known is None else phrases.filled(known, count=count)


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


def _counted(language: str, kind: str, number: int) -> str:
    from babel.numbers import format_decimal  # Imported by the first report.

    return f"{format_decimal(number, locale=language)} {kind_in(language, kind, number)}"


def lines_of(report: ImportReport, samples: int = 0) -> list[str]:
    """Return the report as lines for the command line, with at most `samples` samples per
    remark."""
    lines = [
        f"  {number:>10,}  {kind_in('en', kind, number)}"
        for kind, number in sorted(report.imported.items())
    ]
    for title, remarks in (("Skipped:", report.skipped), ("Changed:", report.changed)):
        if remarks:
            lines.append(title)
        for remark in remarks.values():
            kind = kind_in("en", remark.kind, remark.count)
            lines.append(f"  {remark.count:>10,}  {kind}. {remark.reason}")
            lines += [f"              {sample}" for sample in remark.samples[:samples]]
    return lines


def message_of(report: ImportReport, origin: str, language: str) -> str:
    """Return the message about a finished import as Markdown: the counts and the most frequent
    remarks."""
    phrases = texts(language, "imports")
    lines = [phrases("title", origin=origin), ""]
    counts = sorted(report.imported.items())
    lines += [f"* {_counted(language, kind, number)}" for kind, number in counts]
    for heading, remarks in (("skipped", report.skipped), ("changed", report.changed)):
        shown = sorted(remarks.values(), key=lambda remark: -remark.count)[:MAX_SHOWN]
        if shown:
            lines += ["", f"**{phrases(heading)}**", ""]
        lines += [
            f"* {_counted(language, remark.kind, remark.count)}:"
            f" {reason_in(language, remark.reason)}"
            for remark in shown
        ]
        if len(remarks) > MAX_SHOWN:
            lines.append(f"* {phrases('more', count=len(remarks) - MAX_SHOWN)}")
    return "\n".join(lines)
