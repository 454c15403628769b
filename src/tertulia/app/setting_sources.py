"""Where settings are given: flags, the environment and the files that it names, a file of TOML."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tertulia.service.config import Config

PREFIX: Final = "TERTULIA_"
"""Of the variables."""
_FROM_FILE: Final = "_FILE"
"""Ends the name of a variable that names a file in which the setting is."""
_CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
"""The variable by which systemd names the directory of a service's credentials."""
_CREDENTIAL: Final = "tertulia."
"""Begins the names of those that are settings."""
FILE: Final = "tertulia.toml"
_MOST_BYTES: Final = 64 * 1024
"""Of a file that has one setting in it."""
_OF_SERVICES: Final = re.compile(
    r"TERTULIA_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_ADDRESS_OF_SERVICE: Final = re.compile(r"(tcp|udp|sctp)://")


class ConfigError(Exception):
    """A setting is unknown or has an impossible value. `str(error)` is for the operator."""


class Given(Struct, frozen=True):
    """What a setting was given, and where."""

    value: Any
    source: str
    """In words that may stand behind `from`."""


def is_of_services(name: str, value: str) -> bool:
    """Whether Kubernetes sets that variable, for a Service whose name begins as ours does."""
    if _OF_SERVICES.fullmatch(name):
        return True
    is_address = name.startswith(PREFIX) and name.endswith("_PORT")
    return is_address and _ADDRESS_OF_SERVICE.match(value) is not None


def of_services(variables: Mapping[str, str]) -> list[str]:
    """The variables that are ignored, because `is_of_services`."""
    return sorted(name for name, value in variables.items() if is_of_services(name, value))


def from_flags(flags: Mapping[str, Any]) -> dict[str, Given]:
    """Those that are not None."""
    return {
        name: Given(value, f"--{name.replace('_', '-')}")
        for name, value in flags.items()
        if value is not None
    }


def from_environment(variables: Mapping[str, str]) -> dict[str, Given]:
    """By variables, by the files that variables name, and by credentials of systemd. ConfigError
    where something is unknown, cannot be read, or is given twice."""
    found: dict[str, Given] = {}
    unknown = []
    for variable, value in sorted(variables.items()):
        if not variable.startswith(PREFIX) or is_of_services(variable, value):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name in Config.__struct_fields__:
            _add(found, name, Given(value, variable))
        elif name.removesuffix(_FROM_FILE.lower()) in Config.__struct_fields__:
            text = _text_of(Path(value), f"{variable}: ")
            _add(found, name.removesuffix(_FROM_FILE.lower()), Given(text, f"{variable}, {value}"))
        else:
            unknown.append(variable)
    _require_known(unknown, "the environment")
    if directory := variables.get(_CREDENTIALS):
        for name, one in _from_credentials(Path(directory)).items():
            _add(found, name, one)
    return found


def _add(found: dict[str, Given], name: str, given: Given) -> None:
    if name in found:
        raise ConfigError(
            f"Setting {name} is set twice: by {found[name].source} and by {given.source}. Keep"
            " only one of them."
        )
    found[name] = given


def _from_credentials(directory: Path) -> dict[str, Given]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return {}  # They are another's: of whoever started this program, and not for its user.
    # The file of settings may be among them: `--config` names it.
    own = [name for name in names if name.startswith(_CREDENTIAL) and name != FILE]
    known = {name: name.removeprefix(_CREDENTIAL) for name in own}
    _require_known(
        [name for name in own if known[name] not in Config.__struct_fields__], str(directory)
    )
    return {
        known[name]: Given(_text_of(directory / name), f"the credential {name}") for name in own
    }


def _text_of(path: Path, why: str = "") -> str:
    """What is in the file, without the line's end."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) <= _MOST_BYTES:
            return content.decode().rstrip("\r\n")
    except OSError as error:
        raise ConfigError(f"{why}Can't read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{why}{path} isn't a text file.") from None
    raise ConfigError(
        f"{why}{path} has more than {_MOST_BYTES} bytes, which is too large for a setting."
    )


def from_file(path: Path) -> dict[str, Given]:
    """By a file of TOML. ConfigError where it cannot be read, or something in it is unknown."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Can't read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    _require_known(sorted(set(found) - set(Config.__struct_fields__)), str(path))
    return {name: Given(value, str(path)) for name, value in found.items()}


def _require_known(unknown: Iterable[str], where: str) -> None:
    if names := ", ".join(unknown):
        raise ConfigError(
            f"Unknown setting in {where}: {names}. `tertulia config` lists all settings."
        )
