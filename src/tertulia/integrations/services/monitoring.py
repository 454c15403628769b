"""Services that watch machines and programs: Datadog, New Relic, Zabbix, Splunk and Airbrake."""

import re
from typing import Final

from tertulia.integrations.incoming import Integration, Post, Request, Translated
from tertulia.integrations.payload import Part
from tertulia.integrations.prose import code, fenced, link, paragraphs, title_case

_DATADOG_MARKDOWN: Final = re.compile(r"^\s*%%%|%%%\s*$", re.MULTILINE)


def _datadog(request: Request) -> Translated:
    payload = request.payload
    title = payload.line("title")
    body = _DATADOG_MARKDOWN.sub("", payload.text("body", payload.text("text_only_msg", "")))
    name = link(title, payload.url("link"))
    kind = payload.line("alert_transition", payload.line("event_type", ""))
    priority = payload.line("priority", "")
    text = paragraphs(
        f"**{name}**" + (f" ({priority})" if priority and priority != "null" else ""),
        body.strip(),
    )
    topic = re.sub(r"^(\[[^\]]{1,100}\]\s*)+", "", title) or title
    return Post(topic, text, kind)


_STATES: Final = ("created", "activated", "acknowledged", "closed")


def _texts(parts: list[Part]) -> str:
    return ", ".join(one.line() for one in parts[:10])


def _new_relic(request: Request) -> Translated:
    payload = request.payload
    state = payload.line("state", payload.line("current_state", "")).lower()
    url = payload.url("issueUrl") or payload.url("incident_url")
    title = payload.line("title", payload.line("details", payload.line("condition_name", "")))
    if isinstance(getattr(payload.find("title"), "value", None), list):
        title = _texts(payload.parts("title"))
    title = title or payload.line("condition_name", "New Relic")
    conditions = _texts(payload.parts("alertConditionNames"))
    policies = _texts(payload.parts("alertPolicyNames"))
    entities = _texts(payload.parts("impactedEntities"))
    priority = payload.line("priority", payload.line("severity", ""))
    facts = [
        f"* {label}: {value}"
        for label, value in (
            ("Priority", priority),
            ("Entities", entities),
            ("Policy", policies or payload.line("policy_name", "")),
            ("Owner", payload.line("owner", "")),
        )
        if value
    ]
    text = paragraphs(f"**{link(title, url)}** is {state or 'open'}.\n", *facts)
    topic = conditions or payload.line("condition_name", title)
    return Post(topic, text.rstrip("\n"), state)


def _zabbix(request: Request) -> Translated:
    payload = request.payload
    host, status = payload.line("hostname"), payload.line("status")
    severity, trigger = payload.line("severity"), payload.line("trigger")
    event = "resolved" if status.upper() in {"OK", "RESOLVED"} else "problem"
    mark = "✅" if event == "resolved" else "🚨"
    text = paragraphs(
        f"{mark} {status} ({severity}) on {code(host)}:",
        f"* {link(trigger, payload.url('link'))}",
        f"* {payload.line('item', '')}" if payload.line("item", "") else "",
    )
    return Post(host, text, event)


def _splunk(request: Request) -> Translated:
    payload = request.payload
    name = payload.line("search_name", "") or payload.line("sid", "Splunk")
    result = payload.find("result") or Part({})
    facts = [
        f"* {label}: {code(value)}"
        for label, value in (
            ("Host", result.line("host", "")),
            ("Source", result.line("source", "")),
            ("App", payload.line("app", "")),
        )
        if value
    ]
    head = f"The search {link(name, payload.url('results_link'))} found something:\n"
    return Post(name, paragraphs(head, *facts, fenced(result.text("_raw", ""))))


def _airbrake(request: Request) -> Translated:
    payload = request.payload
    error = payload.part("error")
    project = error.line("project.name")
    kind = error.line("error_class", "Error")
    place = error.line("file", "")
    if place:
        place += f":{error.line('line_number', '?')}"
    facts = [
        f"* {label}: {value}"
        for label, value in (
            ("Where", code(place)),
            ("Environment", title_case(error.line("environment", ""))),
            ("Times", error.line("times_occurred", "")),
        )
        if value
    ]
    text = paragraphs(
        f"**{link(kind, payload.url('airbrake_error_url'))}**: {error.line('error_message')}\n",
        *facts,
    )
    return Post(project, text.rstrip("\n"))


DATADOG: Final = Integration("datadog", "Datadog", _datadog)
NEW_RELIC: Final = Integration("newrelic", "New Relic", _new_relic, _STATES)
ZABBIX: Final = Integration("zabbix", "Zabbix", _zabbix, ("problem", "resolved"))
SPLUNK: Final = Integration("splunk", "Splunk", _splunk)
AIRBRAKE: Final = Integration("airbrake", "Airbrake", _airbrake)
