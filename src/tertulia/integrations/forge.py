"""Common parts of services that host code: pushes, pull requests, and issues."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tertulia.integrations.incoming import Post, Translated, Unsupported, WebhookRequest
from tertulia.integrations.payloads import Part, code, link, listed, paragraphs, quote, short
from tertulia.model.numbers import counted

Writer = Callable[[Part], Post | None]
"""Writes the message for one kind of event; None for events without a message. Raises Malformed."""

MAX_COMMITS: Final = 10
"""Commits of a push that are listed."""
NOTHING: Final = "0" * 40
"""The null commit, before a new branch and after a deleted one."""


@dataclass(frozen=True)
class Commit:
    """A commit of a push."""

    id: str
    message: str
    url: str
    author: str = ""

    @property
    def line(self) -> str:
        """A list item with the first line of the message."""
        subject = short(self.message.strip().partition("\n")[0], 100) or "(without a message)"
        return f"* {subject} ({link(self.id[:11], self.url)})"


def commits_in(payload: Part) -> list[Commit]:
    """The commits of a push, in the usual format."""
    return [
        Commit(one.line("id"), one.text("message", ""), one.url("url"), one.line("author.name", ""))
        for one in payload.parts("commits")
    ]


def branch_of(ref: str) -> str:
    """The branch or tag of a full reference."""
    return ref.removeprefix("refs/heads/").removeprefix("refs/tags/")


def pushed(
    who: str, branch: str, url: str, commits: Sequence[Commit], *, total: int = 0, forced: bool
) -> str:
    """A push to a branch. `total` is the number of commits if not all are listed."""
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
    return f"{who} created {kind} {link(code(name), url) if url else code(name)}."


def branch_deleted(who: str, kind: str, name: str) -> str:
    return f"{who} deleted {kind} {code(name)}."


def branch_topic(repository: str, branch: str) -> str:
    """The topic of a branch; of the repository without one."""
    return f"{repository} / {branch}" if branch else repository


def on_branch(branch: str, word: str = "on") -> str:
    """` on BRANCH`; empty without a branch."""
    return f" {word} {code(branch)}" if branch else ""


def dispatched(
    headers: Sequence[str],
    writers: Mapping[str, Writer],
    *,
    quiet: Collection[str] = (),
    named: Callable[[str, Part], str] = lambda event, _: event,
) -> Callable[[WebhookRequest], Translated]:
    """Translate by the event in the first of these headers. Events in `quiet` have no message;
    `named` can replace an event's name."""

    def translate(request: WebhookRequest) -> Translated:
        event = named(next(filter(None, map(request.header, headers)), ""), request.payload)
        if event in quiet:
            return None
        if event not in writers:
            raise Unsupported(event)
        return writers[event](request.payload)

    return translate


def topic_of(repository: str, kind: str = "", number: str = "", title: str = "") -> str:
    """The topic of an item: `repository / PR #3 Title`."""
    if not kind:
        return repository
    return f"{repository} / {kind} {number} {title}".strip()


def said(who: str, what: str, body: str = "", ending: str = ".") -> str:
    """A sentence, followed by a quote."""
    quoted = quote(body)
    return f"{who} {what}{':' if quoted else ending}" + (f"\n\n{quoted}" if quoted else "")


def commented(payload: Part, who: str, topic: str, on: str, event: str) -> Post | None:
    """A comment event of GitHub and similar services."""
    comment = payload.part("comment")
    url = comment.url("html_url")
    match payload.word("action", "created"):
        case "created":
            what = f"{link('commented', url)} on {on}"
        case "edited":
            what = f"edited a {link('comment', url)} on {on}"
        case "deleted":
            return Post(topic, f"{who} deleted a comment on {on}.", event)
        case _:
            return None
    return Post(topic, said(who, what, comment.text("body", "")), event)
