"""How what a tool answers is given to a model: as data, with a mark where it begins and ends.

What people wrote may say "ignore what you were told before". So it stands in JSON, between two
marks that nobody can know before, and beside a sentence that says what it is.
"""

import secrets
from typing import Any

import msgspec

from tertulia.wire.mcp.tool import NOTICE, Json, Outcome


def succeeded(outcome: Outcome) -> Json:
    """The result of a tool that did what it was asked for."""
    structured = msgspec.to_builtins(outcome)
    mark = secrets.token_hex(4)
    return {
        "content": [
            _text(f"{NOTICE} It ends at the mark {mark}."),
            _text(msgspec.json.encode(structured).decode()),
            _text(f"(mark {mark}: end of the data)"),
        ],
        "structuredContent": structured,
        "isError": False,
    }


def failed(sentence: str) -> Json:
    """The result of a tool that did not, with the reason: a model can often do better then."""
    return {"content": [_text(sentence)], "isError": True}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
