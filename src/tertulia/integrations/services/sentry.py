"""Sentry."""

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
    fenced,
    link,
    paragraphs,
    title_case,
    with_quote,
)
from tertulia.integrations.signatures import hmac_hex

EVENTS: Final = ("event_alert", "issue", "metric_alert", "error", "comment", "installation")
MAX_FRAMES: Final = 5


def _frames(event: Part) -> str:
    """Return the stack trace, with the innermost frame last."""
    lines: list[str] = []
    for value in event.parts("exception.values")[-1:]:
        for frame in value.parts("stacktrace.frames")[-MAX_FRAMES:]:
            place = frame.line("filename", "?")
            lines.append(f"{place}:{frame.line('lineno', '?')} in {frame.line('function', '?')}")
            context = frame.text("context_line", "").strip()
            if context:
                lines.append(f"    {context[:200]}")
    return fenced("\n".join(lines))


def _event(event: Part, rule: str, kind: str) -> Post:
    title = event.line("title", event.line("message", "An event"))
    name = link(title, event.url("web_url"))
    items = facts(
        level=event.line("level", ""),
        where=code(event.line("culprit", "")),
        environment=event.line("environment", ""),
        release=code(event.line("release", "")),
        time=event.line("datetime", ""),
    )
    by = f" (by rule {rule})" if rule else ""
    text = paragraphs(f"**{name}**{by}\n", *items, _frames(event))
    return Post(event.line("project_name", "") or title, text, kind)


def _issue(payload: Part) -> Post | None:
    issue = payload.part("data.issue")
    action = payload.word("action")
    title = issue.line("title")
    url = issue.url("web_url") or issue.url("permalink")
    who = payload.line("actor.name", "Sentry")
    name = f"{link(title, url)} ({issue.line('shortId', issue.line('id', ''))})"
    match action:
        case "created":
            project = issue.line("project.name", issue.line("project.slug", ""))
            where = f" in {project}" if project else ""
            text = f"New {issue.line('level', 'issue')}{where}: {name}"
            culprit = issue.line("culprit", "")
            return Post(title, text + (f"\n* Where: {code(culprit)}" if culprit else ""), "issue")
        case "assigned":
            whom = issue.line("assignedTo.name", "someone")
            return Post(title, f"{who} assigned {whom} to {name}.", "issue")
        case _:
            return Post(title, f"{who} marked {name} as {title_case(action).lower()}.", "issue")


def _metric(payload: Part) -> Post:
    data = payload.part("data")
    title = data.line("description_title", "") or payload.line("action")
    url = data.url("web_url")
    text = paragraphs(link(title, url), data.text("description_text", ""))
    return Post(data.line("metric_alert.title", title), text, "metric_alert")


def _old(payload: Part) -> Post:
    """Translate the request of older versions' plugin, which has no resource."""
    event = payload.part("event")
    title = event.line("title", payload.line("message", "An event"))
    project = payload.line("project_name", payload.line("project", ""))
    text = paragraphs(
        f"**{link(title, payload.url('url'))}**\n",
        *facts(level=payload.line("level", ""), where=code(payload.line("culprit", ""))),
    )
    return Post(project or title, text, "event_alert")


def translate(request: WebhookRequest) -> Translated:
    """Translate a request from Sentry."""
    payload, resource = request.payload, request.header("sentry-hook-resource")
    if not resource:
        if payload.find("event") is not None:
            return _old(payload)
        resource = "issue" if payload.find("data.issue") is not None else "event_alert"
    match resource:
        case "event_alert":
            rule = payload.line("data.triggered_rule", "")
            return _event(payload.part("data.event"), rule, resource)
        case "error":
            return _event(payload.part("data.error"), "", resource)
        case "issue":
            return _issue(payload)
        case "metric_alert":
            return _metric(payload)
        case "comment":
            who = payload.line("actor.name", "Someone")
            verb = payload.word("action", "created")
            what = f"{verb} a comment on issue {payload.line('data.issue_id', '')}"
            text = with_quote(f"{who} {what}", payload.text("data.comment", ""))
            return Post(payload.line("data.project_slug", "Sentry"), text, resource)
        case "installation":
            verb = payload.line("action")
            return Post("Sentry", f"The integration was {verb}.", resource)
    raise Unsupported(resource)


SENTRY: Final = Integration(
    "sentry", "Sentry", translate, EVENTS, hmac_hex("sentry-hook-signature")
)
