"""Shared code for services that host code: pushes, pull requests, and issues."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tertulia.integrations.incoming import Post, Translated, Unsupported, WebhookRequest
from tertulia.integrations.payloads import (
    Part,
    code,
    harmless,
    link,
    listed,
    paragraphs,
    short,
    title_case,
    with_quote,
)
from tertulia.model.numbers import counted

Writer = Callable[[Part], Post | None]
"""Writes the message for one kind of event, or returns None for events without a message. Raises
Malformed."""
Sentences = Mapping[str, str]
"""Templates (`Part.fill`) by action. `*` is for all other actions. An empty template makes no
message."""

MAX_COMMITS: Final = 10
"""The most commits of a push that are listed."""
NOTHING: Final = "0" * 40
"""The null commit, before a new branch and after a deleted one."""
NO_VERBS: Final[Mapping[str, str]] = {}
_ABOUT_ITEM: Final = " / {noun} {title}"

# GitHub's format, which others adopted

COMMENTED: Final[Sentences] = {
    "created": "{who} [commented]({comment.html_url}) on {item}",
    "edited": "{who} edited a [comment]({comment.html_url}) on {item}",
    "deleted": "{who} deleted a comment on {item}",
}
COMMENT: Final = {"created": "comment.body", "edited": "comment.body"}
BODY: Final = {"opened": "thing.body", "edited": "thing.body"}
_REVIEWER: Final = "{requested_reviewer.login|requested_team.name|someone}"
_BASE: Final = "`{thing.base.ref|thing.base_branch|}`"
REQUESTED: Final[Sentences] = {
    "opened": f"{{who}} opened {{item}} from `{{thing.head.ref|thing.head_branch|}}` to {_BASE}",
    "merged": f"{{who}} merged {{item}} into {_BASE}",
    "closed": "{who} closed {item} without merging",
    "review_requested": f"{{who}} requested a review from {_REVIEWER} on {{item}}",
    "review_request_removed": f"{{who}} removed the review request for {_REVIEWER} on {{item}}",
}
"""Templates for changes of pull requests."""


def request_action(payload: Part) -> str:
    """Return the action of a pull request. `merged` is an additional one."""
    action = payload.word("action")
    return "merged" if action == "closed" and payload.flag("pull_request.merged") else action


@dataclass(frozen=True)
class Commit:
    """A commit of a push."""

    id: str
    message: str
    url: str
    author: str = ""

    @property
    def line(self) -> str:
        """Return a list item with the first line of the commit message."""
        subject = short(self.message.strip().partition("\n")[0], 100) or "(without a message)"
        return f"* {subject} ({link(self.id[:11], self.url)})"


@dataclass(frozen=True)
class Item:
    """An issue, a pull request, or similar: its path in the payload, and its noun."""

    path: str
    noun: str
    mark: str = "#"
    """The character before its number."""
    number: str = ""
    """The path of its number, if it differs from the host's usual one."""


def action_or(default: str) -> Callable[[Part], str]:
    return lambda payload: payload.word("action", default)


@dataclass(frozen=True)
class CodeHost:
    """The paths of common values in the payloads of a service."""

    who: str
    """A template."""
    repository: str
    """A template."""
    number: str
    """The path of an item's number. The next ones are also paths."""
    urls: Sequence[str]

    def writer(
        self,
        event: str,
        sentences: str | Sentences,
        *,
        action: Callable[[Part], str] = lambda payload: payload.word("action"),
        verbs: Mapping[str, str] = NO_VERBS,
        item: Item | Callable[[Part], Item | None] | None = None,
        values: Callable[[Part], Mapping[str, str | Part]] = lambda _: {},
        body: str | Mapping[str, str] = "",
        topic: str = "",
    ) -> Writer:
        """Return a writer of the sentence for an action, followed by the text at the path in
        `body`.

        Templates can also use `who`, `repository`, `action` (as in `verbs`), and for an item
        `thing` (its part of the payload), `noun`, `title` (its number and title), and `item` (its
        noun, and its title as a link). By default, the topic is the repository or the item.
        """
        if isinstance(sentences, str):
            sentences, action = {"*": sentences}, lambda payload: payload.line("action", "changed")
        sentences = {name: self._named(sentence) for name, sentence in sentences.items()}
        topics = [self._named(topic or f"{{repository}}{about}") for about in ("", _ABOUT_ITEM)]

        def write(payload: Part) -> Post | None:
            name = action(payload)
            sentence = sentences.get(name, sentences.get("*", ""))
            if not sentence:
                return None
            verb = verbs.get(name) or title_case(harmless(name)).lower()
            shown = item(payload) if callable(item) else item
            known = {"action": verb, **values(payload), **self._of(shown, payload)}
            path = body if isinstance(body, str) else body.get(name, "")
            part, path = payload.source(path, known)
            text = part.text(path, "") if path else ""
            content = with_quote(payload.fill(sentence, known), text)
            return Post(payload.fill(topics[shown is not None], known).strip(), content, event)

        return write

    def _named(self, template: str) -> str:
        return template.replace("{who}", self.who).replace("{repository}", self.repository)

    def _of(self, item: Item | None, payload: Part) -> dict[str, str | Part]:
        if item is None:
            return {}
        thing = payload.part(item.path)
        title = f"{item.mark}{thing.line(item.number or self.number)} {thing.line('title')}"
        url = next(filter(None, map(thing.url, self.urls)), "")
        named = f"{item.noun} {link(title, url)}"
        return {"thing": thing, "noun": item.noun, "title": title, "item": named}


def commits_in(payload: Part) -> list[Commit]:
    """Return the commits of a push, in the usual format."""
    return [
        Commit(
            part.line("id"), part.text("message", ""), part.url("url"), part.line("author.name", "")
        )
        for part in payload.parts("commits")
    ]


def branch_of(ref: str) -> str:
    """Return the branch or tag in a full reference."""
    return ref.removeprefix("refs/heads/").removeprefix("refs/tags/")


def pushed(
    who: str, branch: str, url: str, commits: Sequence[Commit], *, total: int = 0, forced: bool
) -> str:
    """Return the text about a push to a branch. `total` is the number of commits, if not all are
    listed."""
    number = max(total, len(commits))
    where = f"to branch {code(branch)}"
    verb = link("force-pushed" if forced else "pushed", url)
    if not number:
        return f"{who} {verb} {where}."
    authors = list(dict.fromkeys(commit.author for commit in commits if commit.author))
    by = ""
    if len(authors) > 1 or (authors and authors[0] != who):
        named = authors[:3] + (["others"] if len(authors) > 3 else [])
        by = f" Commits by {listed(named)}."
    lines = [commit.line for commit in commits[:MAX_COMMITS]]
    left = number - len(lines)
    return paragraphs(
        f"{who} {verb} {counted(number, 'commit')} {where}.{by}",
        "",
        *lines,
        f"* … and {counted(left, 'more commit', 'more commits')}" if left > 0 else "",
    ).replace("\n* ", "\n\n* ", 1)


def branch_made(who: str, kind: str, name: str, url: str) -> str:
    return f"{who} created {kind} {link(code(name), url)}."


def branch_deleted(who: str, kind: str, name: str) -> str:
    return f"{who} deleted {kind} {code(name)}."


def branch_event(host: CodeHost, event: str, tree: str = "") -> Writer:
    """Return a writer for a created or, without `tree`, deleted branch or tag. `tree` is the path
    of its files below the repository's URL, a template that can use `kind` and `name`."""
    return host.writer(
        event,
        f"{{who}} created {{kind}} [`{{name}}`]({{repository.html_url|}}/{tree})"
        if tree
        else "{who} deleted {kind} `{name}`",
        values=lambda payload: {
            "kind": (kind := payload.line("ref_type")),
            "name": (name := branch_of(payload.line("ref"))),
            "branch": name if kind == "branch" else "",
        },
        topic="{repository}<< / {branch}>>",
    )


def branch_topic(repository: str, branch: str) -> str:
    """Return the topic for a branch, or for the repository if there's no branch."""
    return f"{repository} / {branch}" if branch else repository


def on_branch(branch: str, word: str = "on") -> str:
    """Return ` on BRANCH`, or an empty text if there's no branch."""
    return f" {word} {code(branch)}" if branch else ""


def dispatched(
    headers: Sequence[str],
    writers: Mapping[str, Writer],
    *,
    quiet: Collection[str] = (),
    named: Callable[[str, Part], str] = lambda event, _: event,
) -> Callable[[WebhookRequest], Translated]:
    """Return a function that translates by the event in the first of these headers. Events in
    `quiet` make no message. `named` can replace an event's name."""

    def translate(request: WebhookRequest) -> Translated:
        event = named(next(filter(None, map(request.header, headers)), ""), request.payload)
        if event in quiet:
            return None
        if event not in writers:
            raise Unsupported(event)
        return writers[event](request.payload)

    return translate
