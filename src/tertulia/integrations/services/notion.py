"""Notion, whose events have IDs instead of names."""

from typing import Final

from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import code, link
from tertulia.integrations.signatures import hmac_hex
from tertulia.model.numbers import counted

_NOUNS: Final = {
    "page": "page",
    "database": "database",
    "data_source": "data source",
    "comment": "comment",
}
_VERBS: Final = {
    "created": "was created",
    "deleted": "was moved to the trash",
    "undeleted": "was taken out of the trash",
    "moved": "was moved",
    "locked": "was locked",
    "unlocked": "was unlocked",
    "updated": "was updated",
    "content_updated": "has new content",
    "properties_updated": "has new properties",
    "schema_updated": "has a new schema",
    "transcription_complete": "has a transcription",
}
_KINDS: Final = {
    "page": (
        *("created", "deleted", "undeleted", "moved", "locked", "unlocked"),
        *("content_updated", "properties_updated"),
    ),
    "database": (
        *("created", "deleted", "undeleted", "moved", "content_updated", "schema_updated"),
    ),
    "data_source": (
        *("created", "deleted", "undeleted", "moved", "content_updated", "schema_updated"),
    ),
    "comment": ("created", "updated", "deleted"),
}
EVENTS: Final = tuple(f"{noun}.{verb}" for noun, verbs in _KINDS.items() for verb in verbs)


def translate(request: WebhookRequest) -> Translated:
    """Translate a request from Notion."""
    payload = request.payload
    token = payload.word("verification_token", "")
    if token:
        text = f"Notion asks for this, to verify the address: {code(token[:200])}"
        return Post("Notion", text)
    event = payload.word("type")
    noun, _, verb = event.partition(".")
    if event not in EVENTS:
        raise Unsupported(event)
    entity = payload.line("entity.id")
    place = payload.line("data.page_id", entity) if noun == "comment" else entity
    name = payload.line("entity.name", "") or f"{_NOUNS[noun].capitalize()}"
    bare = place.replace("-", "")
    url = f"https://www.notion.so/{bare}" if bare.isalnum() and len(bare) == 32 else ""
    people = len([part for part in payload.parts("authors") if part.word("type", "") == "person"])
    by = f" by {counted(people, 'person', 'people')}" if people else ""
    if noun == "comment":
        shown = "deleted" if verb == "deleted" else verb
        text = f"A comment on {link('a page', url)} was {shown}{by}."
    else:
        text = f"{link(name, url)} {_VERBS[verb]}{by}."
    return Post(payload.line("workspace_name", "Notion"), text, event)


NOTION: Final = Integration(
    "notion", "Notion", translate, EVENTS, hmac_hex("x-notion-signature", "sha256=")
)
