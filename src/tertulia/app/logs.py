"""Log lines on standard error: `key=value` text for people, or JSON for machines.

A record's fields are in `extra={"fields": {...}}`. They never contain messages or credentials.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(enc_hook=str)
_WORD = re.compile(r'[^ "=\\]+')


def begin(level: str, form: str, worker: int | None = None) -> None:
    """Start logging. `form` is the format, `text` or `json`; `worker` is added to each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(worker) if form == "json" else TextLines(worker))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # No line contains the source line, thread, or process, which take as long to look up as
    # everything else.
    logging._srcfile = None  # the documented way
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # Python's warnings would bypass the log on standard error.
    logging.captureWarnings(True)
    sys.excepthook = _log_end
    # The server logs its start and stop itself.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, root.level))
    # This library would log every URL in messages that the server fetches.
    logging.getLogger("httpx").setLevel(max(logging.WARNING, root.level))
    # This library would log data from mail clients, including addresses that post to channels.
    logging.getLogger("mail.log").setLevel(max(logging.ERROR, root.level))
    # This library would repeat each lost connection.
    logging.getLogger("psycopg").setLevel(max(logging.ERROR, root.level))


def are_json() -> bool:
    """Whether lines are JSON, so that nothing else may be printed between them."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers)


def announce(text: str, form: str) -> None:
    """Print a message for the operator on standard output, as text or as a line of JSON."""
    if form == "json":
        record = logging.makeLogRecord(
            {"name": "tertulia.serving", "levelname": "INFO", "msg": text}
        )
        text = JsonLines().format(record)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _log_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log the uncaught exception that ends the program."""
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("tertulia").critical(
        "the program stopped because of an error", exc_info=(kind, error, trace)
    )


class _Lines(logging.Formatter):
    """Turns records into fields, in order."""

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self._worker = worker

    def facts(self, record: logging.LogRecord) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "at": f"{_second(int(record.created))}.{int(record.created % 1 * 1000):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            facts.update(fields)
        if self._worker is not None:
            facts.setdefault("worker", self._worker)
        if record.exc_info:
            facts["error"] = self.formatException(record.exc_info)
        return facts


class JsonLines(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        facts = self.facts(record)
        try:
            return _encoder.encode(facts).decode()
        except UnicodeEncodeError:
            safe = {
                name: value if isinstance(value, int | float) else _text(value)
                for name, value in facts.items()
            }
            return _encoder.encode(safe).decode()


class TextLines(_Lines):
    """`key=value` pairs. A traceback follows on separate lines with a leading bar, because it may
    contain client data that looks like a log line."""

    def format(self, record: logging.LogRecord) -> str:
        facts = self.facts(record)
        error = facts.pop("error", None)
        at = facts.pop("at")
        line = " ".join([at, *[f"{name}={_quoted(value)}" for name, value in facts.items()]])
        return "\n".join([line, *map(_behind_bar, error.splitlines())]) if error else line


@lru_cache(maxsize=1)
def _second(at: int) -> str:
    """Return the time to the second, cached for all lines of that second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _behind_bar(text: str) -> str:
    """Return a line of a traceback that can neither look like a log line nor control a terminal."""
    shown = (
        name if name.isprintable() else name.encode("unicode_escape").decode() for name in text
    )
    return "| " + "".join(shown)


def _text(value: Any) -> str:
    """Return the value as text. Unpaired surrogates, which stand for bytes that aren't text, are
    escaped."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _quoted(value: Any) -> str:
    """Return the value, quoted if it isn't a single word."""
    # Most values are numbers and words.
    if type(value) is int:
        return str(value)
    text = value if type(value) is str and value.isascii() else _text(value)
    if text.isalnum():
        return text
    if not text.isprintable():
        return json.dumps(
            text
        )  # In ASCII, because other characters may control a terminal, or look like a line.
    return text if _WORD.fullmatch(text) else _encoder.encode(text).decode()
