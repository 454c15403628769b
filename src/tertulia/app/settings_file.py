"""Writing settings to the settings file."""

import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tertulia.app.config import FILE, ConfigError
from tertulia.service.config import Config
from tertulia.store import file_modes


def settings_path(config: Config, file: Path | None) -> Path:
    """Return the path of the settings file: the given one, or the one in the data directory."""
    return file or config.data_path / FILE


def put(file: Path, values: Mapping[str, str | int]) -> None:
    """Set values in the settings file, atomically. New ones are appended, and the rest doesn't
    change. A new file is readable only by its owner. Raise ConfigError for values that can't be
    written, and OSError if the file can't be written."""
    file_modes.directory(file.parent)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    after = _with(before, values)
    try:
        is_right = tomllib.loads(after) == {**tomllib.loads(before), **values}
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise ConfigError(f"Can't write {', '.join(values)} to {file}. Edit the file instead.")
    mode = file.stat().st_mode & 0o777 if file.exists() else file_modes.FILE
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with open(new, "w", encoding="utf-8", opener=file_modes.opener) as opened:
            opened.write(after)
            opened.flush()
            os.fsync(opened.fileno())
        new.chmod(mode)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _with(text: str, values: Mapping[str, str | int]) -> str:
    """Return the file's text with these settings, one line each."""
    for name, value in values.items():
        line = f"{name} = {_written(name, value)}\n"
        there = re.search(rf"^[ \t]*{name}[ \t]*=.*(\n|\Z)", text, re.MULTILINE)
        if there is not None:
            text = text[: there.start()] + line + text[there.end() :]
        else:
            text = f"{text}\n{line}" if text and not text.endswith("\n") else text + line
    return text


def _written(name: str, value: str | int) -> str:
    """Return the value in TOML, where strings are as in JSON, except for unprintable characters."""
    if isinstance(value, str) and not value.isprintable():
        raise ConfigError(f"Setting {name}: it contains a character that can't be printed.")
    return msgspec.json.encode(value).decode()
