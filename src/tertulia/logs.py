"""Log lines: `key=value` text for people, or JSON for machines, on standard error.

A record's facts are in `extra={"fields": {...}}`. What people wrote and what they sign in with is
never among them.
"""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(enc_hook=str)


def begin(level: str, form: str) -> None:
    """Write log lines from now on. `form` is `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # The server says itself when it begins and ends.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, root.level))


class _Lines(logging.Formatter):
    """What a line says, in order."""

    def facts(self, record: logging.LogRecord) -> dict[str, Any]:
        moment = datetime.fromtimestamp(record.created, UTC)
        facts: dict[str, Any] = {
            "at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            facts.update(fields)
        if record.exc_info:
            facts["error"] = self.formatException(record.exc_info)
        return facts


class JsonLines(_Lines):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        return _encoder.encode(self.facts(record)).decode()


class TextLines(_Lines):
    """`key=value` pairs; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        facts = self.facts(record)
        error = facts.pop("error", None)
        line = " ".join(
            [str(facts.pop("at")), *(f"{name}={_quoted(value)}" for name, value in facts.items())]
        )
        return f"{line}\n{error}" if error else line


def _quoted(value: Any) -> str:
    """The value, in quotes where it would not be one word."""
    text = str(value)
    is_word = text.isprintable() and not any(c in ' "=\\' for c in text) and text != ""
    return text if is_word else _encoder.encode(text).decode()
