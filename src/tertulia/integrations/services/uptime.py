"""Services that watch whether others answer: Uptime Kuma, Uptime Robot, Freshping and Pingdom."""

import json
from typing import Final

from tertulia.integrations.incoming import Integration, Post, Request, Translated
from tertulia.integrations.payload import Malformed, Part
from tertulia.integrations.prose import link, paragraphs

EVENTS: Final = ("up", "down", "pending", "maintenance", "notice")
_SENTENCES: Final = {
    "up": "✅ {} is up again",
    "down": "🚨 {} is down",
    "pending": "{} does not answer, and is asked again",
    "maintenance": "{} is under maintenance",
}


def _sentence(event: str, name: str, why: str) -> str:
    head = _SENTENCES[event].format(name)
    return f"{head}: {why}" if why else f"{head}."


def _kuma(request: Request) -> Translated:
    payload = request.payload
    packed = payload.word("data", "")
    if packed and payload.find("msg") is None:
        # Its other kind of body: a form with the JSON in a field.
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


def _robot(request: Request) -> Translated:
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


def _freshping(request: Request) -> Translated:
    data = request.payload.part("webhook_event_data")
    name, state = data.line("check_name"), data.line("check_state_name")
    event = "up" if state == "Available" else "down"
    code = data.line("http_status_code", "")
    answer = f"HTTP {code}" if code and code != "0" else ""
    why = answer if event == "up" or state == "Not Responding" else f"{state} {answer}".strip()
    url = data.url("request_url")
    return Post(name, _sentence(event, link(name, url), why or ""), event)


def _pingdom(request: Request) -> Translated:
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
