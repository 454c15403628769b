"""Bitbucket Cloud (`bitbucket2`) and Bitbucket Server (`bitbucket3`)."""

from collections.abc import Mapping
from typing import Final

from tertulia.integrations.forge import (
    CodeHost,
    Commit,
    Item,
    Writer,
    branch_deleted,
    branch_made,
    branch_of,
    branch_topic,
    dispatched,
    pushed,
)
from tertulia.integrations.incoming import Integration, Post
from tertulia.integrations.payloads import Part, code, link, paragraphs, title_case
from tertulia.integrations.signatures import hmac_hex


def _pushes(repository: str, lines: list[str], branches: list[str]) -> Post | None:
    """Return the message about the changes of one push, and its branches."""
    if not lines:
        return None
    branch = branches[0] if len(lines) == len(branches) == 1 else ""
    return Post(branch_topic(repository, branch), "\n\n".join(lines), "push", branch)


# Bitbucket Cloud

_CLOUD: Final = CodeHost(
    "{actor.display_name|actor.nickname|Someone}",
    "{repository.name}",
    "id",
    ("links.html.href",),
)


def _push(payload: Part) -> Post | None:
    who, name = payload.fill(_CLOUD.who), payload.fill(_CLOUD.repository)
    lines: list[str] = []
    branches: list[str] = []
    for change in payload.parts("push.changes")[:10]:
        ref = change.find("new") or change.part("old")
        branch, kind = ref.line("name"), ref.line("type", "branch")
        if kind == "branch":
            branches.append(branch)
        if change.find("new") is None:
            lines.append(branch_deleted(who, kind, branch))
            continue
        if kind == "tag":
            lines.append(f"{who} pushed tag {link(code(branch), ref.url('links.html.href'))}.")
            continue
        commits = [
            Commit(
                part.line("hash"),
                part.text("message", ""),
                part.url("links.html.href"),
                part.line("author.user.display_name", ""),
            )
            for part in change.parts("commits")
        ]
        url = change.url("links.html.href")
        lines.append(pushed(who, branch, url, commits, forced=change.flag("forced")))
    return _pushes(name, lines, branches)


def _pull_request(verb: str, branches: str = "", body: str = "") -> Writer:
    sentence = f"{{who}} {verb} {{item}}{branches}"
    return _CLOUD.writer("pull_request", sentence, item=Item("pullrequest", "PR"), body=body)


def _comment(verb: str, item: Item, body: str = "comment.content.raw") -> Writer:
    sentence = f"{{who}} [{verb}]({{comment.links.html.href}}) on {{item}}"
    return _CLOUD.writer("comment", sentence, item=item, body=body)


def _issue(verb: str, body: str = "") -> Writer:
    sentence = f"{{who}} {verb} {{item}}<< (now {{changes.status.new|}})>>"
    return _CLOUD.writer("issue", sentence, item=Item("issue", "issue"), body=body)


def _status(payload: Part) -> Post | None:
    states = {"SUCCESSFUL": "succeeded", "FAILED": "failed", "STOPPED": "was stopped"}
    status = payload.part("commit_status")
    state = states.get(status.word("state"))
    if state is None:
        return None
    text = status.fill("[{name|key|Build}]({url}) {state}", {"state": state})
    description = status.line("description", "")
    topic = branch_topic(payload.fill(_CLOUD.repository), status.line("refname", ""))
    return Post(topic, f"{text}: {description}" if description else f"{text}.", "status")


def _updated(payload: Part) -> Post | None:
    lines = []
    for name, change in payload.fields("changes").items():
        new = change.line("new", "")
        if new and name in {"name", "full_name", "website", "description", "language"}:
            lines.append(f"* {title_case(name)}: {new}")
    if not lines:
        return None
    text = paragraphs(f"{payload.fill(_CLOUD.who)} updated the repository:\n", *lines)
    return Post(payload.fill(_CLOUD.repository), text, "repository")


_CLOUD_PR: Final = Item("pullrequest", "PR")
CLOUD: Final[Mapping[str, tuple[str, Writer]]] = {
    "repo:push": ("push", _push),
    "repo:fork": (
        "fork",
        _CLOUD.writer(
            "fork",
            "{who} forked the repository to [{fork.full_name}]({fork.links.html.href})",
        ),
    ),
    "repo:updated": ("repository", _updated),
    "repo:commit_comment_created": (
        "comment",
        _CLOUD.writer(
            "comment",
            "{who} [commented]({comment.links.html.href})"
            " on commit [{commit.hash|:11}]({commit.links.html.href})",
            body="comment.content.raw",
        ),
    ),
    "repo:commit_status_created": ("status", _status),
    "repo:commit_status_updated": ("status", _status),
    "issue:created": ("issue", _issue("created", "thing.content.raw")),
    "issue:updated": ("issue", _issue("updated")),
    "issue:comment_created": ("comment", _comment("commented", Item("issue", "issue"))),
    "pullrequest:created": (
        "pull_request",
        _pull_request(
            "created",
            " from `{thing.source.branch.name|}` to `{thing.destination.branch.name|}`",
            "thing.description",
        ),
    ),
    "pullrequest:updated": ("pull_request", _pull_request("updated")),
    "pullrequest:approved": ("pull_request", _pull_request("approved")),
    "pullrequest:unapproved": ("pull_request", _pull_request("withdrew approval from")),
    "pullrequest:changes_request_created": (
        "pull_request",
        _pull_request("requested changes to"),
    ),
    "pullrequest:fulfilled": (
        "pull_request",
        _pull_request("merged", " into `{thing.destination.branch.name|}`"),
    ),
    "pullrequest:rejected": ("pull_request", _pull_request("declined")),
    "pullrequest:comment_created": ("comment", _comment("commented", _CLOUD_PR)),
    "pullrequest:comment_updated": ("comment", _comment("edited a comment", _CLOUD_PR)),
    "pullrequest:comment_deleted": ("comment", _comment("deleted a comment", _CLOUD_PR, "")),
}

# Bitbucket Server

_SERVER: Final = CodeHost(
    "{actor.displayName|actor.name|Someone}", "{repository.name}", "id", ("links.self.0.href",)
)


def _server_push(payload: Part) -> Post | None:
    who = payload.fill(_SERVER.who)
    lines, branches = [], []
    commits = [
        Commit(part.line("id"), part.text("message", ""), "", part.line("author.name", ""))
        for part in payload.parts("commits")
    ]
    for change in payload.parts("changes")[:10]:
        ref, kind = branch_of(change.line("ref.id")), change.line("ref.type", "BRANCH").lower()
        if kind == "branch":
            branches.append(ref)
        match change.word("type"):
            case "ADD":
                lines.append(branch_made(who, kind, ref, ""))
            case "DELETE":
                lines.append(branch_deleted(who, kind, ref))
            case _ if kind == "tag":
                lines.append(f"{who} moved tag {code(ref)}.")
            case _:
                lines.append(pushed(who, ref, "", commits, forced=False))
    return _pushes(payload.fill(_SERVER.repository), lines, branches)


def _reviewers(payload: Part) -> dict[str, str]:
    reviewers = payload.parts("pullRequest.reviewers")[:10]
    return {"reviewers": ", ".join(reviewer.line("user.displayName", "") for reviewer in reviewers)}


def _server_request(what: str, body: str = "") -> tuple[str, Writer]:
    writer = _SERVER.writer(
        "pull_request",
        f"{{who}} {what}",
        item=Item("pullRequest", "PR"),
        values=_reviewers,
        body=body,
        topic="{thing.toRef.repository.name|Bitbucket} / PR {title}",
    )
    return "pull_request", writer


def _server_comment(verb: str, body: str = "comment.text") -> tuple[str, Writer]:
    sentence = f"{{who}} {verb} on commit `{{commit|:11}}`"
    return "comment", _SERVER.writer("comment", sentence, body=body)


def _server_repository(payload: Part) -> Post | None:
    old, new = payload.line("old.name", ""), payload.line("new.name", "")
    what = (
        f"renamed the repository {old} to {new}"
        if new and new != old
        else f"updated the repository {old}"
    )
    return Post(new or old, f"{payload.fill(_SERVER.who)} {what}.", "repository")


def _server_fork(payload: Part) -> Post | None:
    origin = payload.fill("{repository.origin.name|repository.name|}")
    path = payload.fill("{repository.project.name|}/{repository.name}").strip("/")
    return Post(origin, f"{payload.fill(_SERVER.who)} forked {origin} to {path}.", "fork")


SERVER: Final[Mapping[str, tuple[str, Writer]]] = {
    "repo:refs_changed": ("push", _server_push),
    "repo:forked": ("fork", _server_fork),
    "repo:modified": ("repository", _server_repository),
    "repo:comment:added": _server_comment("commented"),
    "repo:comment:edited": _server_comment("edited a comment"),
    "repo:comment:deleted": _server_comment("deleted a comment", ""),
    "pr:opened": _server_request(
        "opened {item} from `{thing.fromRef.displayId|}` to `{thing.toRef.displayId|}`"
        "<< (reviewers: {reviewers})>>",
        "thing.description",
    ),
    "pr:modified": _server_request("updated {item}"),
    "pr:merged": _server_request("merged {item} into `{thing.toRef.displayId|}`"),
    "pr:declined": _server_request("declined {item}"),
    "pr:deleted": _server_request("deleted {item}"),
    "pr:reviewer:approved": _server_request("approved {item}"),
    "pr:reviewer:unapproved": _server_request("withdrew approval from {item}"),
    "pr:reviewer:needs_work": _server_request("requested changes to {item}"),
    "pr:reviewer:updated": _server_request("changed the reviewers of {item}"),
    "pr:comment:added": _server_request("commented on {item}", "comment.text"),
    "pr:comment:edited": _server_request("edited a comment on {item}", "comment.text"),
    "pr:comment:deleted": _server_request("deleted a comment on {item}"),
}


def _integration(name: str, title: str, writers: Mapping[str, tuple[str, Writer]]) -> Integration:
    by_event = {event: writer for event, (_, writer) in writers.items()}
    translate = dispatched(("x-event-key",), by_event, quiet=("diagnostics:ping",))
    events = tuple(dict.fromkeys(event for event, _ in writers.values()))
    signature = hmac_hex("x-hub-signature", "sha256=")
    return Integration(name, title, translate, events, signature, has_branches=True)


BITBUCKET: Final = _integration("bitbucket2", "Bitbucket Cloud", CLOUD)
BITBUCKET_SERVER: Final = _integration("bitbucket3", "Bitbucket Server", SERVER)
