"""GitLab."""

from collections.abc import Mapping
from typing import Final

from tertulia.integrations.forge import (
    NOTHING,
    Writer,
    branch_deleted,
    branch_made,
    branch_of,
    commits_in,
    dispatched,
    pushed,
    said,
    topic_of,
)
from tertulia.integrations.incoming import (
    Integration,
    Post,
    Unsupported,
)
from tertulia.integrations.payloads import Part, code, link, title_case
from tertulia.integrations.signatures import token


def _project(payload: Part) -> str:
    found = payload.line("project.name", "")
    return found or payload.line("repository.name", payload.line("project_name", "GitLab"))


def _who(payload: Part) -> str:
    return payload.line("user.name", payload.line("user_name", "Someone"))


def _push(payload: Part) -> Post | None:
    branch, name, who = branch_of(payload.word("ref")), _project(payload), _who(payload)
    url = payload.url("project.web_url")
    topic = f"{name} / {branch}"
    before, after = payload.word("before", ""), payload.word("after", "")
    if after == NOTHING:
        return Post(topic, branch_deleted(who, "branch", branch), "push", branch)
    commits = commits_in(payload)
    total = int(payload.number("total_commits_count", 0))
    if before == NOTHING and not commits:
        tree = f"{url}/-/tree/{branch}" if url else ""
        return Post(topic, branch_made(who, "branch", branch, tree), "push", branch)
    compare = f"{url}/-/compare/{before}...{after}" if url and before != NOTHING else ""
    text = pushed(who, branch, compare, commits, total=total, forced=False)
    return Post(topic, text, "push", branch)


def _tag(payload: Part) -> Post | None:
    tag, who = branch_of(payload.word("ref")), _who(payload)
    if payload.word("after", "") == NOTHING:
        return Post(_project(payload), f"{who} removed tag {code(tag)}.", "tag_push")
    url = payload.url("project.web_url")
    name = link(code(tag), f"{url}/-/tags/{tag}" if url else "")
    text = said(who, f"pushed tag {name}", payload.text("message", ""))
    return Post(_project(payload), text, "tag_push")


_VERBS: Final = {
    "open": "opened",
    "close": "closed",
    "reopen": "reopened",
    "update": "updated",
    "merge": "merged",
    "approved": "approved",
    "unapproved": "withdrew approval from",
    "approval": "approved",
    "unapproval": "withdrew an approval from",
}


def _titled(thing: Part, mark: str) -> str:
    return link(f"{mark}{thing.line('iid')} {thing.line('title')}", thing.url("url"))


def _issue(payload: Part) -> Post | None:
    issue = payload.part("object_attributes")
    action = issue.word("action", "update")
    kind = issue.line("type", "Issue").lower()
    if action == "update" and not _matters(payload):
        return None
    topic = topic_of(_project(payload), "issue", f"#{issue.line('iid')}", issue.line("title"))
    body = issue.text("description", "") if action == "open" else ""
    what = f"{_VERBS.get(action, action)} {kind} {_titled(issue, '#')}"
    people = [one.line("name") for one in payload.parts("assignees")]
    if people and (action == "open" or "assignees" in _changes(payload)):
        what += f" (assigned to {', '.join(people[:10])})"
    return Post(topic, said(_who(payload), what, body), "issue")


def _changes(payload: Part) -> set[str]:
    changes = payload.find("changes")
    return set() if changes is None else {name for name, _ in changes.items()}


def _matters(payload: Part) -> bool:
    """Whether an update changes more than labels and times."""
    told = {"title", "description", "assignees", "milestone_id", "due_date", "state_id", "draft"}
    return bool(_changes(payload) & told)


def _merge_request(payload: Part) -> Post | None:
    request = payload.part("object_attributes")
    action = request.word("action", "update")
    source, target = request.line("source_branch", ""), request.line("target_branch", "")
    if action == "update" and not _matters(payload):
        return None  # New commits: the push has a message.
    number, title = f"!{request.line('iid')}", request.line("title")
    topic = topic_of(_project(payload), "MR", number, title)
    what = f"{_VERBS.get(action, action)} MR {_titled(request, '!')}"
    if action == "open":
        what += f" from {code(source)} to {code(target)}"
    elif action == "merge":
        what += f" into {code(target)}"
    body = request.text("description", "") if action == "open" else ""
    return Post(topic, said(_who(payload), what, body), "merge_request")


def _note(payload: Part) -> Post | None:
    note, name = payload.part("object_attributes"), _project(payload)
    commented = link("commented", note.url("url"))
    match note.word("noteable_type"):
        case "MergeRequest":
            thing = payload.part("merge_request")
            number, title = f"!{thing.line('iid')}", thing.line("title")
            on, topic = f"MR {number} {title}", topic_of(name, "MR", number, title)
        case "Issue" | "WorkItem":
            thing = payload.part("issue")
            number, title = f"#{thing.line('iid')}", thing.line("title")
            on, topic = f"issue {number} {title}", topic_of(name, "issue", number, title)
        case "Commit":
            commit = payload.part("commit")
            on, topic = f"commit {link(commit.line('id')[:11], commit.url('url'))}", name
        case "Snippet":
            thing = payload.part("snippet")
            on = f"snippet {thing.line('title')}"
            topic = topic_of(name, "snippet", f"#{thing.line('id')}", thing.line("title"))
        case other:
            raise Unsupported(f"note:{other}")
    return Post(topic, said(_who(payload), f"{commented} on {on}", note.text("note", "")), "note")


_ENDED: Final = {"success": "succeeded", "failed": "failed", "canceled": "was canceled"}


def _pipeline(payload: Part) -> Post | None:
    pipeline = payload.part("object_attributes")
    ended = _ENDED.get(pipeline.word("status"))
    if ended is None:
        return None
    ref, url = pipeline.line("ref"), payload.url("project.web_url")
    number = pipeline.line("id")
    place = pipeline.url("url") or (f"{url}/-/pipelines/{number}" if url else "")
    text = f"{link(f'Pipeline #{number}', place)} {ended} on {code(ref)}"
    failed = [
        link(one.line("name"), f"{url}/-/jobs/{one.line('id')}" if url else "")
        for one in payload.parts("builds")
        if one.word("status", "") == "failed"
    ]
    ending = f": {', '.join(failed[:10])} failed." if failed else "."
    return Post(f"{_project(payload)} / {ref}", text + ending, "pipeline")


def _job(payload: Part) -> Post | None:
    ended = _ENDED.get(payload.word("build_status"))
    if ended is None:
        return None
    ref, url = payload.line("ref"), payload.url("repository.homepage")
    place = f"{url}/-/jobs/{payload.line('build_id')}" if url else ""
    name = link(payload.line("build_name"), place)
    stage = payload.line("build_stage", "")
    about = f" (stage {stage})" if stage else ""
    project = payload.line("repository.name", _project(payload))
    return Post(f"{project} / {ref}", f"Job {name}{about} {ended} on {code(ref)}.", "job")


def _wiki(payload: Part) -> Post | None:
    page = payload.part("object_attributes")
    verbs = {"create": "created", "update": "updated", "delete": "deleted"}
    verb = verbs.get(page.word("action", "update"), "changed")
    name = link(page.line("title"), page.url("url"))
    text = said(_who(payload), f"{verb} wiki page {name}", page.text("message", ""))
    return Post(f"{_project(payload)} / wiki", text, "wiki_page")


def _release(payload: Part) -> Post | None:
    verbs = {"create": "published", "update": "updated", "delete": "deleted"}
    action = payload.word("action", "create")
    name = link(payload.line("name", "") or payload.line("tag"), payload.url("url"))
    what = f"Release {name} was {verbs.get(action, action)}"
    body = payload.text("description", "") if action == "create" else ""
    text = said(what, f"for tag {code(payload.line('tag'))}", body)
    return Post(_project(payload), text, "release")


def _deployment(payload: Part) -> Post | None:
    status = payload.word("status")
    if status in {"created", "running"}:
        return None
    where = payload.line("environment")
    state = title_case(status).lower()
    url = payload.url("deployable_url")
    what = f"Deployment of {code(payload.line('ref'))} to {where}: {link(state, url)}."
    return Post(_project(payload), what, "deployment")


def _feature_flag(payload: Part) -> Post | None:
    flag = payload.part("object_attributes")
    verb = "turned on" if flag.flag("active") else "turned off"
    return Post(
        _project(payload), f"{_who(payload)} {verb} feature flag {code(flag.line('name'))}.", "flag"
    )


WRITERS: Final[Mapping[str, tuple[str, Writer]]] = {
    "Push Hook": ("push", _push),
    "Tag Push Hook": ("tag_push", _tag),
    "Issue Hook": ("issue", _issue),
    "Confidential Issue Hook": ("issue", _issue),
    "Merge Request Hook": ("merge_request", _merge_request),
    "Note Hook": ("note", _note),
    "Confidential Note Hook": ("note", _note),
    "Pipeline Hook": ("pipeline", _pipeline),
    "Job Hook": ("job", _job),
    "Build Hook": ("job", _job),
    "Wiki Page Hook": ("wiki_page", _wiki),
    "Release Hook": ("release", _release),
    "Deployment Hook": ("deployment", _deployment),
    "Feature Flag Hook": ("flag", _feature_flag),
}
_NO_MESSAGE: Final = frozenset({"Emoji Hook", "Milestone Hook"})


def _event(header: str, payload: Part) -> str:
    """The event, which system hooks have in the payload."""
    if header != "System Hook":
        return header
    name = payload.word("object_kind", payload.word("event_name", ""))
    return f"{title_case(name).title()} Hook"


GITLAB: Final = Integration(
    "gitlab",
    "GitLab",
    dispatched(
        ("x-gitlab-event",),
        {event: writer for event, (_, writer) in WRITERS.items()},
        quiet=_NO_MESSAGE,
        named=_event,
    ),
    tuple(dict.fromkeys(name for name, _ in WRITERS.values())),
    token("x-gitlab-token"),
    has_branches=True,
)
