"""Settings: where they come from, and how they are shown."""

from pathlib import Path

import pytest
from msgspec.structs import fields

from tertulia.app.config import ConfigError, load
from tertulia.service.config import Config
from tests.cli.support import run


@pytest.mark.parametrize(
    ("file", "environment", "flag", "port"),
    [
        (None, None, None, 9991),
        (1, None, None, 1),
        (1, "2", None, 2),
        (1, "2", 3, 3),
        (None, "2", 3, 3),
        (1, None, 3, 3),
    ],
)
def test_flags_prevail_over_the_environment_over_the_file(
    tmp_path: Path, file: int | None, environment: str | None, flag: int | None, port: int
) -> None:
    if file is not None:
        (tmp_path / "tertulia.toml").write_text(f"port = {file}\n")
    variables = {} if environment is None else {"TERTULIA_PORT": environment}
    found = load({"data_dir": str(tmp_path), "port": flag}, environment=variables)
    assert found.port == port


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("colour = 1", "colour"),
        ("port = 'x'", "Setting port:"),
        ("port = 70000", "Setting port:"),
        ("log_format = 'xml'", "Setting log_format:"),
        ("port = ", "is not valid TOML"),
        ("log_retention_days = 1", "Setting log_retention_days:"),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "tertulia.toml").write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        load({"data_dir": str(tmp_path)}, environment={})


def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_COLOUR", "red")
    result = run("config")
    assert result.exit_code == 2
    assert "TERTULIA_COLOUR" in result.stderr


def test_every_setting_is_listed_with_its_variable_and_meaning() -> None:
    listed = run("config").stdout
    for field in fields(Config):
        assert f"{field.name}  " in listed
        assert f"TERTULIA_{field.name.upper()}\n" in listed


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://tertulia:hunter2@db.example.com:5432/chat",
        "postgresql://tertulia:a@hunter2@db.example.com/chat",
        "postgresql://db.example.com/chat?user=tertulia&password=hunter2&sslmode=require",
    ],
)
def test_passwords_are_hidden_where_settings_are_shown(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("TERTULIA_SECRET", "hunter2")
    shown = run("config", "--show", "--database-url", url).stdout
    assert "hunter2" not in shown
    assert "db.example.com" in shown
    assert 'secret = "********"' in shown


def test_what_is_shown_is_a_file_that_can_be_used(tmp_path: Path) -> None:
    file = tmp_path / "shown.toml"
    file.write_text(run("config", "--show", "--data-dir", 'a "b"\\c').stdout)
    assert load({}, file=file, environment={}) == Config(data_dir='a "b"\\c')


def test_every_command_has_an_example_in_its_help() -> None:
    commands = ("serve", "init", "create-user", "create-bot", "backup", "restore", "check")
    for command in (*commands, "config"):
        text = run(command, "--help").stdout
        assert f"tertulia {command} " in text
        for flag in ("--data-dir", "--database-url", "--config"):
            assert flag in text
    assert run("--version").stdout.startswith("Tertulia ")
