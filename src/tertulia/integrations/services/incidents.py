"""Incident services: PagerDuty, Opsgenie, and Statuspage."""

from typing import Final

from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import (
    Part,
    code,
    facts,
    link,
    listed,
    paragraphs,
    title_case,
    with_quote,
)
from tertulia.integrations.signatures import versions

_PAGERDUTY: Final = {
    "incident.triggered": "triggered",
    "incident.acknowledged": "acknowledged",
    "incident.unacknowledged": "unacknowledged",
    "incident.resolved": "resolved",
    "incident.reopened": "reopened",
    "incident.escalated": "escalated",
    "incident.reassigned": "reassigned",
    "incident.delegated": "delegated",
    "incident.priority_updated": "changed the priority of",
    "incident.annotated": "added a note to",
    "incident.status_update_published": "published a status update on",
    "incident.responder.added": "requested a responder for",
    "incident.responder.replied": "received a response from a responder for",
}
_PAGERDUTY_QUIET: Final = frozenset(
    {
        *("pagey.ping", "incident.conference_bridge.updated", "incident.incident_type.changed"),
        *("incident.workflow.started", "incident.workflow.completed"),
        *("incident.custom_field_values.updated", "incident.action_invocation.created"),
    }
)


def _pagerduty(request: WebhookRequest) -> Translated:
    event = request.payload.part("event")
    kind = event.word("event_type")
    if kind in _PAGERDUTY_QUIET:
        return None
    if kind not in _PAGERDUTY:
        raise Unsupported(kind)
    data = event.part("data")
    incident = data.find("incident") or data
    number = incident.line("number", "")
    title = incident.line("title", incident.line("summary", "an incident"))
    shown = f"#{number} {title}" if number else title
    who = event.line("agent.summary", incident.line("service.summary", "PagerDuty"))
    what = f"{_PAGERDUTY[kind]} {link(shown, incident.url('html_url'))}"
    people = [part.line("summary", "someone") for part in incident.parts("assignees")]
    with_assignees = {"incident.triggered", "incident.reassigned", "incident.escalated"}
    if people and kind in with_assignees:
        what += f" (assigned to {listed(people[:10])})"
    if kind == "incident.priority_updated":
        what += f" to {incident.line('priority.summary', 'none')}"
    body = data.text("content", "") or data.text("message", "")
    service = incident.line("service.summary", "")
    topic = f"{service}: {shown}" if service else shown
    return Post(topic, with_quote(f"{who} {what}", body), kind)


_OPSGENIE: Final = {
    "Create": "New alert",
    "Acknowledge": "{} acknowledged the alert",
    "UnAcknowledge": "{} unacknowledged the alert",
    "Close": "{} closed the alert",
    "AddNote": "{} added a note",
    "AddTags": "{} added tags",
    "RemoveTags": "{} removed tags",
    "AddRecipient": "{} added a recipient",
    "AddTeam": "{} added a team",
    "AssignOwnership": "{} assigned the alert",
    "TakeOwnership": "{} took ownership of the alert",
    "Delete": "{} deleted the alert",
    "Escalate": "The alert was escalated",
    "EscalateNext": "The alert was escalated",
    "Snooze": "{} snoozed the alert",
    "UpdatePriority": "{} changed the priority",
    "CustomAction": "{} ran an action",
}


def _opsgenie(request: WebhookRequest) -> Translated:
    payload = request.payload
    action = payload.word("action")
    if action not in _OPSGENIE:
        raise Unsupported(action)
    alert = payload.part("alert")
    who = alert.line("username", "") or "Someone"
    number, message = alert.line("tinyId", ""), alert.line("message")
    items = facts(
        priority=alert.line("priority", ""),
        entity=alert.line("entity", ""),
        source=alert.line("source", ""),
        tags=", ".join(code(part.line()) for part in alert.parts("tags")[:20]),
        owner=alert.line("owner", ""),
        note=alert.line("note", ""),
        team=alert.line("team", ""),
        changed_tags=alert.line("addedTags", alert.line("removedTags", "")),
        recipient=alert.line("recipient", ""),
    )
    shown = f"#{number} {message}" if number else message
    head = f"**{_OPSGENIE[action].format(who)}**: {shown}"
    description = alert.text("description", "") if action == "Create" else ""
    text = paragraphs(head + "\n", *items, description)
    return Post(shown, text.rstrip("\n"), action)


def _statuspage(request: WebhookRequest) -> Translated:
    payload = request.payload
    incident = payload.find("incident")
    if incident is not None:
        return _incident(incident)
    update = payload.part("component_update")
    name = payload.line("component.name")
    now, before = (
        title_case(update.line("new_status")).lower(),
        title_case(update.line("old_status", "")).lower(),
    )
    ending = f" (previously {before})" if before else ""
    return Post(name, f"**{name}** is now {now}{ending}.", "component")


def _incident(incident: Part) -> Post:
    name = incident.line("name")
    updates = incident.parts("incident_updates")
    status = title_case(incident.line("status")).lower()
    impact = incident.line("impact", "none")
    about = "" if impact == "none" else f", {impact} impact"
    body = updates[0].text("body", "") if updates else ""
    what = f"is {status}{about}"
    named = link(name, incident.url("shortlink"))
    return Post(name, with_quote(f"**{named}** {what}", body), "incident")


PAGERDUTY: Final = Integration(
    "pagerduty", "PagerDuty", _pagerduty, tuple(_PAGERDUTY), versions("x-pagerduty-signature")
)
OPSGENIE: Final = Integration("opsgenie", "Opsgenie", _opsgenie, tuple(_OPSGENIE))
STATUSPAGE: Final = Integration("statuspage", "Statuspage", _statuspage, ("incident", "component"))
