"""GitLab."""

from collections.abc import Mapping
from typing import Final

from tertulia.integrations.forge import (
    NOTHING,
    CodeHost,
    Item,
    Writer,
    action_or,
    branch_deleted,
    branch_made,
    branch_of,
    commits_in,
    dispatched,
    pushed,
)
from tertulia.integrations.incoming import Integration, Post, Unsupported
from tertulia.integrations.payloads import Part, title_case
from tertulia.integrations.signatures import token

_HOST: Final = CodeHost(
    "{user.name|user_name|Someone}",
    "{project.name|repository.name|project_name|GitLab}",
    "iid",
    ("url",),
)
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
_ENDED: Final = {"success": "succeeded", "failed": "failed", "canceled": "was canceled"}
_NOTED: Final = {
    "MergeRequest": Item("merge_request", "MR", "!"),
    "Issue": Item("issue", "issue"),
    "WorkItem": Item("issue", "issue"),
    "Snippet": Item("snippet", "snippet", number="id"),
    "Commit": None,
}
"""The objects that notes can be about. All except commits are items."""


def _push(payload: Part) -> Post | None:
    branch, who = branch_of(payload.word("ref")), payload.fill(_HOST.who)
    url = payload.url("project.web_url")
    topic = f"{payload.fill(_HOST.repository)} / {branch}"
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


def _changes(payload: Part) -> set[str]:
    return set(payload.fields("changes"))


def _action(payload: Part) -> str:
    """Return the action. It's empty for updates of only labels and times, and for new commits,
    which have a push event."""
    action = payload.part("object_attributes").word("action", "update")
    fields = {"title", "description", "assignees", "milestone_id", "due_date", "state_id", "draft"}
    return "" if action == "update" and not _changes(payload) & fields else action


def _assignees(payload: Part) -> dict[str, str]:
    people = [part.line("name") for part in payload.parts("assignees")]
    is_new = _action(payload) == "open" or "assignees" in _changes(payload)
    return {"people": ", ".join(people[:10]) if is_new else ""}


def _noted(payload: Part) -> str:
    name = payload.word("object_attributes.noteable_type")
    if name not in _NOTED:
        raise Unsupported(f"note:{name}")
    return name


def _failed_jobs(payload: Part) -> dict[str, str]:
    web = payload.url("project.web_url")
    jobs = [
        part.fill("[{name}]({web}/-/jobs/{id})", {"web": web})
        for part in payload.parts("builds")
        if part.word("status", "") == "failed"
    ]
    page = f"{web}/-/pipelines/{payload.line('object_attributes.id')}" if web else ""
    return {
        "page": payload.url("object_attributes.url") or page,
        "failed": ", ".join(jobs[:10]),
    }


_issue: Final = _HOST.writer(
    "issue",
    {
        "": "",
        "*": "{who} {action} {item}<< (assigned to {people})>>",
    },
    action=_action,
    verbs=_VERBS,
    item=lambda payload: Item(
        "object_attributes", payload.line("object_attributes.type", "Issue").lower()
    ),
    values=_assignees,
    body={"open": "thing.description"},
    topic="{repository} / issue {title}",
)
_note: Final = _HOST.writer(
    "note",
    {
        "Commit": "{who} [commented]({object_attributes.url}) on"
        " commit [{commit.id:11}]({commit.url})",
        "*": "{who} [commented]({object_attributes.url}) on {noun} {title}",
    },
    action=_noted,
    item=lambda payload: _NOTED[_noted(payload)],
    body="object_attributes.note",
)
_job: Final = _HOST.writer(
    "job",
    dict.fromkeys(
        _ENDED,
        "Job [{build_name}]({repository.homepage}/-/jobs/{build_id})"
        "<< (stage {build_stage|})>> {action} on `{ref}`",
    ),
    action=lambda payload: payload.word("build_status"),
    verbs=_ENDED,
    topic="{repository.name|project.name|project_name|GitLab} / {ref}",
)
WRITERS: Final[Mapping[str, tuple[str, Writer]]] = {
    "Push Hook": ("push", _push),
    "Tag Push Hook": (
        "tag_push",
        _HOST.writer(
            "tag_push",
            {
                NOTHING: "{who} removed tag `{name}`",
                "*": "{who} pushed tag [`{name}`]({project.web_url}/-/tags/{name})",
            },
            action=lambda payload: payload.word("after", ""),
            values=lambda payload: {"name": branch_of(payload.word("ref"))},
            body="message",
        ),
    ),
    "Issue Hook": ("issue", _issue),
    "Confidential Issue Hook": ("issue", _issue),
    "Merge Request Hook": (
        "merge_request",
        _HOST.writer(
            "merge_request",
            {
                "": "",
                "open": "{who} {action} {item} from `{thing.source_branch|}`"
                " to `{thing.target_branch|}`",
                "merge": "{who} {action} {item} into `{thing.target_branch|}`",
                "*": "{who} {action} {item}",
            },
            action=_action,
            verbs=_VERBS,
            item=Item("object_attributes", "MR", "!"),
            body={"open": "thing.description"},
        ),
    ),
    "Note Hook": ("note", _note),
    "Confidential Note Hook": ("note", _note),
    "Pipeline Hook": (
        "pipeline",
        _HOST.writer(
            "pipeline",
            dict.fromkeys(
                _ENDED,
                "[Pipeline #{object_attributes.id}]({page}) {action} on `{object_attributes.ref}`"
                "<<: {failed} failed>>",
            ),
            action=lambda payload: payload.word("object_attributes.status"),
            verbs=_ENDED,
            values=_failed_jobs,
            topic="{repository} / {object_attributes.ref}",
        ),
    ),
    "Job Hook": ("job", _job),
    "Build Hook": ("job", _job),
    "Wiki Page Hook": (
        "wiki_page",
        _HOST.writer(
            "wiki_page",
            {"*": "{who} {action} wiki page [{object_attributes.title}]({object_attributes.url})"},
            action=lambda payload: payload.word("object_attributes.action", "update"),
            verbs={"create": "created", "update": "updated", "delete": "deleted"},
            body="object_attributes.message",
            topic="{repository} / wiki",
        ),
    ),
    "Release Hook": (
        "release",
        _HOST.writer(
            "release",
            {"*": "Release [{name|tag|}]({url}) was {action} for tag `{tag}`"},
            action=action_or("create"),
            verbs={"create": "published", "update": "updated", "delete": "deleted"},
            body={"create": "description"},
        ),
    ),
    "Deployment Hook": (
        "deployment",
        _HOST.writer(
            "deployment",
            {
                "created": "",
                "running": "",
                "*": "Deployment of `{ref}` to {environment}: [{action}]({deployable_url})",
            },
            action=lambda payload: payload.word("status"),
        ),
    ),
    "Feature Flag Hook": (
        "flag",
        _HOST.writer(
            "flag",
            {"*": "{who} {action} feature flag `{object_attributes.name}`"},
            action=lambda payload: (
                "turned on" if payload.flag("object_attributes.active") else "turned off"
            ),
        ),
    ),
}
_NO_MESSAGE: Final = frozenset({"Emoji Hook", "Milestone Hook"})


def _event(header: str, payload: Part) -> str:
    """Return the event's name, which system hooks have in the payload."""
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
