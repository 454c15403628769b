"""Monitoring services: Datadog, New Relic, Zabbix, Splunk, and Airbrake."""

import json
import re
from typing import Final

from tertulia.integrations.incoming import Integration, Post, Translated, WebhookRequest
from tertulia.integrations.payloads import (
    Malformed,
    Part,
    code,
    facts,
    fenced,
    link,
    paragraphs,
    title_case,
)

_DATADOG_MARKDOWN: Final = re.compile(r"^\s*%%%|%%%\s*$", re.MULTILINE)


def _datadog(request: WebhookRequest) -> Translated:
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
    return ", ".join(part.line() for part in parts[:10])


def _new_relic(request: WebhookRequest) -> Translated:
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
    items = facts(
        priority=priority,
        entities=entities,
        policy=policies or payload.line("policy_name", ""),
        owner=payload.line("owner", ""),
    )
    text = paragraphs(f"**{link(title, url)}** is {state or 'open'}.\n", *items)
    topic = conditions or payload.line("condition_name", title)
    return Post(topic, text.rstrip("\n"), state)


def _zabbix(request: WebhookRequest) -> Translated:
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


def _splunk(request: WebhookRequest) -> Translated:
    payload = request.payload
    name = payload.line("search_name", "") or payload.line("sid", "Splunk")
    result = payload.find("result") or Part({})
    items = facts(
        host=code(result.line("host", "")),
        source=code(result.line("source", "")),
        app=code(payload.line("app", "")),
    )
    head = f"The search {link(name, payload.url('results_link'))} found something:\n"
    return Post(name, paragraphs(head, *items, fenced(result.text("_raw", ""))))


def _airbrake(request: WebhookRequest) -> Translated:
    payload = request.payload
    error = payload.part("error")
    project = error.line("project.name")
    kind = error.line("error_class", "Error")
    place = error.line("file", "")
    if place:
        place += f":{error.line('line_number', '?')}"
    items = facts(
        where=code(place),
        environment=title_case(error.line("environment", "")),
        times=error.line("times_occurred", ""),
    )
    text = paragraphs(
        f"**{link(kind, payload.url('airbrake_error_url'))}**: {error.line('error_message')}\n",
        *items,
    )
    return Post(project, text.rstrip("\n"))


DATADOG: Final = Integration("datadog", "Datadog", _datadog)
NEW_RELIC: Final = Integration("newrelic", "New Relic", _new_relic, _STATES)
ZABBIX: Final = Integration("zabbix", "Zabbix", _zabbix, ("problem", "resolved"))
SPLUNK: Final = Integration("splunk", "Splunk", _splunk)
AIRBRAKE: Final = Integration("airbrake", "Airbrake", _airbrake)

EVENTS: Final = ("up", "down", "pending", "maintenance", "notice")
_SENTENCES: Final = {
    "up": "✅ {} is back up",
    "down": "🚨 {} is down",
    "pending": "{} doesn't respond and is being retried",
    "maintenance": "{} is under maintenance",
}


def _sentence(event: str, name: str, why: str) -> str:
    head = _SENTENCES[event].format(name)
    return f"{head}: {why}" if why else f"{head}."


def _kuma(request: WebhookRequest) -> Translated:
    payload = request.payload
    packed = payload.word("data", "")
    if packed and payload.find("msg") is None:
        # The other format of the body: a form with the JSON in a field.
        try:
            payload = Part(json.loads(packed))
        except (ValueError, RecursionError):
            raise Malformed("'data' isn't valid JSON") from None
    heartbeat, monitor = payload.find("heartbeat"), payload.find("monitor")
    if heartbeat is None or monitor is None:
        return Post("Uptime Kuma", payload.text("msg"), "notice")
    states = {0: "down", 1: "up", 2: "pending", 3: "maintenance"}
    event = states.get(int(heartbeat.number("status")))
    if event is None:
        raise Malformed("'heartbeat.status' is unknown")
    name = monitor.line("name")
    text = _sentence(event, link(name, monitor.url("url")), heartbeat.line("msg", ""))
    return Post(name, text, event)


def _robot(request: WebhookRequest) -> Translated:
    payload = request.payload
    name = payload.line("monitor_friendly_name", payload.line("monitorFriendlyName", ""))
    if not name:
        raise Malformed("'monitor_friendly_name' is missing")
    kind = payload.line("alert_type", payload.line("alertType", ""))
    url = payload.url("monitor_url") or payload.url("monitorURL")
    details = payload.line("alert_details", payload.line("alertDetails", ""))
    shown = payload.line("alert_type_friendly_name", payload.line("alertTypeFriendlyName", ""))
    event = {"1": "down", "2": "up"}.get(kind, shown.lower())
    if event not in {"up", "down"}:
        return Post(name, f"{link(name, url)}: {shown} {details}".strip(), "notice")
    return Post(name, _sentence(event, link(name, url), details), event)


def _freshping(request: WebhookRequest) -> Translated:
    data = request.payload.part("webhook_event_data")
    name, state = data.line("check_name"), data.line("check_state_name")
    event = "up" if state == "Available" else "down"
    code = data.line("http_status_code", "")
    answer = f"HTTP {code}" if code and code != "0" else ""
    why = answer if event == "up" or state == "Not Responding" else f"{state} {answer}".strip()
    url = data.url("request_url")
    return Post(name, _sentence(event, link(name, url), why or ""), event)


def _pingdom(request: WebhookRequest) -> Translated:
    payload = request.payload
    name = payload.line("check_name")
    now, before = payload.line("current_state"), payload.line("previous_state", "")
    url = payload.url("check_params.full_url")
    host = payload.line("check_params.hostname", "")
    event = "up" if now in {"UP", "SUCCESS"} else "down"
    why = payload.line("long_description", payload.line("description", ""))
    kind = payload.line("check_type", "")
    text = paragraphs(
        _sentence(event, link(name, url), why if event == "down" else ""),
        f"{kind} of {host or url} was {before}." if before and (host or url) else "",
    )
    return Post(name, text, event)


UPTIME_KUMA: Final = Integration("uptimekuma", "Uptime Kuma", _kuma, EVENTS)
UPTIME_ROBOT: Final = Integration("uptimerobot", "Uptime Robot", _robot, ("up", "down", "notice"))
FRESHPING: Final = Integration("freshping", "Freshping", _freshping, ("up", "down"))
PINGDOM: Final = Integration("pingdom", "Pingdom", _pingdom, ("up", "down"))
