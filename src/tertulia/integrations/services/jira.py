"""Jira."""

from typing import Final
from urllib.parse import urlsplit

from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import Part, code, link, title_case, with_quote
from tertulia.integrations.signatures import hmac_hex

EVENTS: Final = (
    *("jira:issue_created", "jira:issue_updated", "jira:issue_deleted"),
    *("comment_created", "comment_updated", "comment_deleted"),
    *("sprint_created", "sprint_started", "sprint_closed"),
    *("jira:version_released", "worklog_created", "worklog_deleted"),
)
_QUIET: Final = frozenset(
    {
        *("jira:worklog_updated", "worklog_updated", "issuelink_created", "issuelink_deleted"),
        *("issue_property_set", "user_updated", "jira:version_created", "jira:version_updated"),
        *("sprint_updated", "sprint_deleted", "attachment_created", "attachment_deleted"),
    }
)
_SHOWN: Final = {
    *("assignee", "status", "priority", "summary", "resolution", "issuetype", "fix version"),
    *("duedate", "sprint"),
}
"""Fields whose changes are posted."""


def _site(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:  # For example, for brackets that aren't closed.
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _issue(payload: Part) -> tuple[str, str]:
    """Return the topic, and the issue as a link."""
    issue = payload.part("issue")
    key, summary = issue.line("key"), issue.line("fields.summary", "")
    site = _site(issue.url("self"))
    name = f"{key} {summary}".strip()
    return f"{key}: {summary}" if summary else key, link(
        name, f"{site}/browse/{key}" if site else ""
    )


def _who(payload: Part) -> str:
    people = ("user", "comment.updateAuthor", "comment.author", "worklog.author")
    return payload.first(
        *(f"{person}.{name}" for person in people for name in ("displayName", "name"))
    )


def _updated(payload: Part, event: str) -> Post | None:
    topic, issue = _issue(payload)
    who = _who(payload)
    comment = payload.find("comment")
    if comment is not None:
        kind = payload.word("issue_event_type_name", "issue_commented")
        if kind == "issue_comment_deleted":
            return Post(topic, f"{who} deleted a comment on {issue}.", event)
        verb = "edited a comment" if kind == "issue_comment_edited" else "commented"
        return Post(topic, with_quote(f"{who} {verb} on {issue}", comment.text("body", "")), event)
    changes = [
        _change(item)
        for item in payload.parts("changelog.items")
        if item.line("field", "").lower() in _SHOWN
    ]
    if not changes:
        return None
    return Post(topic, f"{who} updated {issue}:\n\n" + "\n".join(changes[:20]), event)


def _change(item: Part) -> str:
    name, before, after = item.line("field"), item.line("fromString", ""), item.line("toString", "")
    ending = f" (was {code(before)})" if before else ""
    return f"* {title_case(name)}: {code(after) if after else 'none'}{ending}"


def _created(payload: Part, event: str) -> Post:
    topic, issue = _issue(payload)
    fields = payload.part("issue.fields")
    priority = fields.line("priority.name", "")
    assignee = fields.line("assignee.displayName", "")
    kind = fields.line("issuetype.name", "issue").lower()
    what = f"created {kind} {issue} ({f'assigned to {assignee}' if assignee else 'unassigned'}"
    what += f", priority {priority})" if priority else ")"
    return Post(topic, with_quote(f"{_who(payload)} {what}", fields.text("description", "")), event)


def _comment(payload: Part, event: str) -> Post | None:
    if payload.find("issue") is None:
        return None  # Some versions leave out the issue. The issue's event has the comment.
    topic, issue = _issue(payload)
    verbs = {"comment_created": "commented on", "comment_updated": "edited a comment on"}
    verb = verbs.get(event, "deleted a comment on")
    body = "" if event == "comment_deleted" else payload.text("comment.body", "")
    return Post(topic, with_quote(f"{_who(payload)} {verb} {issue}", body), event)


def _worklog(payload: Part, event: str) -> Post | None:
    worklog = payload.part("worklog")
    verb = "logged" if event == "worklog_created" else "deleted"
    spent = worklog.line("timeSpent", "some work")
    if payload.find("issue") is None:
        return None
    topic, issue = _issue(payload)
    what = f"{verb} {spent} on {issue}"
    return Post(topic, with_quote(f"{_who(payload)} {what}", worklog.text("comment", "")), event)


def translate(request: WebhookRequest) -> Translated:
    """Translate a request from Jira."""
    payload = request.payload
    event = payload.word("webhookEvent", "")
    match event:
        case "jira:issue_created":
            return _created(payload, event)
        case "jira:issue_updated":
            return _updated(payload, event)
        case "jira:issue_deleted":
            topic, issue = _issue(payload)
            return Post(topic, f"{_who(payload)} deleted {issue}.", event)
        case "comment_created" | "comment_updated" | "comment_deleted":
            return _comment(payload, event)
        case "worklog_created" | "worklog_deleted":
            return _worklog(payload, event)
        case "sprint_created" | "sprint_started" | "sprint_closed":
            name = payload.line("sprint.name")
            verb = event.removeprefix("sprint_")
            text = with_quote(f"Sprint {code(name)} was {verb}", payload.text("sprint.goal", ""))
            return Post(name, text, event)
        case "jira:version_released":
            name = payload.line("version.name")
            text = with_quote(
                f"Version {name} was released", payload.text("version.description", "")
            )
            return Post(f"Version {name}", text, event)
    if event in _QUIET:
        return None
    raise Unsupported(event)


JIRA: Final = Integration("jira", "Jira", translate, EVENTS, hmac_hex("x-hub-signature", "sha256="))
