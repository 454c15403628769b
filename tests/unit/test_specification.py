"""Every test named in the tables of `docs/specification` and `docs/security.md` exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
DOCS = TESTS.parent / "docs"
PAGES = sorted((DOCS / "specification").glob("*.md"))
_NAMED = re.compile(r"`([a-z0-9_/]+\.py)::(test_\w+)`")


def rows(page: Path) -> Iterator[tuple[int, list[str]]]:
    """The line and cells of each row, without table headings."""
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("|") or re.fullmatch(r"[|\s:-]+", line):
            continue
        if number < len(lines) and re.fullmatch(r"[|\s:-]+", lines[number]):
            continue
        yield number, [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def missing(shown: str) -> list[str]:
    """The named tests that don't exist."""
    return [
        f"{path}::{name}"
        for path, name in _NAMED.findall(shown)
        if not (TESTS / path).is_file() or name not in functions(path)
    ]


def anchors(page: Path) -> set[str]:
    """The page's link targets: its headings in the form used in addresses."""
    headings = re.findall(r"^##+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def functions(path: str) -> frozenset[str]:
    """The names of the tests in a file."""
    tree = ast.parse((TESTS / path).read_text())
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_statement_names_an_existing_test(page: Path) -> None:
    wrong = []
    for number, [statement, *_, shown] in rows(page):
        lost = missing(shown)
        if not statement or not _NAMED.search(shown) or lost:
            wrong.append(f"{page.name}:{number} names {lost or 'no test'}")
    assert not wrong


LIST = DOCS / "specification.md"


def test_the_list_has_every_page_and_no_other() -> None:
    listed = LIST.read_text()
    assert set(re.findall(r"\(specification/([\w-]+\.md)\)", listed)) == {p.name for p in PAGES}


def test_the_list_links_to_existing_headings() -> None:
    there = {(page.name, anchor) for page in PAGES for anchor in anchors(page)}
    named = set(re.findall(r"\(specification/([\w-]+\.md)#([\w-]+)\)", LIST.read_text()))
    assert named <= there


SECURITY = DOCS / "security.md"
STATES = {"met", "partly met", "not met", "not applicable", "operator"}
LEVELS_1_AND_2 = """
1.1.1-2 1.2.1-9 1.3.1-11 1.4.1-3 1.5.1-2  2.1.1-3 2.2.1-3 2.3.1-4 2.4.1-1
3.2.1-2 3.3.1-4 3.4.1-6 3.5.1-5 3.7.1-2  4.1.1-3 4.2.1-1 4.3.1-2 4.4.1-4
5.1.1-1 5.2.1-3 5.3.1-2 5.4.1-3
6.1.1-3 6.2.1-12 6.3.1-4 6.4.1-4 6.5.1-5 6.6.1-3 6.8.1-4
7.1.1-3 7.2.1-4 7.3.1-2 7.4.1-5 7.5.1-2 7.6.1-2  8.1.1-2 8.2.1-3 8.3.1-1 8.4.1-1
9.1.1-3 9.2.1-4  10.1.1-2 10.2.1-2 10.3.1-4 10.4.1-11 10.5.1-5 10.6.1-2 10.7.1-3
11.1.1-2 11.2.1-3 11.3.1-3 11.4.1-4 11.5.1-1 11.6.1-1  12.1.1-3 12.2.1-2 12.3.1-4
13.1.1-1 13.2.1-5 13.3.1-2 13.4.1-5  14.1.1-2 14.2.1-4 14.3.1-3
15.1.1-3 15.2.1-3 15.3.1-7  16.1.1-1 16.2.1-5 16.3.1-4 16.4.1-3 16.5.1-3
17.1.1-1 17.2.1-4 17.3.1-2
"""
"""The requirements of levels 1 and 2 of OWASP ASVS 5.0.0: 253."""


def requirements() -> Iterator[tuple[int, list[str]]]:
    """The rows of the requirements: those in tables of four columns whose first is a
    requirement."""
    for number, cells in rows(SECURITY):
        if re.match(r"\d+\.\d+\.\d+", cells[0]):
            yield number, cells


def spread(text: str) -> Iterator[str]:
    """Expand `1.2.1-3, 1.2.6` into single numbers."""
    for section, first, last in re.findall(
        r"(\d+\.\d+)\.(\d+)(?:[-\u2013](?:\d+\.\d+\.)?(\d+))?", text
    ):
        for number in range(int(first), int(last or first) + 1):
            yield f"{section}.{number}"


def test_every_security_requirement_appears_once() -> None:
    listed = [number for _, cells in requirements() for number in spread(cells[0])]
    assert sorted(listed) == sorted(spread(LEVELS_1_AND_2))
    assert len(listed) == 253


def test_every_security_claim_has_a_test_or_an_admission() -> None:
    wrong = []
    for line, (number, state, here, shown) in requirements():
        names = _NAMED.search(shown) or re.search(r"\]\([^)]+\)", shown)
        if state not in STATES:
            wrong.append(f"{number} (line {line}) is in no known state: {state}")
        elif state == "met" and not names:
            wrong.append(f"{number} (line {line}) names neither a test nor a page")
        elif state != "met" and not here:
            wrong.append(f"{number} (line {line}) does not say what is missing")
        wrong += [f"{number} (line {line}) names {name}" for name in missing(shown)]
    assert not wrong


@pytest.mark.parametrize("page", [SECURITY, TESTS.parent / "SECURITY.md"], ids=lambda p: p.name)
def test_links_about_security_have_existing_targets(page: Path) -> None:
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), path
        assert not anchor or anchor in anchors(target), (path, anchor)
