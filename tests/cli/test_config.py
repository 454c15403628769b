"""Server settings: their sources, and `tertulia config`."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from tertulia.app.config import ConfigError, load, of_services
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
def test_flags_override_the_environment_and_the_file(
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
def test_invalid_settings_file_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "tertulia.toml").write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        load({"data_dir": str(tmp_path)}, environment={})


def test_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_COLOUR", "red")
    result = run("config")
    assert result.exit_code == 2
    assert "TERTULIA_COLOUR" in result.stderr


@pytest.mark.parametrize(
    ("environment", "flags", "said"),
    [
        (
            {"TERTULIA_PORT": "x"},
            {},
            "port: 'x' from TERTULIA_PORT must be a number from 0 to 65535.",
        ),
        ({}, {"port": 70000}, "port: '70000' from --port must be a number from 0 to 65535."),
        (
            {"TERTULIA_SMTP_SECURITY": "x"},
            {},
            "from TERTULIA_SMTP_SECURITY must be starttls, tls, or none.",
        ),
        (
            {"TERTULIA_JWT_SECRET": "short"},
            {},
            "from TERTULIA_JWT_SECRET must be empty or at least 32 characters long.",
        ),
        (
            {"TERTULIA_SECRET": "short"},
            {},
            "secret: the value from TERTULIA_SECRET must be empty or at least 32 random characters",
        ),
        (
            {"TERTULIA_MAIL_FROM": "Chat"},
            {},
            "mail_from: 'Chat' from TERTULIA_MAIL_FROM must be an email address, such as",
        ),
        ({"TERTULIA_DEV": "perhaps"}, {}, "'perhaps' from TERTULIA_DEV must be true or false."),
        (
            {"TERTULIA_LOG_FORMAT": "xml"},
            {},
            "from TERTULIA_LOG_FORMAT must be text or json.",
        ),
        ({"TERTULIA_LOG_LEVEL": "x" * 999}, {}, f"'{'x' * 100}…' from TERTULIA_LOG_LEVEL"),
        ({"TERTULIA_SMTP_PORT": "tcp:/x"}, {}, "smtp_port: 'tcp:/x' from TERTULIA_SMTP_PORT"),
        (
            {"TERTULIA_EXTERNAL_URL": "https://ann:hunter2@x/y"},
            {},
            "'https://ann:********@x/y' from TERTULIA_EXTERNAL_URL isn't the URL of a site",
        ),
        ({"TERTULIA_PROXY_TRUSTED": "nginx"}, {}, "'nginx' from TERTULIA_PROXY_TRUSTED is invalid"),
        (
            {"TERTULIA_BIGBLUEBUTTON_URL": "https://x:99999/"},
            {},
            "'https://x:99999/' from TERTULIA_BIGBLUEBUTTON_URL isn't the URL of a server",
        ),
        ({}, {"data_dir": __file__}, f"data_dir: '{__file__}' from --data-dir is a file"),
    ],
)
def test_invalid_value_is_reported_with_its_source(
    environment: dict[str, str], flags: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as told:
        load(flags, environment=environment)
    assert said in str(told.value)
    assert str(told.value).startswith("Setting ")


def test_default_data_directory_can_be_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / Config().data_dir).touch()
    with pytest.raises(ConfigError, match=r"data_dir: .* from the defaults is a file"):
        load({}, environment={})


def test_invalid_value_in_a_file_is_reported_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "tertulia.toml"
    file.write_text("dev = 7\nsecret = 9.5\n")
    with pytest.raises(ConfigError) as told:
        load({}, file=file, environment={})
    assert f"'7' from {file}" in str(told.value)
    file.write_text("smtp_password = 123456\n")
    with pytest.raises(ConfigError, match=r"the value from .*tertulia\.toml must be text") as told:
        load({}, file=file, environment={})
    assert "123456" not in str(told.value)


SERVICE = {
    "TERTULIA_SERVICE_HOST": "10.0.0.1",
    "TERTULIA_SERVICE_PORT": "80",
    "TERTULIA_SERVICE_PORT_HTTP": "80",
    "TERTULIA_PORT": "tcp://10.0.0.1:80",
    "TERTULIA_PORT_80_TCP": "tcp://10.0.0.1:80",
    "TERTULIA_PORT_80_TCP_PROTO": "tcp",
    "TERTULIA_PORT_80_TCP_PORT": "80",
    "TERTULIA_PORT_80_TCP_ADDR": "10.0.0.1",
    # A variable of another Service, named tertulia-smtp.
    "TERTULIA_SMTP_SERVICE_HOST": "10.0.0.2",
    "TERTULIA_SMTP_PORT": "udp://10.0.0.2:25",
    "TERTULIA_SMTP_PORT_25_UDP_ADDR": "10.0.0.2",
}


def test_kubernetes_service_variables_are_ignored() -> None:
    assert load({}, environment=SERVICE) == Config()
    assert of_services({**SERVICE, "PATH": "/bin", "TERTULIA_HOST": "::"}) == sorted(SERVICE)
    with pytest.raises(ConfigError, match="TERTULIA_SERVICEPORT, TERTULIA_SERVICE_HOSTS"):
        load({}, environment={"TERTULIA_SERVICE_HOSTS": "x", "TERTULIA_SERVICEPORT": "y"})


def test_settings_come_from_files_and_credentials(tmp_path: Path) -> None:
    secret, port = tmp_path / "secret", tmp_path / "port"
    secret.write_text("hunter2, which has a space at the end \n")
    port.write_text("8000\r\n")
    (credentials := tmp_path / "credentials").mkdir()
    (credentials / "tertulia.smtp_password").write_text("hunter3")
    (credentials / "another").write_text("not ours")
    environment = {
        "TERTULIA_SECRET_FILE": str(secret),
        "TERTULIA_PORT_FILE": str(port),
        "CREDENTIALS_DIRECTORY": str(credentials),
    }
    found = load({"port": None}, environment=environment)
    assert (found.secret, found.port) == ("hunter2, which has a space at the end ", 8000)
    assert found.smtp_password == "hunter3"
    assert load({"port": 1}, environment=environment).port == 1

    def refused(more: dict[str, str]) -> str:
        with pytest.raises(ConfigError) as told:
            load({}, environment={**environment, **more})
        assert "hunter" not in str(told.value)
        return str(told.value)

    twice = refused({"TERTULIA_SECRET": "hunter4"})
    assert twice.startswith("Setting secret is set twice: by TERTULIA_SECRET and by")
    assert "smtp_password is set twice" in refused({"TERTULIA_SMTP_PASSWORD": "hunter4"})
    assert "No such file" in refused({"TERTULIA_HOST_FILE": str(tmp_path / "none")})
    assert "Is a directory" in refused({"TERTULIA_HOST_FILE": str(tmp_path)})
    assert "TERTULIA_COLOUR_FILE" in refused({"TERTULIA_COLOUR_FILE": str(secret)})
    port.write_text("eighty")
    assert f"'eighty' from TERTULIA_PORT_FILE, {port} must be a number" in refused({})
    port.write_bytes(b"\xff")
    assert "isn't a text file" in refused({})
    port.write_bytes(b"1" * 100_000)
    assert "more than 65536 bytes" in refused({})
    (credentials / "tertulia.colour").write_text("red")
    port.write_text("1")
    assert f"Unknown setting in {credentials}: tertulia.colour" in refused({})


def test_ignored_settings_file_is_named(tmp_path: Path) -> None:
    (used := tmp_path / "used.toml").write_text("")
    (ignored := tmp_path / "tertulia.toml").write_text("port = 8000\n")
    for command in ("config", "check"):
        said = run(command, "--data-dir", str(tmp_path), "--config", str(used)).stderr
        assert f"Reading settings from {used}. {ignored} is ignored" in " ".join(said.split())
    same = run("config", "--data-dir", str(tmp_path), "--config", str(ignored))
    assert "ignored" not in same.stderr


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
def test_passwords_are_hidden_in_shown_settings(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("TERTULIA_SECRET", "hunter2" * 5)
    shown = run("config", "--show", "--database-url", url).stdout
    assert "hunter2" not in shown
    assert "db.example.com" in shown
    assert 'secret = "********"' in shown


def test_shown_settings_are_a_valid_file(tmp_path: Path) -> None:
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
