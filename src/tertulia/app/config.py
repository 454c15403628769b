"""Reading the settings of the server: one TOML file, over which the environment and the flags
prevail."""

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tertulia.model.site_addresses import site
from tertulia.service.config import Config
from tertulia.store.s3_address import S3Address, s3_address

FILE = "tertulia.toml"
PREFIX = "TERTULIA_"


class ConfigError(Exception):
    """A setting is unknown or has an impossible value. `str(error)` is for the operator."""


def load(
    flags: Mapping[str, Any],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The settings: defaults, then the file, then `TERTULIA_…` variables, then the flags.

    The file is the given one, or `tertulia.toml` in the data directory where there is one. Flags
    that are None are not given. Raises ConfigError.
    """
    variables = os.environ if environment is None else environment
    from_environment = _from_environment(variables)
    given = {name: value for name, value in flags.items() if value is not None}
    if file is None:
        directory = given.get("data_dir") or from_environment.get("data_dir") or Config().data_dir
        candidate = Path(str(directory)) / FILE
        from_file = _from_file(candidate) if candidate.exists() else {}
    else:
        from_file = _from_file(file)
    values = {**from_file, **from_environment, **given}
    if type(workers := values.get("workers")) is int:  # In TOML, where a number is none in quotes.
        values["workers"] = str(workers)
    try:
        config = msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(_explained(error)) from None
    config = msgspec.structs.replace(
        config,
        external_url=_site(config.external_url),
        proxy_trusted=_networks("proxy_trusted", config.proxy_trusted),
        metrics_allowed=_networks("metrics_allowed", config.metrics_allowed),
    )
    if config.smtp_host and not config.external_url:
        raise ConfigError(
            "Setting smtp_host: needs external_url, the address that links in mails lead to."
        )
    _require_files(config, variables)
    return config


def _require_files(config: Config, environment: Mapping[str, str]) -> None:
    """ConfigError where the settings of files do not fit together."""
    places: list[S3Address | None] = []
    for name in ("files_url", "files_also_at"):
        try:
            places.append(s3_address(getattr(config, name)))
        except ValueError as error:
            raise ConfigError(f"Setting {name}: {error}.") from None
    if config.files_also_at and places[0] == places[1]:
        raise ConfigError("Setting files_also_at: it is the same place as files_url.")
    if bool(config.bigbluebutton_url) != bool(config.bigbluebutton_secret):
        raise ConfigError(
            "Setting bigbluebutton_url: needs bigbluebutton_secret, and the converse."
        )
    if bool(config.s3_access_key_id) != bool(config.s3_secret_access_key):
        raise ConfigError("Setting s3_access_key_id: needs s3_secret_access_key, and the converse.")
    if config.file_downloads != "redirect":
        return
    if not any(places):
        raise ConfigError("Setting file_downloads: redirect needs a bucket (files_url).")
    if not config.s3_secret_access_key and not environment.get("AWS_SECRET_ACCESS_KEY"):
        raise ConfigError(
            "Setting file_downloads: redirect signs addresses, and needs s3_access_key_id and its"
            " secret (or AWS_ACCESS_KEY_ID): the role of a machine signs none."
        )


def _site(text: str) -> str:
    """The address of a site, without a slash at its end. ConfigError for what is none."""
    if not text:
        return ""
    try:
        return site(text)
    except ValueError:
        raise ConfigError(
            f"Setting external_url: '{text}' is not the address of a site, like"
            " https://chat.example.com: http or https, a host, perhaps a port, and no path."
        ) from None


def _networks(name: str, text: str) -> str:
    """Addresses and networks, separated by commas. ConfigError for what is none."""
    given = [one.strip() for one in text.split(",") if one.strip()]
    for one in given:
        if one == "*":
            continue
        try:
            ipaddress.ip_network(one)
        except ValueError as error:
            raise ConfigError(
                f"Setting {name}: '{one}' is no address or network, like 10.0.0.5 or"
                f" 10.0.0.0/8 ({error})."
            ) from None
    return ",".join(given)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    unknown = sorted(set(found) - set(Config.__struct_fields__))
    if unknown:
        raise ConfigError(_unknown(unknown, str(path)))
    return found


def _from_environment(variables: Mapping[str, str]) -> dict[str, str]:
    found = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in variables.items()
        if name.startswith(PREFIX)
    }
    unknown = sorted(PREFIX + name.upper() for name in set(found) - set(Config.__struct_fields__))
    if unknown:
        raise ConfigError(_unknown(unknown, "the environment"))
    return found


def _unknown(names: list[str], where: str) -> str:
    return (
        f"Unknown setting in {where}: {', '.join(names)}. `tertulia config` lists what can be set."
    )


def _explained(error: msgspec.ValidationError) -> str:
    text, _, path = str(error).partition(" - at `$.")
    return f"Setting {path.rstrip('`')}: {text}." if path else f"{text}."
