"""Any JSON, and services whose users write the message: Zapier, IFTTT, and Home Assistant."""

import io
import json
from typing import Final

from tertulia.integrations.incoming import Integration, Post, Translated, WebhookRequest
from tertulia.integrations.payloads import Part, fenced

MAX_SHOWN: Final = 20_000
"""Characters of a payload that are shown: more than a message has."""


def _any_json(request: WebhookRequest) -> Translated:
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, default=str)
    text, size = io.StringIO(), 0
    # Indentation can make it a thousand times longer, so encode only what is shown.
    for piece in encoder.iterencode(request.payload.value):
        size += text.write(piece)
        if size > MAX_SHOWN:
            break
    return Post("JSON", fenced(text.getvalue(), "json"))


def _topic_and_content(request: WebhookRequest) -> Translated:
    payload = request.payload
    return Post(payload.line("topic", "") or "Zapier", payload.text("content"))


def _applet(request: WebhookRequest) -> Translated:
    payload = request.payload
    topic = payload.line("topic", "") or "IFTTT"
    content = payload.text("content", "")
    if content:
        return Post(topic, content)
    # An applet's default fields.
    values = [payload.text(f"value{n}", "") for n in (1, 2, 3)]
    return Post(topic, "\n".join(filter(None, values)) or payload.text("content"))


def _home(request: WebhookRequest) -> Translated:
    payload: Part = request.payload
    topic = payload.line("topic", "") or payload.line("title", "") or "Home Assistant"
    title = payload.line("title", "")
    message = payload.text("message")
    return Post(topic, f"**{title}**\n{message}" if title and title != topic else message)


JSON: Final = Integration("json", "Any JSON", _any_json, takes_templates=True)
ZAPIER: Final = Integration("zapier", "Zapier", _topic_and_content)
IFTTT: Final = Integration("ifttt", "IFTTT", _applet)
HOME_ASSISTANT: Final = Integration("homeassistant", "Home Assistant", _home)
