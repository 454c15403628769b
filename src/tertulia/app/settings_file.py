"""Writing settings into the file of settings."""

import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tertulia.app.setting_sources import FILE, ConfigError
from tertulia.service.config import Config
from tertulia.store import file_modes


def place_of(config: Config, file: Path | None) -> Path:
    """The file of settings: the given one, or the one in the data directory."""
    return file or config.data_path / FILE


def add(file: Path, values: Mapping[str, str | int]) -> None:
    """Add settings, in place of those of the same names. It is made where there is none, readable
    by its owner alone; what else is in it stays as it is. It is there as before, or whole.

    ConfigError for values that cannot be written, OSError where the file cannot.
    """
    file_modes.directory(file.parent)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    text = before if not before or before.endswith("\n") else f"{before}\n"
    for name, value in values.items():
        line = f"{name} = {_written(name, value)}\n"
        # (A backslash has a meaning of its own there.)
        text, found = re.subn(rf"(?m)^{name}[ \t]*=.*\n", line.replace("\\", r"\\"), text)
        text += "" if found else line
    _require(text, {**tomllib.loads(before), **values}, file)
    mode = file.stat().st_mode & 0o777 if file.exists() else file_modes.FILE
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with open(new, "w", encoding="utf-8", opener=file_modes.opener) as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        new.chmod(mode)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _require(text: str, wanted: Mapping[str, Any], file: Path) -> None:
    """ConfigError where the text says anything else: TOML has more forms than lines."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        found = None
    if found != wanted:
        raise ConfigError(f"{file} is written in a way that is left alone: add to it by hand.")


def _written(name: str, value: str | int) -> str:
    """The value in TOML, whose texts are like JSON's but for what cannot be printed."""
    if isinstance(value, str) and not value.isprintable():
        raise ConfigError(f"Setting {name}: it has a character that cannot be printed.")
    return msgspec.json.encode(value).decode()
