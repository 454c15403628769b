"""Bitbucket Cloud (`bitbucket2`) and Bitbucket Server (`bitbucket3`)."""

from collections.abc import Callable, Mapping
from typing import Final

from tertulia.integrations.forge import (
    Commit,
    Writer,
    branch_deleted,
    branch_made,
    branch_of,
    branch_topic,
    dispatched,
    pushed,
    said,
    topic_of,
)
from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    WebhookRequest,
)
from tertulia.integrations.payloads import Part, code, link, paragraphs, title_case
from tertulia.integrations.signatures import hmac_hex

_SIGNED: Final = hmac_hex("x-hub-signature", "sha256=")


def _pushes(repository: str, lines: list[str], branches: list[str]) -> Post | None:
    """The message about the changes of one push, and its branches."""
    if not lines:
        return None
    branch = branches[0] if len(lines) == len(branches) == 1 else ""
    topic = branch_topic(repository, branch)
    return Post(topic, "\n\n".join(lines), "push", branch)


# In the cloud


def _who(payload: Part) -> str:
    return payload.line("actor.display_name", payload.line("actor.nickname", "Someone"))


def _repository(payload: Part) -> str:
    return payload.line("repository.name")


def _push(payload: Part) -> Post | None:
    who, name = _who(payload), _repository(payload)
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
                one.line("hash"),
                one.text("message", ""),
                one.url("links.html.href"),
                one.line("author.user.display_name", ""),
            )
            for one in change.parts("commits")
        ]
        url = change.url("links.html.href")
        lines.append(pushed(who, branch, url, commits, forced=change.flag("forced")))
    return _pushes(name, lines, branches)


def _pull_request(verb: str) -> Writer:
    def write(payload: Part) -> Post | None:
        request = payload.part("pullrequest")
        number, title = f"#{request.line('id')}", request.line("title")
        topic = topic_of(_repository(payload), "PR", number, title)
        titled = f"PR {link(f'{number} {title}', request.url('links.html.href'))}"
        source = request.line("source.branch.name", "")
        target = request.line("destination.branch.name", "")
        what, body = f"{verb} {titled}", ""
        if verb == "created":
            what += f" from {code(source)} to {code(target)}"
            body = request.text("description", "")
        elif verb == "merged":
            what += f" into {code(target)}"
        return Post(topic, said(_who(payload), what, body), "pull_request")

    return write


def _comment(verb: str, kind: str) -> Writer:
    def write(payload: Part) -> Post | None:
        thing = payload.part("issue" if kind == "issue" else "pullrequest")
        comment = payload.part("comment")
        number, title = f"#{thing.line('id')}", thing.line("title")
        topic = topic_of(_repository(payload), kind, number, title)
        on = f"{kind} {link(f'{number} {title}', thing.url('links.html.href'))}"
        what = f"{link(verb, comment.url('links.html.href'))} on {on}"
        body = "" if verb.startswith("deleted") else comment.text("content.raw", "")
        return Post(topic, said(_who(payload), what, body), "comment")

    return write


def _commit_comment(payload: Part) -> Post | None:
    comment = payload.part("comment")
    commit = payload.line("commit.hash", "")[:11]
    on = link(commit, payload.url("commit.links.html.href"))
    what = f"{link('commented', comment.url('links.html.href'))} on commit {on}"
    text = said(_who(payload), what, comment.text("content.raw", ""))
    return Post(_repository(payload), text, "comment")


def _status(payload: Part) -> Post | None:
    status = payload.part("commit_status")
    states = {"SUCCESSFUL": "succeeded", "FAILED": "failed", "STOPPED": "was stopped"}
    state = states.get(status.word("state"))
    if state is None:
        return None
    name = link(status.line("name", status.line("key", "Build")), status.url("url"))
    text = f"{name} {state}"
    description = status.line("description", "")
    branch = status.line("refname", "")
    topic = branch_topic(_repository(payload), branch)
    return Post(topic, f"{text}: {description}" if description else f"{text}.", "status")


def _issue(verb: str) -> Writer:
    def write(payload: Part) -> Post | None:
        issue = payload.part("issue")
        number, title = f"#{issue.line('id')}", issue.line("title")
        topic = topic_of(_repository(payload), "issue", number, title)
        what = f"{verb} issue {link(f'{number} {title}', issue.url('links.html.href'))}"
        body = issue.text("content.raw", "") if verb == "created" else ""
        state = payload.line("changes.status.new", "")
        if state:
            what += f" (now {state})"
        return Post(topic, said(_who(payload), what, body), "issue")

    return write


def _fork(payload: Part) -> Post | None:
    fork = link(payload.line("fork.full_name"), payload.url("fork.links.html.href"))
    return Post(_repository(payload), f"{_who(payload)} forked the repository to {fork}.", "fork")


def _updated(payload: Part) -> Post | None:
    changes = payload.find("changes")
    lines = []
    for name, change in changes.items() if changes else ():
        new = change.line("new", "")
        if new and name in {"name", "full_name", "website", "description", "language"}:
            lines.append(f"* {title_case(name)}: {new}")
    if not lines:
        return None
    text = paragraphs(f"{_who(payload)} updated the repository:\n", *lines)
    return Post(_repository(payload), text, "repository")


CLOUD: Final[Mapping[str, tuple[str, Writer]]] = {
    "repo:push": ("push", _push),
    "repo:fork": ("fork", _fork),
    "repo:updated": ("repository", _updated),
    "repo:commit_comment_created": ("comment", _commit_comment),
    "repo:commit_status_created": ("status", _status),
    "repo:commit_status_updated": ("status", _status),
    "issue:created": ("issue", _issue("created")),
    "issue:updated": ("issue", _issue("updated")),
    "issue:comment_created": ("comment", _comment("commented", "issue")),
    "pullrequest:created": ("pull_request", _pull_request("created")),
    "pullrequest:updated": ("pull_request", _pull_request("updated")),
    "pullrequest:approved": ("pull_request", _pull_request("approved")),
    "pullrequest:unapproved": ("pull_request", _pull_request("withdrew approval from")),
    "pullrequest:changes_request_created": (
        "pull_request",
        _pull_request("requested changes to"),
    ),
    "pullrequest:fulfilled": ("pull_request", _pull_request("merged")),
    "pullrequest:rejected": ("pull_request", _pull_request("declined")),
    "pullrequest:comment_created": ("comment", _comment("commented", "PR")),
    "pullrequest:comment_updated": ("comment", _comment("edited a comment", "PR")),
    "pullrequest:comment_deleted": ("comment", _comment("deleted a comment", "PR")),
}

# Bitbucket Server


def _server_who(payload: Part) -> str:
    return payload.line("actor.displayName", payload.line("actor.name", "Someone"))


def _server_push(payload: Part) -> Post | None:
    who, name = _server_who(payload), _repository(payload)
    lines, branches = [], []
    commits = [
        Commit(one.line("id"), one.text("message", ""), "", one.line("author.name", ""))
        for one in payload.parts("commits")
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
    return _pushes(name, lines, branches)


def _server_request(verb: str) -> Writer:
    def write(payload: Part) -> Post | None:
        request = payload.part("pullRequest")
        number, title = f"#{request.line('id')}", request.line("title")
        name = request.line("toRef.repository.name", "Bitbucket")
        links = request.parts("links.self")
        titled = f"PR {link(f'{number} {title}', links[0].url('href') if links else '')}"
        source = request.line("fromRef.displayId", "")
        target = request.line("toRef.displayId", "")
        what, body = f"{verb} {titled}", ""
        if verb == "opened":
            what += f" from {code(source)} to {code(target)}"
            body = request.text("description", "")
            reviewers = [one.line("user.displayName", "") for one in request.parts("reviewers")]
            if reviewers:
                what += f" (reviewers: {', '.join(reviewers[:10])})"
        elif verb == "merged":
            what += f" into {code(target)}"
        elif "comment" in verb:
            what = f"{verb} on {titled}"
            body = "" if verb.startswith("deleted") else payload.text("comment.text", "")
        topic = topic_of(name, "PR", number, title)
        return Post(topic, said(_server_who(payload), what, body), "pull_request")

    return write


def _server_comment(verb: str) -> Writer:
    def write(payload: Part) -> Post | None:
        commit = code(payload.line("commit", "")[:11])
        body = "" if verb.startswith("deleted") else payload.text("comment.text", "")
        text = said(_server_who(payload), f"{verb} on commit {commit}", body)
        return Post(_repository(payload), text, "comment")

    return write


def _server_repository(payload: Part) -> Post | None:
    old, new = payload.line("old.name", ""), payload.line("new.name", "")
    what = (
        f"renamed the repository {old} to {new}"
        if new and new != old
        else f"updated the repository {old}"
    )
    text = f"{_server_who(payload)} {what}."
    return Post(new or old, text, "repository")


def _server_fork(payload: Part) -> Post | None:
    origin = payload.line("repository.origin.name", _repository(payload))
    where = f"{payload.line('repository.project.name', '')}/{_repository(payload)}".strip("/")
    return Post(origin, f"{_server_who(payload)} forked {origin} to {where}.", "fork")


SERVER: Final[Mapping[str, tuple[str, Writer]]] = {
    "repo:refs_changed": ("push", _server_push),
    "repo:forked": ("fork", _server_fork),
    "repo:modified": ("repository", _server_repository),
    "repo:comment:added": ("comment", _server_comment("commented")),
    "repo:comment:edited": ("comment", _server_comment("edited a comment")),
    "repo:comment:deleted": ("comment", _server_comment("deleted a comment")),
    "pr:opened": ("pull_request", _server_request("opened")),
    "pr:modified": ("pull_request", _server_request("updated")),
    "pr:merged": ("pull_request", _server_request("merged")),
    "pr:declined": ("pull_request", _server_request("declined")),
    "pr:deleted": ("pull_request", _server_request("deleted")),
    "pr:reviewer:approved": ("pull_request", _server_request("approved")),
    "pr:reviewer:unapproved": ("pull_request", _server_request("withdrew approval from")),
    "pr:reviewer:needs_work": ("pull_request", _server_request("requested changes to")),
    "pr:reviewer:updated": ("pull_request", _server_request("changed the reviewers of")),
    "pr:comment:added": ("pull_request", _server_request("commented")),
    "pr:comment:edited": ("pull_request", _server_request("edited a comment")),
    "pr:comment:deleted": ("pull_request", _server_request("deleted a comment")),
}


def _translated(
    writers: Mapping[str, tuple[str, Writer]],
) -> Callable[[WebhookRequest], Translated]:
    by_event = {event: writer for event, (_, writer) in writers.items()}
    return dispatched(("x-event-key",), by_event, quiet=("diagnostics:ping",))


def _events(writers: Mapping[str, tuple[str, Writer]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name, _ in writers.values()))


BITBUCKET: Final = Integration(
    "bitbucket2", "Bitbucket Cloud", _translated(CLOUD), _events(CLOUD), _SIGNED, True
)
BITBUCKET_SERVER: Final = Integration(
    "bitbucket3", "Bitbucket Server", _translated(SERVER), _events(SERVER), _SIGNED, True
)
