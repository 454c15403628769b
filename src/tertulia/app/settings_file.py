"""Writing settings into the file of settings."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tertulia.app.setting_sources import FILE, ConfigError
from tertulia.service.config import Config
from tertulia.store import file_modes


def place_of(config: Config, file: Path | None) -> Path:
    """The file of settings: the given one, or the one in the data directory."""
    return file or config.data_path / FILE


def add(file: Path, values: Mapping[str, str | int]) -> None:
    """Add settings that are not in it yet. It is made where there is none, readable by its owner
    alone; what is in it stays as it is. It is there as before, or whole.

    ConfigError for values that cannot be written, OSError where the file cannot.
    """
    lines = [f"{name} = {_written(name, value)}\n" for name, value in values.items()]
    file_modes.directory(file.parent)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if before and not before.endswith("\n"):
        before += "\n"
    mode = file.stat().st_mode & 0o777 if file.exists() else file_modes.FILE
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with open(new, "w", encoding="utf-8", opener=file_modes.opener) as opened:
            opened.write(before + "".join(lines))
            opened.flush()
            os.fsync(opened.fileno())
        new.chmod(mode)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _written(name: str, value: str | int) -> str:
    """The value in TOML, whose texts are like JSON's but for what cannot be printed."""
    if isinstance(value, str) and not value.isprintable():
        raise ConfigError(f"Setting {name}: it has a character that cannot be printed.")
    return msgspec.json.encode(value).decode()
