"""Linear."""

from typing import Final

from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import Part, code, link, said, title_case
from tertulia.integrations.signatures import hmac_hex

_VERBS: Final = {"create": "created", "update": "updated", "remove": "removed"}
_SHOWN: Final = {
    "title": "title",
    "description": "",
    "stateId": "state.name",
    "assigneeId": "assignee.name",
    "priority": "priorityLabel",
    "dueDate": "dueDate",
    "projectId": "project.name",
    "cycleId": "cycle.name",
}
"""Fields whose changes are posted, and where the new value is."""


def _who(payload: Part) -> str:
    return payload.line("actor.name", payload.line("data.user.name", "Someone"))


def _verb(payload: Part) -> str:
    action = payload.word("action", "update")
    return _VERBS.get(action, action)


def _issue(payload: Part) -> Post | None:
    data = payload.part("data")
    key = data.line("identifier", f"{data.line('team.key', '')}-{data.line('number')}")
    title = data.line("title")
    issue = link(f"{key} {title}", payload.url("url") or data.url("url"))
    topic, verb = f"{key}: {title}", _verb(payload)
    if verb == "updated":
        before = payload.find("updatedFrom")
        names = [name for name, _ in before.items() if name in _SHOWN] if before else []
        if not names:
            return None
        lines = [_changed(data, name) for name in names]
        return Post(topic, f"{_who(payload)} updated {issue}:\n\n" + "\n".join(lines), "Issue")
    state = data.line("state.name", "")
    assignee = data.line("assignee.name", "")
    facts = [f"state {code(state)}"] if state and verb == "created" else []
    if assignee and verb == "created":
        facts.append(f"assigned to {assignee}")
    what = f"{verb} issue {issue}" + (f" ({', '.join(facts)})" if facts else "")
    body = data.text("description", "") if verb == "created" else ""
    return Post(topic, said(f"{_who(payload)} {what}", body), "Issue")


def _changed(data: Part, name: str) -> str:
    where = _SHOWN[name]
    shown = title_case(name.removesuffix("Id").replace("dueDate", "due_date"))
    if not where:
        return f"* {shown} changed"
    value = data.line(where, "")
    return f"* {shown}: {code(value) if value else 'none'}"


def _comment(payload: Part) -> Post | None:
    data = payload.part("data")
    thing = data.find("issue") or data.find("document") or data.find("projectUpdate")
    title = thing.line("title", "a thread") if thing else "a thread"
    key = thing.line("identifier", "") if thing else ""
    url = payload.url("url")
    verbs = {"created": "commented", "updated": "edited a comment", "removed": "deleted a comment"}
    verb = link(verbs.get(_verb(payload), "commented"), url)
    body = "" if _verb(payload) == "removed" else data.text("body", "")
    topic = f"{key}: {title}" if key else title
    return Post(topic, said(f"{_who(payload)} {verb} on {topic}", body), "Comment")


def _project(payload: Part) -> Post | None:
    data = payload.part("data")
    name = link(data.line("name"), payload.url("url") or data.url("url"))
    verb = _verb(payload)
    before = payload.find("updatedFrom")
    if verb == "updated" and before is not None:
        names = {key for key, _ in before.items()}
        if not names & {"name", "state", "statusId", "targetDate", "leadId", "description"}:
            return None
    body = data.text("description", "") if verb == "created" else ""
    return Post(data.line("name"), said(f"{_who(payload)} {verb} project {name}", body), "Project")


def _project_update(payload: Part) -> Post | None:
    data = payload.part("data")
    project = data.line("project.name", "the project")
    health = _HEALTH.get(data.word("health", ""), "")
    what = f"wrote an {link('update', payload.url('url'))} of project {project}"
    if _verb(payload) != "created":
        what = f"{_verb(payload)} an update of project {project}"
    if health:
        what += f" ({health})"
    return Post(project, said(f"{_who(payload)} {what}", data.text("body", "")), "ProjectUpdate")


_HEALTH: Final = {"onTrack": "on track", "atRisk": "at risk", "offTrack": "off track"}
_WRITERS: Final = {
    "Issue": _issue,
    "Comment": _comment,
    "Project": _project,
    "ProjectUpdate": _project_update,
}
_UNTOLD: Final = frozenset({"IssueLabel", "Reaction", "Cycle", "Attachment", "IssueAttachment"})


def translate(request: WebhookRequest) -> Translated:
    """A request of Linear's."""
    kind = request.payload.word("type", "")
    if kind in _UNTOLD:
        return None
    if kind not in _WRITERS:
        raise Unsupported(kind)
    return _WRITERS[kind](request.payload)


LINEAR: Final = Integration(
    "linear", "Linear", translate, tuple(_WRITERS), hmac_hex("linear-signature")
)
