"""Reading the settings of the server: one TOML file, over which the environment and the flags
prevail."""

import os
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from tertulia.app.setting_sources import (
    FILE,
    PREFIX,
    ConfigError,
    Given,
    from_environment,
    from_file,
    from_flags,
)
from tertulia.model.site_addresses import site
from tertulia.outbound.addresses import networks
from tertulia.service.config import S3, SECRETS, Config, without_password
from tertulia.store import encrypted_backups
from tertulia.store.s3_address import S3Address, s3_address

__all__ = ["FILE", "PREFIX", "ConfigError", "expected", "load"]

_SHOWN: Final = 100
"""Characters of a wrong value that are said."""


def load(
    flags: Mapping[str, Any],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The settings: defaults, then the file, then the environment, then the flags.

    The file is the given one, or `tertulia.toml` in the data directory where there is one. The
    environment gives them by `TERTULIA_…`, by files that `TERTULIA_…_FILE` names, and by
    credentials of systemd. Flags that are None are not given. Raises ConfigError.
    """
    variables = os.environ if environment is None else environment
    given = {**from_environment(variables), **from_flags(flags)}
    directory = given.get("data_dir", _default("data_dir"))
    if file is None:
        candidate = Path(str(directory.value)) / FILE
        in_file = from_file(candidate) if candidate.is_file() else {}
    else:
        in_file = from_file(file)
    found = _Found({**in_file, **given})
    config = found.converted()
    if config.data_path.exists() and not config.data_path.is_dir():
        raise found.wrong("data_dir", "is a file, not a directory")
    config = msgspec.structs.replace(
        config,
        external_url=_site(found, config.external_url),
        proxy_trusted=_networks(found, "proxy_trusted", config.proxy_trusted),
        outgoing_webhook_networks=_networks(
            found, "outgoing_webhook_networks", config.outgoing_webhook_networks
        ),
        web_push_networks=_networks(found, "web_push_networks", config.web_push_networks),
        metrics_allowed=_networks(found, "metrics_allowed", config.metrics_allowed),
    )
    if config.bigbluebutton_url and not _is_server(config.bigbluebutton_url):
        raise found.wrong(
            "bigbluebutton_url",
            "isn't the URL of a server, such as https://calls.example.com/bigbluebutton/",
        )
    if config.smtp_host and not config.external_url:
        raise ConfigError(
            "Setting smtp_host: external_url is required, too, because links in emails lead there."
        )
    if config.tls_key and not config.tls_cert:
        raise ConfigError(
            "Setting tls_key: tls_cert, the certificate that the key belongs to, is required, too."
        )
    _require_mail_in(found, config)
    _require_files(config, variables)
    return config


def _require_mail_in(found: "_Found", config: Config) -> None:
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
        raise found.wrong("mail_in_listen", "isn't an address such as lmtp://127.0.0.1:2424")


class _Found:
    """The settings as they were given."""

    def __init__(self, given: Mapping[str, Given]) -> None:
        self._given = given

    def converted(self) -> Config:
        """As what they are. ConfigError where one is not."""
        values = {name: one.value for name, one in self._given.items()}
        if type(workers := values.get("workers")) is int:  # In TOML: a number is none in quotes.
            values["workers"] = str(workers)
        try:
            return msgspec.convert(values, Config, strict=False)
        except msgspec.ValidationError as error:
            name = str(error).partition(" - at `$.")[2].rstrip("`")
            if name not in self._given:
                raise ConfigError(f"{error}.") from None
            raise self.wrong(name, f"must be {expected(name)}") from None

    def wrong(self, name: str, why: str) -> ConfigError:
        """The error that says which value is wrong, where it is from, and why. `why` goes on where
        the value ends."""
        given = self._given.get(name) or _default(name)
        shown = f"the value from {given.source}" if name in SECRETS else _shown(given)
        return ConfigError(f"Setting {name}: {shown} {why}.")


def _default(name: str) -> Given:
    return Given(getattr(Config(), name), "the defaults")


def _shown(given: Given) -> str:
    text = str(given.value).lower() if isinstance(given.value, bool) else str(given.value)
    text = without_password(text)
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return f"'{text}' from {given.source}"


def expected(name: str) -> str:
    """What a setting must be, in words."""
    kind, meta, *_ = typing.get_args(typing.get_type_hints(Config, include_extras=True)[name])
    if kind is bool:
        return "true or false"
    if kind is int:
        return f"a number from {meta.ge} to {meta.le}"
    if meta.extra:
        return str(meta.extra["expected"])
    if not meta.pattern:
        return "text"
    *words, last = meta.pattern.strip("^$()").split("|")
    return f"{', '.join(words)}{',' if words[1:] else ''} or {last}"


def _require_files(config: Config, environment: Mapping[str, str]) -> None:
    """ConfigError where the settings of files do not fit together."""
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
            found = encrypted_backups.recipients(config.backup_recipients)
        except ValueError as error:
            raise ConfigError(f"Setting backup_recipients: {error}.") from None
        if not found:
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


def _site(found: _Found, text: str) -> str:
    """The address of a site, without a slash at its end. ConfigError for what is none."""
    if not text:
        return ""
    try:
        return site(text)
    except ValueError:
        raise found.wrong(
            "external_url",
            "isn't the URL of a site, such as https://chat.example.com: http or https, a host,"
            " an optional port, and no path",
        ) from None


def _is_server(url: str) -> bool:
    """Whether the address has a host, and a port that there can be if it has one."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _networks(found: _Found, name: str, text: str) -> str:
    """Addresses and networks, separated by commas. ConfigError for what is none."""
    listed = [one.strip() for one in text.split(",") if one.strip()]
    for one in listed:
        try:
            networks(one)
        except ValueError as error:
            raise found.wrong(
                name,
                f"is invalid: '{one}' isn't an address or network such as 10.0.0.5 or 10.0.0.0/8"
                f" ({error})",
            ) from None
    return ",".join(listed)
