"""Task trackers: Trello, Linear, and Asana."""

from typing import Final

from tertulia.integrations.incoming import (
    HandshakeReply,
    Integration,
    Post,
    Translated,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import Malformed, Part, code, link, title_case, with_quote
from tertulia.integrations.signatures import hmac_base64, hmac_hex

# Trello

_TRELLO_SENTENCES: Final = {
    "createCard": "created {card} in {list.name|a list}",
    "updateCard": "",
    "deleteCard": "deleted card #{card.idShort|?}",
    "commentCard": "commented on {card}",
    "copyCard": "created {card} in {list.name|a list}",
    "moveCardToBoard": "moved {card} to this board",
    "addMemberToCard": "added {whom} to {card}",
    "removeMemberFromCard": "removed {whom} from {card}",
    "addAttachmentToCard": "attached [{attachment.name|a file}]({attachment.url}) to {card}",
    "addChecklistToCard": "added checklist {checklist.name} to {card}",
    "createCheckItem": "added `{checkItem.name}` to a checklist of {card}",
    "updateCheckItemStateOnCard": "",
    "addLabelToCard": "added label {label.name|label.color|a label} to {card}",
    "removeLabelFromCard": "removed label {label.name|label.color|a label} from {card}",
    "createList": "created list {list.name} on {board.name|the board}",
    "updateList": "",
    "addMemberToBoard": "added {whom} to {board.name|the board}",
    "removeMemberFromBoard": "removed {whom} from {board.name|the board}",
    "updateBoard": "",
}
"""Templates. Those for updates depend on the changed field."""
_TRELLO_QUIET: Final = frozenset(
    {
        *("updateCheckItem", "updateChecklist", "deleteCheckItem", "createChecklist"),
        *("removeChecklistFromCard", "deleteAttachmentFromCard", "updateComment", "deleteComment"),
        *("createLabel", "updateLabel", "deleteLabel", "voteOnCard", "enablePlugin"),
        *("disablePlugin", "createBoard", "emailCard", "updateCustomFieldItem", "copyCommentCard"),
    }
)


def _update_card(data: Part) -> str:
    """Return the template for the change of a card; empty for its position, its cover, and
    similar."""
    old = data.part("old")
    changed = {name for name, _ in old.items()}
    if data.find("listAfter") is not None:
        return "moved {card} from {listBefore.name} to {listAfter.name}"
    if old.find("closed") is not None:
        return "archived {card}" if data.flag("card.closed") else "reopened {card}"
    if old.find("name") is not None:
        return "renamed {old.name} to {card}"
    if "desc" in changed:
        verb = "changed" if data.line("card.desc", "") else "removed"
        return f"{verb} the description of {{card}}"
    if "due" in changed and data.line("card.due", ""):
        return "set the due date of {card} to {due}"
    if "due" in changed:
        return "removed the due date from {card}"
    if "dueComplete" in changed:
        return f"marked {{card}} as {'done' if data.flag('card.dueComplete') else 'not done'}"
    return ""


def _update(kind: str, data: Part) -> str:
    """Return the template for an update; empty if it has no message."""
    match kind:
        case "updateCard":
            return _update_card(data)
        case "updateCheckItemStateOnCard":
            verb = "checked" if data.word("checkItem.state", "") == "complete" else "unchecked"
            return f"{verb} `{{checkItem.name}}` of {{card}}"
        case "updateList" if data.find("old.name") is not None:
            return "renamed list {old.name} to {list.name}"
        case "updateList" if data.find("old.closed") is not None:
            return f"{'archived' if data.flag('list.closed') else 'reopened'} list {{list.name}}"
        case "updateBoard" if data.line("old.name", ""):
            return "renamed the board {old.name} to {board.name|the board}"
    return ""


def _trello(request: WebhookRequest) -> Translated:
    action = request.payload.part("action")
    kind = action.word("type")
    if kind in _TRELLO_QUIET:
        return None
    data = action.part("data")
    if kind not in _TRELLO_SENTENCES:
        raise Unsupported(kind)
    template = _TRELLO_SENTENCES[kind] or _update(kind, data)
    if not template:
        return None
    short = data.word("card.shortLink", "")
    values = {
        "card": link(
            data.line("card.name", "a card"),
            f"https://trello.com/c/{short}" if short.isalnum() else "",
        ),
        "due": data.line("card.due", ""),
        "whom": action.line("member.fullName", "someone"),
    }
    topic = data.line("board.name", request.payload.line("model.name", "Trello"))
    who = action.line("memberCreator.fullName", "Someone")
    body = data.text("text", "") if kind == "commentCard" else ""
    return Post(topic, with_quote(f"{who} {data.fill(template, values)}", body), kind)


TRELLO: Final = Integration(
    "trello",
    "Trello",
    _trello,
    tuple(_TRELLO_SENTENCES),
    hmac_base64("x-trello-webhook", "sha1", with_url=True),
)


# Linear

_LINEAR_VERBS: Final = {"create": "created", "update": "updated", "remove": "removed"}
_LINEAR_FIELDS: Final = {
    "title": "title",
    "description": "",
    "stateId": "state.name",
    "assigneeId": "assignee.name",
    "priority": "priorityLabel",
    "dueDate": "dueDate",
    "projectId": "project.name",
    "cycleId": "cycle.name",
}
"""Fields whose changes are posted, and the path of the new value."""


def _who(payload: Part) -> str:
    return payload.line("actor.name", payload.line("data.user.name", "Someone"))


def _verb(payload: Part) -> str:
    action = payload.word("action", "update")
    return _LINEAR_VERBS.get(action, action)


def _issue(payload: Part) -> Post | None:
    data = payload.part("data")
    key = data.line("identifier", f"{data.line('team.key', '')}-{data.line('number')}")
    title = data.line("title")
    issue = link(f"{key} {title}", payload.url("url") or data.url("url"))
    topic, verb = f"{key}: {title}", _verb(payload)
    if verb == "updated":
        before = payload.find("updatedFrom")
        names = [name for name, _ in before.items() if name in _LINEAR_FIELDS] if before else []
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
    return Post(topic, with_quote(f"{_who(payload)} {what}", body), "Issue")


def _changed(data: Part, name: str) -> str:
    where = _LINEAR_FIELDS[name]
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
    return Post(topic, with_quote(f"{_who(payload)} {verb} on {topic}", body), "Comment")


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
    return Post(
        data.line("name"), with_quote(f"{_who(payload)} {verb} project {name}", body), "Project"
    )


def _project_update(payload: Part) -> Post | None:
    data = payload.part("data")
    project = data.line("project.name", "the project")
    health = _HEALTH.get(data.word("health", ""), "")
    what = f"wrote an {link('update', payload.url('url'))} of project {project}"
    if _verb(payload) != "created":
        what = f"{_verb(payload)} an update of project {project}"
    if health:
        what += f" ({health})"
    return Post(
        project, with_quote(f"{_who(payload)} {what}", data.text("body", "")), "ProjectUpdate"
    )


_HEALTH: Final = {"onTrack": "on track", "atRisk": "at risk", "offTrack": "off track"}
_LINEAR_WRITERS: Final = {
    "Issue": _issue,
    "Comment": _comment,
    "Project": _project,
    "ProjectUpdate": _project_update,
}
_LINEAR_QUIET: Final = frozenset(
    {"IssueLabel", "Reaction", "Cycle", "Attachment", "IssueAttachment"}
)


def _linear(request: WebhookRequest) -> Translated:
    """Translate a request from Linear."""
    kind = request.payload.word("type", "")
    if kind in _LINEAR_QUIET:
        return None
    if kind not in _LINEAR_WRITERS:
        raise Unsupported(kind)
    return _LINEAR_WRITERS[kind](request.payload)


LINEAR: Final = Integration(
    "linear", "Linear", _linear, tuple(_LINEAR_WRITERS), hmac_hex("linear-signature")
)


# Asana, whose events contain IDs instead of names

_ASANA_EVENTS: Final = ("task", "story", "project", "section", "tag", "attachment")
_ASANA_LINES: Final = 20
_ASANA_LINKED: Final = frozenset({"task", "project"})


def _asana_line(event: Part) -> str | None:
    kind = event.line("resource.resource_type")
    action = event.line("action")
    subtype = event.line("resource.resource_subtype", "")
    if kind == "story" and subtype != "comment_added":
        return None  # Asana's description of a change that has its own event.
    gid = event.line("resource.gid")
    named = f"{kind} {event.line('resource.name', gid)}"
    if kind == "story":
        kind, gid = "task", event.line("parent.gid", gid)
        return f"* A comment was {action} to {_asana_link('task', f'task {gid}', gid)}"
    field = event.line("change.field", "")
    about = f" ({code(title_case(field).lower())})" if field else ""
    return f"* {_asana_link(kind, title_case(named), gid)} was {action}{about}"


def _asana_link(kind: str, named: str, gid: str) -> str:
    is_linked = kind in _ASANA_LINKED and gid.isdecimal()
    return link(named, f"https://app.asana.com/0/0/{gid}" if is_linked else "")


def _asana(request: WebhookRequest) -> Translated:
    secret = request.header("x-hook-secret")
    if secret:
        return HandshakeReply(headers={"X-Hook-Secret": secret[:200]})
    events = request.payload.parts("events")
    if request.payload.find("events") is None:
        raise Malformed("'events' is missing")
    lines = list(dict.fromkeys(filter(None, map(_asana_line, events[: 10 * _ASANA_LINES]))))
    if not lines:
        return None
    if len(lines) > _ASANA_LINES:
        lines[_ASANA_LINES:] = [f"* … and {len(lines) - _ASANA_LINES} more"]
    kinds = [event.word("resource.resource_type", "") for event in events]
    first = next((kind for kind in kinds if kind in _ASANA_EVENTS), "task")
    return Post("Asana", "\n".join(lines), first)


ASANA: Final = Integration("asana", "Asana", _asana, _ASANA_EVENTS, hmac_hex("x-hook-signature"))
