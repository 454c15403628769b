"""What services that host code have in common: pushes, requests to merge, issues."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tertulia.integrations.prose import code, counted, link, listed, paragraphs, quote, short

MAX_COMMITS: Final = 10
"""Commits of a push that are named."""
NOTHING: Final = "0" * 40
"""The commit that a new branch had before, and a deleted one has after."""


@dataclass(frozen=True)
class Commit:
    """One commit of a push."""

    id: str
    message: str
    url: str
    author: str = ""

    @property
    def line(self) -> str:
        """Its first line, as an item of a list."""
        subject = short(self.message.strip().partition("\n")[0], 100) or "(without a message)"
        return f"* {subject} ({link(self.id[:11], self.url)})"


def branch_of(ref: str) -> str:
    """The branch or tag of a full reference's name."""
    return ref.removeprefix("refs/heads/").removeprefix("refs/tags/")


def pushed(
    who: str, branch: str, url: str, commits: Sequence[Commit], *, total: int = 0, forced: bool
) -> str:
    """Somebody pushed commits to a branch. `total` is how many, where not all are listed."""
    number = max(total, len(commits))
    where = f"to branch {link(code(branch), '')}"
    verb = link("force-pushed" if forced else "pushed", url)
    if not number:
        return f"{who} {verb} {where}."
    authors = list(dict.fromkeys(one.author for one in commits if one.author))
    by = ""
    if len(authors) > 1 or (authors and authors[0] != who):
        named = authors[:3] + (["others"] if len(authors) > 3 else [])
        by = f" Commits by {listed(named)}."
    lines = [one.line for one in commits[:MAX_COMMITS]]
    left = number - len(lines)
    return paragraphs(
        f"{who} {verb} {counted(number, 'commit')} {where}.{by}",
        "",
        *lines,
        f"* … and {counted(left, 'more commit', 'more commits')}" if left > 0 else "",
    ).replace("\n* ", "\n\n* ", 1)


def branch_made(who: str, kind: str, name: str, url: str) -> str:
    """Somebody made a branch or a tag."""
    return f"{who} created {kind} {link(code(name), url) if url else code(name)}."


def branch_deleted(who: str, kind: str, name: str) -> str:
    """Somebody deleted it."""
    return f"{who} deleted {kind} {code(name)}."


def topic_of(repository: str, kind: str = "", number: str = "", title: str = "") -> str:
    """The topic of a thing in a repository: `name / PR #3 Title`."""
    if not kind:
        return repository
    return f"{repository} / {kind} {number} {title}".strip()


def said(who: str, what: str, body: str = "", ending: str = ".") -> str:
    """A sentence, and what somebody wrote."""
    quoted = quote(body)
    return f"{who} {what}{':' if quoted else ending}" + (f"\n\n{quoted}" if quoted else "")
