"""The available bots, from `zulip_bots` and packages that register with it, and their settings."""

import ast
import configparser
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct

from tertulia.model.errors import Refused

EVERY: Final = "all"
"""The word for all bots in the operator's setting."""
MAX_VALUE: Final = 1000
"""Longest value of a bot's setting, in characters."""
REGISTRY: Final = "zulip_bots.registry"
"""The entry point group of bots in other packages."""
_MACHINE: Final = "it opens files or programs on the server"
_MEMORY: Final = "it loses its games when its process ends, so run it separately"
NEVER: Final[Mapping[str, str]] = {
    **dict.fromkeys(("chessbot", "file_uploader", "witai"), _MACHINE),
    **dict.fromkeys(
        ("connect_four", "game_handler_bot", "game_of_fifteen", "merels", "tictactoe"), _MEMORY
    ),
}
"""Bots that a server doesn't run, with the reason."""
_WITHOUT: Final = frozenset({"github_detail"})
"""Bots that also work without their settings."""


class Program(Struct, frozen=True, kw_only=True):
    """A bot that can be run."""

    name: str
    module: str
    settings: Mapping[str, str]
    """The settings, each with an example."""
    settings_needed: bool


def is_installed() -> bool:
    return find_spec("zulip_bots") is not None


def offered(setting: str) -> Mapping[str, Program]:
    """Return the bots that the operator's setting names and that can be run, by name."""
    names = _names(setting)
    programs = runnable() if names else {}  # Most servers don't offer any.
    return programs if EVERY in names else {n: p for n, p in programs.items() if n in names}


def not_offered(setting: str) -> Mapping[str, str]:
    """Return the bots that the operator's setting names and that can't be run, with the reason.
    Slow: for startup only."""
    names = _names(setting)
    if not names:
        return {}
    if not is_installed():
        reason = "the extra `bots` isn't installed"
        return dict.fromkeys(names, reason)
    missing = "no such bot exists, or a package that it needs isn't installed"
    programs = runnable()
    return {
        name: NEVER.get(name, missing) for name in names if name != EVERY and name not in programs
    }


def require(setting: str, name: str, settings: Mapping[str, str]) -> Program:
    """Return the bot. Raises Refused if it isn't offered or can't work with these settings."""
    if not setting.strip():
        raise Refused(
            "Embedded bots are turned off on this server. Ask its operator to turn them on."
        )
    if not is_installed():
        raise Refused(
            "This server can't run embedded bots because the extra `bots` isn't installed. Ask"
            " its operator to install it."
        )
    program = offered(setting).get(name)
    if program is None:
        raise Refused(f"No embedded bot named '{name[:60]}' is available on this server.")
    if unknown := sorted(settings.keys() - program.settings.keys()):
        raise Refused(f"The bot {name} doesn't have a setting named '{unknown[0][:60]}'.")
    for key, value in settings.items():
        if len(value) > MAX_VALUE or "\0" in value:
            raise Refused(f"The setting {key} of the bot is too long or contains a null byte.")
    missing = sorted(key for key in program.settings if not settings.get(key, "").strip())
    if missing and (program.settings_needed or settings):
        raise Refused(f"The bot {name} needs the setting '{missing[0]}' (config_data).")
    return program


def _names(setting: str) -> list[str]:
    return sorted({name.strip() for name in setting.split(",")} - {""})


@cache
def runnable() -> Mapping[str, Program]:
    """Return all bots whose dependencies are installed, except `NEVER`. They're parsed, not
    imported."""
    spec = find_spec("zulip_bots")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    programs: dict[str, Program] = {}
    for place in places:
        for directory in sorted(Path(place, "bots").iterdir()):
            name, source = directory.name, directory / f"{directory.name}.py"
            if name not in NEVER and source.is_file() and _has_packages(source):
                programs[name] = Program(
                    name=name,
                    module=f"zulip_bots.bots.{name}.{name}",
                    settings=_example(directory / f"{name}.conf"),
                    settings_needed=name not in _WITHOUT,
                )
    return programs | (_registered() if places else {})


def _registered() -> dict[str, Program]:
    """Return the bots of other packages."""
    programs: dict[str, Program] = {}
    for entry in entry_points(group=REGISTRY):
        path = entry.module.replace(".", "/")
        beside = entry.dist.locate_file(path) if entry.dist is not None else path
        programs[entry.name] = Program(
            name=entry.name,
            module=entry.module,
            settings=_example(Path(str(beside)).parent / f"{entry.name}.conf"),
            settings_needed=True,
        )
    return programs


def _has_packages(source: Path) -> bool:
    """Return whether all packages that the module imports are installed."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module.partition(".")[0])
    return all(find_spec(name) is not None for name in modules)


def _example(file: Path) -> Mapping[str, str]:
    """Return the example settings in the file next to the bot."""
    parser = configparser.ConfigParser(interpolation=None)
    # Keep the spelling, because some names are in capitals. (The library documents this, but its
    # types are stricter.)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(file, encoding="utf-8")
    return {key: value for section in parser.sections() for key, value in parser.items(section)}
