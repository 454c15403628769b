"""Declaring ways to sign in."""

import json
from pathlib import Path
from typing import Any

import pytest

from tertulia.app.config import ConfigError, load
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.service.provider_methods import GithubMethod, GoogleMethod, OidcMethod

TOML = """
external_url = "https://chat.example.com"

[[sign_in]]
name = "company"
kind = "oidc"
title = "Company account"
issuer = "https://id.example.com/realms/staff"
client_id = "tertulia"
client_secret_file = "{secret}"
accounts = "match"
roles = {{ administrator = "chat-admins" }}
groups = {{ baristas = "staff-bar" }}

[[sign_in]]
name = "github"
kind = "github"
client_id = "a"
client_secret = "b"
organizations = ["acme"]
"""

COMPANY: dict[str, Any] = {
    "name": "company",
    "kind": "oidc",
    "issuer": "https://id.example.com",
    "client_id": "tertulia",
}


def from_json(*methods: object, url: str = "https://chat.example.com") -> Config:
    variables = {"TERTULIA_SIGN_IN": json.dumps(methods), "TERTULIA_EXTERNAL_URL": url}
    return load({}, environment=variables)


def test_methods_are_read_from_the_settings_file(tmp_path: Path) -> None:
    secret, file = tmp_path / "secret", tmp_path / "tertulia.toml"
    secret.write_text("a secret\n")
    file.write_text(TOML.format(secret=secret))
    company, github = load({}, file=file, environment={}).sign_in
    assert isinstance(company, OidcMethod)
    assert isinstance(github, GithubMethod)
    assert (company.label, company.path, company.secret()) == (
        "Company account",
        "/sign-in/company",
        "a secret",
    )
    assert company.rules.roles == {Role.ADMINISTRATOR: "chat-admins"}
    assert company.rules.groups == {"baristas": "staff-bar"}
    assert not company.rules.creates
    assert (github.label, github.is_public) == ("GitHub", False)


def test_methods_are_read_from_the_environment() -> None:
    (company,) = from_json(COMPANY).sign_in
    assert company.label == "company"
    (google,) = from_json({"name": "g", "kind": "google", "client_id": "a"}).sign_in
    assert isinstance(google, GoogleMethod)
    assert google.is_public
    assert load({}, environment={"TERTULIA_SIGN_IN": ""}).sign_in == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "oauth"}, "sign_in (company): kind must be oidc, google, gitlab, github,"),
        ({"kind": None}, "sign_in (company): kind must be"),
        ({"issuer": "id.example.com"}, "sign_in (company): issuer must be an http:// or https://"),
        ({"client_id": ""}, "sign_in (company): client_id can't be empty"),
        ({"client": "x"}, "sign_in (company): client isn't a setting of kind oidc, which has name"),
        ({"name": "Company"}, "sign_in (Company): name must be up to 30 characters of a-z"),
        ({"name": ""}, "sign_in (table 1): name must be"),
        ({"accounts": "maybe"}, "sign_in (company): accounts must be create or match"),
        ({"roles": {"admin": "x"}}, "sign_in (company): roles: its keys must be owner,"),
        ({"groups": {"bar": 1}}, "sign_in (company): groups: expected `str`, got `int`"),
        ({"client_secret_file": "/none"}, "sign_in (company): client_secret_file: can't read"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_key(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        from_json(COMPANY | wrong)
    assert str(error.value).startswith(f"Setting {said}")
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"roles": {"guest": "x"}}, "roles: kind google doesn't say who is in which group"),
        ({"groups": {"bar": "x"}}, "groups: kind google doesn't say who is in which group"),
        ({"single_logout": True}, "single_logout: kind google has no sign-out at the provider"),
    ],
)
def test_what_a_provider_cannot_do_is_not_ignored(setting: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        from_json({"name": "g", "kind": "google", "client_id": "a"} | setting)


def test_methods_need_different_names_and_the_servers_address() -> None:
    with pytest.raises(ConfigError, match="two methods have the name 'company'"):
        from_json(COMPANY, COMPANY)
    with pytest.raises(ConfigError, match="external_url is required"):
        from_json(COMPANY, url="")
    missing = {name: value for name, value in COMPANY.items() if name != "issuer"}
    with pytest.raises(ConfigError, match=r"sign_in \(company\): issuer is missing\."):
        from_json(missing)
    for text in ("[{", '{"name": "company"}', "[1]"):
        with pytest.raises(ConfigError, match="Setting sign_in: it"):
            load({}, environment={"TERTULIA_SIGN_IN": text})
