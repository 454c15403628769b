"""Log lines."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tertulia.app import logs
from tertulia.app.logs import JsonLines, TextLines
from tests.cli.support import Place


def record(message: str, *arguments: Any, fields: dict[str, Any] | None = None) -> Any:
    made = logging.LogRecord("tertulia.x", logging.INFO, "", 0, message, arguments, None)
    made.created = 0.5
    if fields is not None:
        made.fields = fields
    return made


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("/api/v1/users/me", "/api/v1/users/me"),
        (12.5, "12.5"),
        ("two words", '"two words"'),
        ('a"b', '"a\\"b"'),
        ("a=b", '"a=b"'),
        ("", '""'),
        ("line\nbreak", '"line\\nbreak"'),
        ("\x1b[31m", '"\\u001b[31m"'),
        ("é \x9b31m\x7f", '"\\u00e9 \\u009b31m\\u007f"'),
        ("\x85\u2028\u202e", '"\\u0085\\u2028\\u202e"'),
        ("é è", '"é è"'),
        (b"b\xffs".decode(errors="surrogateescape"), '"b\\\\udcffs"'),
    ],
)
def test_value_cannot_break_out_of_its_field(value: Any, shown: str) -> None:
    line = TextLines().format(record("request", fields={"path": value}))
    assert line == (
        f"1970-01-01T00:00:00.500Z level=info logger=tertulia.x event=request path={shown}"
    )


def test_traceback_cannot_look_like_a_log_line() -> None:
    sent = "2026-03-01T08:15:00.123Z level=warning"
    made = record("request failed")
    try:
        raise ValueError(f"\n{sent}\r{sent}\x1b[2J\u2028{sent}\x85{sent}")
    except ValueError as error:
        made.exc_info = (type(error), error, error.__traceback__)
    first, *others = re.split("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", TextLines().format(made))
    assert first.endswith('event="request failed"')
    assert [line for line in others if sent in line] == [
        f"| {sent}",
        f"| {sent}\\x1b[2J",
        f"| {sent}",
        f"| {sent}",
    ]
    assert all(line.startswith("| ") and line.isprintable() for line in others)


def test_json_lines_have_the_same_fields() -> None:
    line = JsonLines().format(record("sent %d", 3, fields={"ms": 1.5}))
    assert json.loads(line) == {
        "at": "1970-01-01T00:00:00.500Z",
        "level": "info",
        "logger": "tertulia.x",
        "event": "sent 3",
        "ms": 1.5,
    }


def test_invalid_unicode_is_logged() -> None:
    """File names and data from other servers can have it."""
    name = b"b\xffs".decode(errors="surrogateescape")
    line = JsonLines().format(record("no %s", name, fields={"ms": 1.5, "reason": OSError(name)}))
    said = json.loads(line)
    assert (said["event"], said["ms"], said["reason"]) == ("no b\\udcffs", 1.5, "b\\udcffs")


def test_announcements_are_printed_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    logs.announce("ready at /tmp/100%d", "json")
    assert json.loads(capsys.readouterr().out)["event"] == "ready at /tmp/100%d"


def test_all_output_is_json(tmp_path: Path) -> None:
    """This includes the server, its supervisor, and fatal errors."""
    place = Place(tmp_path / "data")
    place.data_dir.mkdir(mode=0o700)
    (place.data_dir / "tertulia.toml").write_text('log_format = "json"\n')
    for flags in ((), ("--workers", "2")):
        with place.program("serve", "--port", "0", *flags) as process:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            assert said["event"].startswith("Tertulia is waiting at http://")
            assert "/setup?code=" in said["event"]
            process.terminate()
            rest, errors = process.communicate(timeout=60)
        assert not rest
        for line in errors.splitlines():
            assert json.loads(line)["at"]
    (place.data_dir / "tertulia.db").write_text("no database")
    with place.program("serve", "--port", "0") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert [json.loads(line)["level"] for line in errors.splitlines()] == ["error"]


def test_warnings_and_fatal_errors_are_log_lines(tmp_path: Path) -> None:
    code = (
        "import warnings; from tertulia.app import logs; logs.begin('info', 'json');"
        "warnings.warn('old'); 1 / 0"
    )
    source = str(Path(logs.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    warning, end = map(json.loads, done.stderr.splitlines())
    assert warning["logger"] == "py.warnings"
    assert "ZeroDivisionError" in end["error"]


def test_libraries_log_no_private_addresses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For example, linked addresses, and email addresses of channels."""
    root = logging.getLogger()
    libraries = [logging.getLogger(name) for name in ("httpx", "mail.log", "psycopg")]
    handlers, levels = root.handlers[:], [one.level for one in (root, *libraries)]
    try:
        logs.begin("info", "text")
        libraries[0].info("HTTP Request: GET https://example.com/secret")
        libraries[1].info("RCPT TO:<chat+secret@example.com>")
        libraries[1].warning("unrecognised: secret")
        libraries[2].warning("error ignored: secret")
        logging.getLogger("tertulia.x").info("hello")
    finally:
        root.handlers[:] = handlers
        for one, level in zip((root, *libraries), levels, strict=True):
            one.setLevel(level)
    written = capsys.readouterr().err
    assert "event=hello" in written
    assert "secret" not in written
