"""Any JSON: as it is, or by the templates of the bot's owner; and services that say themselves what
the message is."""

import json
from typing import Final

from tertulia.integrations.incoming import Integration, Post, Request, Translated
from tertulia.integrations.payload import Part
from tertulia.integrations.prose import fenced


def _any_json(request: Request) -> Translated:
    text = json.dumps(request.payload.value, indent=2, ensure_ascii=False, default=str)
    return Post("JSON", fenced(text, "json"))


def _topic_and_content(request: Request) -> Translated:
    payload = request.payload
    return Post(payload.line("topic", "") or "Zapier", payload.text("content"))


def _applet(request: Request) -> Translated:
    payload = request.payload
    topic = payload.line("topic", "") or "IFTTT"
    content = payload.text("content", "")
    if content:
        return Post(topic, content)
    # What an applet sends that was not told what to send.
    values = [payload.text(f"value{n}", "") for n in (1, 2, 3)]
    return Post(topic, "\n".join(filter(None, values)) or payload.text("content"))


def _home(request: Request) -> Translated:
    payload: Part = request.payload
    topic = payload.line("topic", "") or payload.line("title", "") or "Home Assistant"
    title = payload.line("title", "")
    message = payload.text("message")
    return Post(topic, f"**{title}**\n{message}" if title and title != topic else message)


JSON: Final = Integration("json", "Any JSON", _any_json, takes_templates=True)
ZAPIER: Final = Integration("zapier", "Zapier", _topic_and_content)
IFTTT: Final = Integration("ifttt", "IFTTT", _applet)
HOME_ASSISTANT: Final = Integration("homeassistant", "Home Assistant", _home)
