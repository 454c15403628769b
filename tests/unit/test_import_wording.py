"""Reports of imports in the languages of their readers."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tertulia.imports
from tertulia.cli.requested_imports import REPEATED
from tertulia.imports.report import ImportReport
from tertulia.imports.wording import kind_in, lines_of, message_of, reason_in
from tertulia.texts import LANGUAGES, texts

SOURCES = Path(tertulia.imports.__file__).parent
REASONS = texts("en", "imports").texts["reasons"]
KINDS = texts("en", "imports").texts["kinds"]


def template(node: ast.expr) -> str | None:
    """The text of a literal, with `{x}` for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (one.value if isinstance(one, ast.Constant) else "{x}" for one in node.values)
        return "".join(map(str, parts))
    return None


def remarks() -> Iterator[tuple[ast.expr, ast.expr]]:
    """The kinds and reasons in calls that add remarks to reports."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in {"skip", "change"} and len(node.args) > 1:
                yield node.args[0], node.args[1]


def test_every_literal_reason_and_kind_has_a_text() -> None:
    reasons = {template(reason) for _, reason in remarks()} - {None}
    kinds = {template(kind) for kind, _ in remarks()} - {None}
    assert len(reasons) > 80
    assert reasons - REASONS.keys() == set()
    assert kinds - KINDS.keys() == set()


def test_no_text_is_unused() -> None:
    used = {
        template(node)
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.expr)
    }
    assert REASONS.keys() - used - {REPEATED} == set()


def test_nouns_fit_their_counts() -> None:
    for language, nouns in {
        "en": ("person", "people"),
        "de": ("Person", "Personen"),
        "es": ("persona", "personas"),
        "fr": ("personne", "personnes"),
        "ja": ("ユーザー", "ユーザー"),
        "pt": ("pessoa", "pessoas"),
    }.items():
        assert tuple(kind_in(language, "people", count) for count in (1, 2)) == nouns
    report = ImportReport()
    report.count("people")
    report.count("messages", 1346)
    report.skip("files", "The file is missing.")
    assert lines_of(report) == [
        "       1,346  messages",
        "           1  person",
        "Skipped:",
        "           1  file. The file is missing.",
    ]
    assert "* 1.346 Nachrichten" in message_of(report, "Zulip 11.4", "de").splitlines()


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_a_report_is_in_the_language_of_its_reader(language: str) -> None:
    report = ImportReport()
    report.count("messages", 3)
    report.skip("files", "It's larger than 25 MiB.", "a.png")
    report.change("people", "The time zone doesn't exist.")
    said = message_of(report, "Zulip 11.4", language)
    assert "25" in said
    assert "Zulip 11.4" in said
    assert f"1 {kind_in(language, 'files', 1)}:" in said
    assert not any(word in said for word in ("larger", "messages:", "doesn't", "finished"))
    assert reason_in(language, "An error of a verb.") == "An error of a verb."
    assert kind_in(language, "unheard-of things", 1) == "unheard-of things"
    assert reason_in("en", "It's larger than 25 MiB.") == "It's larger than 25 MiB."
