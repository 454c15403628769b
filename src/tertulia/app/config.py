"""Reading the server's settings from a TOML file, the environment, and flags."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from tertulia.model.site_addresses import site
from tertulia.outbound.addresses import networks
from tertulia.service.config import S3, SECRETS, Config, declared_server_settings, without_password
from tertulia.service.sign_in_methods import SignInMethod
from tertulia.store import backups as encrypted_backups
from tertulia.store.s3_addresses import S3Address, s3_address

PREFIX: Final = "TERTULIA_"
"""The prefix of environment variables."""
_FROM_FILE: Final = "_FILE"
"""The suffix of variables that name a file with the setting's value."""
_CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
"""The variable with the directory of a systemd service's credentials."""
_CREDENTIAL: Final = "tertulia."
"""The prefix of credentials that are settings."""
FILE: Final = "tertulia.toml"
_MOST_BYTES: Final = 64 * 1024
"""The most bytes of a file with one setting."""
_OF_SERVICES: Final = re.compile(
    r"TERTULIA_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_ADDRESS_OF_SERVICE: Final = re.compile(r"(tcp|udp|sctp)://")


class ConfigError(Exception):
    """A setting is unknown or has an invalid value. `str(error)` is for the operator."""


class ConfigValue(Struct, frozen=True):
    """A setting's value and its source."""

    value: Any
    source: str
    """A description that can follow `from`."""


def is_of_services(name: str, value: str) -> bool:
    """Whether Kubernetes sets the variable, for a Service whose name begins with Tertulia's
    prefix."""
    if _OF_SERVICES.fullmatch(name):
        return True
    is_address = name.startswith(PREFIX) and name.endswith("_PORT")
    return is_address and _ADDRESS_OF_SERVICE.match(value) is not None


def of_services(variables: Mapping[str, str]) -> list[str]:
    """Return the variables that are ignored because of `is_of_services`."""
    return sorted(name for name, value in variables.items() if is_of_services(name, value))


def from_flags(flags: Mapping[str, Any]) -> dict[str, ConfigValue]:
    """Return the flags that aren't None."""
    return {
        name: ConfigValue(value, f"--{name.replace('_', '-')}")
        for name, value in flags.items()
        if value is not None
    }


def from_environment(variables: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return the settings from variables, from files that variables name, and from systemd
    credentials. Raise ConfigError if one is unknown, unreadable, or set twice."""
    values: dict[str, ConfigValue] = {}
    unknown = []
    for variable, value in sorted(variables.items()):
        if not variable.startswith(PREFIX) or is_of_services(variable, value):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name in Config.__struct_fields__:
            _add(values, name, ConfigValue(value, variable))
        elif name.removesuffix(_FROM_FILE.lower()) in Config.__struct_fields__:
            text = _text_of(Path(value), f"{variable}: ")
            _add(
                values,
                name.removesuffix(_FROM_FILE.lower()),
                ConfigValue(text, f"{variable}, {value}"),
            )
        else:
            unknown.append(variable)
    _require_known(unknown, "the environment")
    if directory := variables.get(_CREDENTIALS):
        for name, item in _from_credentials(Path(directory)).items():
            _add(values, name, item)
    return values


def _add(values: dict[str, ConfigValue], name: str, given: ConfigValue) -> None:
    if name in values:
        raise ConfigError(
            f"Setting {name} is set twice: by {values[name].source} and by {given.source}. Keep"
            " only one of them."
        )
    values[name] = given


def _from_credentials(directory: Path) -> dict[str, ConfigValue]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return {}  # They belong to the parent process.
    # The settings file may be a credential, too: `--config` names it.
    credentials = [name for name in names if name.startswith(_CREDENTIAL) and name != FILE]
    known = {name: name.removeprefix(_CREDENTIAL) for name in credentials}
    _require_known(
        [name for name in credentials if known[name] not in Config.__struct_fields__],
        str(directory),
    )
    return {
        known[name]: ConfigValue(_text_of(directory / name), f"the credential {name}")
        for name in credentials
    }


def _text_of(path: Path, why: str = "") -> str:
    """Return the file's content without the line end."""
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


def from_file(path: Path) -> dict[str, ConfigValue]:
    """Return the settings from a TOML file. Raise ConfigError if it is unreadable or has unknown
    settings."""
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Can't read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    _require_known(sorted(set(parsed) - set(Config.__struct_fields__)), str(path))
    return {name: ConfigValue(value, str(path)) for name, value in parsed.items()}


def _require_known(unknown: Iterable[str], where: str) -> None:
    if names := ", ".join(unknown):
        raise ConfigError(
            f"Unknown setting in {where}: {names}. `tertulia config` lists all settings."
        )


__all__ = ["FILE", "PREFIX", "ConfigError", "expected", "ignored_file", "load"]

_SHOWN: Final = 100
"""The length, in characters, to which an invalid value is cut."""


def load(
    flags: Mapping[str, Any],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Return the settings: defaults, overridden by the file, the environment, and the flags.

    The file is the given one or, if it exists, `tertulia.toml` in the data directory. The
    environment sets them with `TERTULIA_…`, with files that `TERTULIA_…_FILE` names, and with
    systemd credentials. Flags that are None are ignored. Raise ConfigError.
    """
    variables = os.environ if environment is None else environment
    given = {**from_environment(variables), **from_flags(flags)}
    directory = given.get("data_dir", _default("data_dir"))
    if file is None:
        candidate = Path(str(directory.value)) / FILE
        in_file = from_file(candidate) if candidate.is_file() else {}
    else:
        in_file = from_file(file)
    values = _Found({**in_file, **given})
    config = values.converted()
    if config.data_path.exists() and not config.data_path.is_dir():
        raise values.wrong("data_dir", "is a file, not a directory")
    config = msgspec.structs.replace(
        config,
        external_url=_site(values, config.external_url),
        proxy_trusted=_networks(values, "proxy_trusted", config.proxy_trusted),
        outgoing_webhook_networks=_networks(
            values, "outgoing_webhook_networks", config.outgoing_webhook_networks
        ),
        web_push_networks=_networks(values, "web_push_networks", config.web_push_networks),
        metrics_allowed=_networks(values, "metrics_allowed", config.metrics_allowed),
    )
    if config.bigbluebutton_url and not _is_server(config.bigbluebutton_url):
        raise values.wrong(
            "bigbluebutton_url",
            "isn't the URL of a server, such as https://calls.example.com/bigbluebutton/",
        )
    if config.moving_from_url and not _is_server(config.moving_from_url):
        raise values.wrong(
            "moving_from_url", "isn't the URL of a server, such as https://old.example.com"
        )
    if config.smtp_host and not config.external_url:
        raise ConfigError(
            "Setting smtp_host: external_url is required, too, because links in emails lead there."
        )
    if not config.external_url and any(method.NEEDS_URL for method in config.sign_in):
        raise ConfigError(
            "Setting sign_in: external_url is required, too, because providers send people back to"
            " it."
        )
    if config.scim_method and config.sign_in_method(config.scim_method) is None:
        raise ConfigError(
            f"Setting scim_method: sign_in has no method with the name '{config.scim_method}'."
        )
    if any(method.kind == "header" for method in config.sign_in):
        trusted = config.proxy_trusted.replace(" ", "").split(",")
        if any(text in {"", "*"} or text.endswith("/0") for text in trusted):
            raise ConfigError(
                "Setting proxy_trusted: for a sign-in method of kind header, it must list the"
                " addresses of your reverse proxies, because anyone there can sign in as anyone."
            )
    if config.tls_key and not config.tls_cert:
        raise ConfigError(
            "Setting tls_key: tls_cert, the certificate that the key belongs to, is required, too."
        )
    _require_mail_in(values, config)
    _require_files(config, variables)
    return config


def ignored_file(config: Config, file: Path | None) -> Path | None:
    """Return the settings file of the data directory if it isn't read because `file` is given."""
    candidate = config.data_path / FILE
    if file is None or not candidate.is_file() or candidate.resolve() == file.resolve():
        return None
    return candidate


def _require_mail_in(values: "_Found", config: Config) -> None:
    if bool(config.mail_in_pattern) != bool(config.mail_in_listen):
        given, other = (
            ("mail_in_pattern", "mail_in_listen")
            if config.mail_in_pattern
            else ("mail_in_listen", "mail_in_pattern")
        )
        raise ConfigError(f"Setting {given}: {other} is required, too.")
    if not config.mail_in_listen:
        return
    place = urlsplit(config.mail_in_listen)
    try:
        is_right = place.scheme in {"lmtp", "smtp"} and place.hostname and place.port
    except ValueError:
        is_right = False
    if not is_right or place.path or place.query or place.username:
        raise values.wrong("mail_in_listen", "isn't an address such as lmtp://127.0.0.1:2424")


def _sign_in_methods(given: Any) -> tuple[SignInMethod, ...]:
    """Return the methods that are declared. Raise ValueError."""
    if not given:
        return ()
    from tertulia.app.sign_in_tables import methods_from  # Only if used.

    return methods_from(given)


class _Found:
    """The settings as given, before conversion."""

    def __init__(self, given: Mapping[str, ConfigValue]) -> None:
        self._given = given

    def converted(self) -> Config:
        """Return the settings converted to their types. Raise ConfigError."""
        values = {name: value.value for name, value in self._given.items()}
        if (
            type(workers := values.get("workers")) is int
        ):  # In TOML, a quoted number isn't a number.
            values["workers"] = str(workers)
        try:
            methods = _sign_in_methods(values.pop("sign_in", None))
        except ValueError as error:
            raise ConfigError(f"Setting {error}.") from None
        try:
            config = msgspec.convert(values, Config, strict=False)
            return msgspec.structs.replace(config, sign_in=methods)
        except msgspec.ValidationError as error:
            name = str(error).partition(" - at `$.")[2].rstrip("`")
            if name not in self._given:
                raise ConfigError(f"{error}.") from None
            raise self.wrong(name, f"must be {expected(name)}") from None

    def wrong(self, name: str, why: str) -> ConfigError:
        """Return an error with the setting's value and source. `why` completes the sentence."""
        given = self._given.get(name) or _default(name)
        shown = f"the value from {given.source}" if name in SECRETS else _shown(given)
        return ConfigError(f"Setting {name}: {shown} {why}.")


def _default(name: str) -> ConfigValue:
    return ConfigValue(getattr(Config(), name), "the defaults")


def _shown(given: ConfigValue) -> str:
    text = str(given.value).lower() if isinstance(given.value, bool) else str(given.value)
    text = without_password(text)
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return f"'{text}' from {given.source}"


def expected(name: str) -> str:
    """Return what the setting accepts, in words."""
    declared = declared_server_settings(Config)[name]
    meta = declared.limits
    if declared.type is bool:
        return "true or false"
    if declared.type is int:
        return f"a number from {meta.ge} to {meta.le}"
    if meta.extra:
        return str(meta.extra["expected"])
    if not meta.pattern:
        return "text"
    *words, last = meta.pattern.strip("^$()").split("|")
    return f"{', '.join(words)}{',' if words[1:] else ''} or {last}"


def _require_files(config: Config, environment: Mapping[str, str]) -> None:
    """Raise ConfigError if the settings about files contradict each other."""
    if config.backup_to.startswith(S3):
        try:
            backups = s3_address(config.backup_to)
        except ValueError as error:
            raise ConfigError(f"Setting backup_to: {error}.") from None
        if backups == s3_address(config.files_url):
            raise ConfigError("Setting backup_to: it must be a different location than files_url.")
    elif config.backup_to and Path(config.backup_to).resolve() == config.files_path.resolve():
        raise ConfigError("Setting backup_to: it can't be the directory of uploaded files.")
    if config.backup_recipients:
        try:
            results = encrypted_backups.age_recipients(config.backup_recipients)
        except ValueError as error:
            raise ConfigError(f"Setting backup_recipients: {error}.") from None
        if not results:
            raise ConfigError("Setting backup_recipients: it doesn't contain a recipient.")
    places: list[S3Address | None] = []
    for name in ("files_url", "files_also_at"):
        try:
            places.append(s3_address(getattr(config, name)))
        except ValueError as error:
            raise ConfigError(f"Setting {name}: {error}.") from None
    if config.files_also_at and places[0] == places[1]:
        raise ConfigError("Setting files_also_at: it must be a different location than files_url.")
    if bool(config.bigbluebutton_url) != bool(config.bigbluebutton_secret):
        raise ConfigError(
            "Setting bigbluebutton_url: set bigbluebutton_url and bigbluebutton_secret together."
        )
    if bool(config.s3_access_key_id) != bool(config.s3_secret_access_key):
        raise ConfigError(
            "Setting s3_access_key_id: set s3_access_key_id and s3_secret_access_key together."
        )
    if config.file_downloads != "redirect":
        return
    if not any(places):
        raise ConfigError("Setting file_downloads: redirect requires a bucket (files_url).")
    if not config.s3_secret_access_key and not environment.get("AWS_SECRET_ACCESS_KEY"):
        raise ConfigError(
            "Setting file_downloads: redirect requires s3_access_key_id and"
            " s3_secret_access_key (or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), because"
            " the role of a machine can't sign URLs."
        )


def _site(values: _Found, text: str) -> str:
    """Return the site's URL without a trailing slash. Raise ConfigError."""
    if not text:
        return ""
    try:
        return site(text)
    except ValueError:
        raise values.wrong(
            "external_url",
            "isn't the URL of a site, such as https://chat.example.com: http or https, a host,"
            " an optional port, and no path",
        ) from None


def _is_server(url: str) -> bool:
    """Return whether the URL has a host and, if any, a valid port."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _networks(values: _Found, name: str, text: str) -> str:
    """Return addresses and networks separated by commas. Raise ConfigError."""
    listed = [name.strip() for name in text.split(",") if name.strip()]
    for value in listed:
        try:
            networks(value)
        except ValueError as error:
            raise values.wrong(
                name,
                f"is invalid: '{value}' isn't an address or network such as 10.0.0.5 or 10.0.0.0/8"
                f" ({error})",
            ) from None
    return ",".join(listed)
