"""Log lines: `key=value` text for people, or JSON for machines, on standard error.

A record's facts are in `extra={"fields": {...}}`. What people wrote and what they sign in with is
never among them.
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
    """Write log lines from now on. `form` is `text` or `json`; `worker` says in each line which of
    the server's workers wrote it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(worker) if form == "json" else TextLines(worker))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # No line says where in the program, by which thread or process it was written: looking that up
    # takes as long as all the rest.
    logging._srcfile = None  # the documented way
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # What would be written to standard error beside the lines.
    logging.captureWarnings(True)
    sys.excepthook = _log_end
    # The server says itself when it begins and ends.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, root.level))
    # It would write down every address that a message links and the server fetches.
    logging.getLogger("httpx").setLevel(max(logging.WARNING, root.level))
    # It would write down what those say who bring mails: addresses among it that open channels.
    logging.getLogger("mail.log").setLevel(max(logging.ERROR, root.level))
    # It says once more, of each connection that was lost, what its errors say.
    logging.getLogger("psycopg").setLevel(max(logging.ERROR, root.level))


def are_json() -> bool:
    """Whether lines are for machines, so that nothing else may stand between them."""
    return any(isinstance(one.formatter, JsonLines) for one in logging.getLogger().handlers)


def announce(text: str, form: str) -> None:
    """Print what an operator waits for, on standard output: as it is, or as a line of JSON."""
    if form == "json":
        record = logging.makeLogRecord(
            {"name": "tertulia.serving", "levelname": "INFO", "msg": text}
        )
        text = JsonLines().format(record)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _log_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log what ends the program, which nobody has caught."""
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("tertulia").critical(
        "the program stopped because of an error", exc_info=(kind, error, trace)
    )


class _Lines(logging.Formatter):
    """What a line says, in order."""

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
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        facts = self.facts(record)
        try:
            return _encoder.encode(facts).decode()
        except UnicodeEncodeError:
            told = {
                name: value if isinstance(value, int | float) else _text(value)
                for name, value in facts.items()
            }
            return _encoder.encode(told).decode()


class TextLines(_Lines):
    """`key=value` pairs; a traceback follows on lines of its own, each behind a bar: what somebody
    sent may be in it, and must not look like a line."""

    def format(self, record: logging.LogRecord) -> str:
        facts = self.facts(record)
        error = facts.pop("error", None)
        at = facts.pop("at")
        line = " ".join([at, *[f"{name}={_quoted(value)}" for name, value in facts.items()]])
        return "\n".join([line, *map(_behind_bar, error.splitlines())]) if error else line


@lru_cache(maxsize=1)
def _second(at: int) -> str:
    """The time to the second, formatted once for all lines of that second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _behind_bar(text: str) -> str:
    """A line of a traceback, which can neither begin a line of the log nor steer a terminal."""
    shown = (one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return "| " + "".join(shown)


def _text(value: Any) -> str:
    """The value as text that can be written down: halves of characters stand for bytes that are no
    text, such as others send and files are called."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _quoted(value: Any) -> str:
    """The value, in quotes where it would not be one word."""
    # Most are numbers and words, which are text already.
    if type(value) is int:
        return str(value)
    text = value if type(value) is str and value.isascii() else _text(value)
    if text.isalnum():
        return text
    if not text.isprintable():
        return json.dumps(text)  # In ASCII: some of it may steer a terminal, or look like a line.
    return text if _WORD.fullmatch(text) else _encoder.encode(text).decode()
