"""Asana, whose events contain IDs instead of names."""

from typing import Final

from tertulia.integrations.incoming import (
    HandshakeReply,
    Integration,
    Post,
    Translated,
    WebhookRequest,
)
from tertulia.integrations.payloads import Malformed, Part, code, link, title_case
from tertulia.integrations.signatures import hmac_hex

EVENTS: Final = ("task", "story", "project", "section", "tag", "attachment")
MAX_TOLD: Final = 20
_LINKED: Final = frozenset({"task", "project"})


def _line(event: Part) -> str | None:
    kind = event.line("resource.resource_type")
    action = event.line("action")
    subtype = event.line("resource.resource_subtype", "")
    if kind == "story" and subtype != "comment_added":
        return None  # Asana's own description of a change that is listed anyway.
    gid = event.line("resource.gid")
    named = f"{kind} {event.line('resource.name', gid)}"
    if kind == "story":
        kind, gid = "task", event.line("parent.gid", gid)
        return f"* A comment was {action} to {_linked('task', f'task {gid}', gid)}"
    field = event.line("change.field", "")
    about = f" ({code(title_case(field).lower())})" if field else ""
    return f"* {_linked(kind, title_case(named), gid)} was {action}{about}"


def _linked(kind: str, named: str, gid: str) -> str:
    is_linked = kind in _LINKED and gid.isdecimal()
    return link(named, f"https://app.asana.com/0/0/{gid}" if is_linked else "")


def translate(request: WebhookRequest) -> Translated:
    secret = request.header("x-hook-secret")
    if secret:
        return HandshakeReply(headers={"X-Hook-Secret": secret[:200]})
    events = request.payload.parts("events")
    if request.payload.find("events") is None:
        raise Malformed("'events' is missing")
    told = list(dict.fromkeys(filter(None, map(_line, events[: 10 * MAX_TOLD]))))
    if not told:
        return None
    lines = told[:MAX_TOLD]
    if len(told) > MAX_TOLD:
        lines.append(f"* … and {len(told) - MAX_TOLD} more")
    kinds = [event.word("resource.resource_type", "") for event in events]
    first = next((kind for kind in kinds if kind in EVENTS), "task")
    return Post("Asana", "\n".join(lines), first)


ASANA: Final = Integration("asana", "Asana", translate, EVENTS, hmac_hex("x-hook-signature"))
