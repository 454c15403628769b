"""`init`, `create-user`, and `create-bot`."""

import asyncio
import json
import re
import shlex
import stat
import tomllib
from pathlib import Path

import pytest

from tertulia.app import settings_file
from tertulia.app.config import ConfigError
from tertulia.cli import init, mail
from tertulia.cli.errors import CommandFailed
from tertulia.domain.accounts import identities
from tertulia.model.identities import ProvenIdentity
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext
from tests.browsers import signed_out_browser
from tests.cli.support import PASSWORD, Place, run
from tests.support import open_organization

NEW = ("--email", "ben@example.com", "--full-name", "Ben", "--password", PASSWORD)


async def test_owner_created_by_init_can_sign_in(place: Place) -> None:
    owner = await asyncio.to_thread(place.create_organization)
    async with open_organization(place.config) as org:
        reply = await org.nobody.post(
            "/fetch_api_key", username="ann@example.com", password=PASSWORD
        )
        assert (reply.ok["user_id"], reply.ok["api_key"]) == (owner["user_id"], owner["api_key"])
        assert org.node.state.users[owner["user_id"]].is_owner


async def test_new_users_are_in_the_default_channel(place: Place) -> None:
    await asyncio.to_thread(place.create_organization)
    await asyncio.to_thread(place.add, "ben")
    async with open_organization(place.config) as org:
        ben = await org["ben"].register()
        await org["ann"].send("general", "hello", "welcome")
        (event,) = await ben.events()
        assert event["message"]["content"] == "welcome"


def test_second_init_is_refused(place: Place) -> None:
    owner = place.create_organization()
    arguments = ("--org", "Other", "--email", "x@example.com", "--full-name", "Xen")
    result = place.run("init", *arguments, "--password", PASSWORD)
    assert result.exit_code == 1
    assert "exists here: 'Example'" in result.stderr
    assert place.run("create-user", *NEW).exit_code == 0
    assert owner["user_id"] + 1 == place.add("cleo")["user_id"] - 1


def test_init_shows_first_steps(tmp_path: Path) -> None:
    place = Place(tmp_path / "the data")
    arguments = ("--org", "Example", "--email", "ann@example.com", "--full-name", "Ann")
    result = place.run("init", *arguments, "--password", PASSWORD)
    assert "ann@example.com" in result.stdout
    assert "api_key" not in result.stdout
    assert "tertulia" not in result.stdout  # Programs read only the account.
    for word in ("external_url", "smtp_host", "backup_to", "invite", "channels"):
        assert word in result.stderr
    commands = re.findall(r"`tertulia ([^`]+)`", result.stderr)
    assert len(commands) == 7
    for command in commands:
        words = shlex.split(command)
        assert words[words.index("--data-dir") + 1] == str(tmp_path / "the data")
        shown = run(*words[: words.index("--data-dir")], "--help").stdout
        assert all(word in shown for word in words if word.startswith("--")), command


def test_completed_steps_are_ticked(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()

    def done() -> set[str]:
        steps = place.answer("first-steps")["steps"]
        assert [one["name"] for one in steps] == [
            *("server", "address", "mail", "people", "channels", "backups"),
        ]
        return {one["name"] for one in steps if one["done"]}

    def to_do() -> list[str]:
        checked = place.answer("check")
        assert checked["ok"]
        found: list[str] = checked["to_do"]
        return found

    assert done() == set()
    assert to_do() == ["address", "mail", "backups"]
    assert "to do   address, mail, backups: run `tertulia first-steps`" in place.run("check").stdout
    settings = {"external_url": "https://x.example", "smtp_host": "mail", "backup_to": "/backups"}
    (place.data_dir / "tertulia.toml").write_text(
        "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    )
    run("channels", "create", "lobby", *place.flags)
    place.answer("invite")
    assert done() == {"address", "mail", "people", "channels", "backups"}
    with place.serving():
        assert "server" in done()


def test_init_requires_options_without_a_terminal(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    for missing in ("--org", "--full-name", "--email"):
        said = {"--org": "Café", "--email": "ann@example.com", "--full-name": "Ann"}
        del said[missing]
        words = [word for pair in said.items() for word in pair]
        result = place.run("init", *words, "--yes", "--password", PASSWORD)
        assert result.exit_code == 2
        assert f"Missing option '{missing}'" in result.stderr
    assert not place.data_dir.exists()


def test_init_asks_on_a_terminal_and_applies_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "can_be_asked", lambda: True)
    place = Place(tmp_path / "data")
    tried: list[tuple[str, int, str]] = []

    async def send_test(config: Config, address: str) -> str:
        tried.append((config.smtp_host, config.smtp_port, address))
        if len(tried) == 1:
            raise CommandFailed("The email couldn't be sent. Nobody is there.")
        return "It was sent."

    monkeypatch.setattr(mail, "send_test", send_test)
    answers = (
        *("Café Central", "Ann", "not an address", "ann@example.com"),
        *("chat.example.com", "https://chat.example.com", ""),
        *("mail.exmaple.com", "465", "", "", "", "y"),
        *(
            "mail.example.com",
            "ninety",
            "465",
            "starttls",
            "chat",
            's3cret"',
            "Chat <c@example.com>",
        ),
        *("lobby, weather ,lobby,general", "ben@example.com,nobody"),
    )
    result = place.run("init", "--password", PASSWORD, typed="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    assert tried == [
        ("mail.exmaple.com", 465, "ann@example.com"),
        ("mail.example.com", 465, "ann@example.com"),
    ]
    for said in (
        *("'not an address' isn't a valid email address", "isn't the URL of a site"),
        *("Nobody is there.", "It was sent.", "general: ", "nobody: "),
        *("5 of 6 done", "The server emails these invitations"),
    ):
        assert said in result.stderr, said
    assert "/join/" not in result.output
    (waiting,) = place.answer("mail")["waiting"]
    assert (waiting["kind"], waiting["to"]) == ("invitation", "ben@example.com")
    file = place.data_dir / "tertulia.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert tomllib.loads(file.read_text()) == {
        "external_url": "https://chat.example.com",
        "backup_to": f"{place.data_dir}-backups",
        "smtp_host": "mail.example.com",
        "smtp_port": 465,
        "smtp_security": "starttls",
        "smtp_user": "chat",
        "smtp_password": 's3cret"',
        "mail_from": "Chat <c@example.com>",
    }
    channels = run("channels", "list", *place.flags).stdout
    assert len(re.findall("lobby|weather|general", channels)) == 3
    again = place.run("init", "--password", PASSWORD)
    assert (again.exit_code, "already" in again.stderr) == (1, True)


def test_init_shows_links_if_the_mail_server_rejects_the_test_email(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "can_be_asked", lambda: True)
    place = Place(tmp_path / "data")

    async def send_test(config: Config, address: str) -> str:
        raise CommandFailed("The email couldn't be sent. 550 No such user here")

    monkeypatch.setattr(mail, "send_test", send_test)
    answers = (
        *("Café", "Ann", "ann@example.com", "https://chat.example.com", "none"),
        *("mail.example.com", "25", "", "", "", "n"),
        *("", "ben@example.com, cleo@example.com, nobody"),
    )
    result = place.run("init", "--password", PASSWORD, typed="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    for name in ("ben", "cleo"):
        assert re.search(f"{name}@example.com  https://chat.example.com/join/", result.stderr)
    assert "No emails were sent yet, because the test email failed." in result.stderr
    waiting = [one["to"] for one in place.answer("mail")["waiting"]]
    assert waiting == ["ben@example.com", "cleo@example.com"]


def test_init_says_that_no_one_was_invited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "can_be_asked", lambda: True)
    place = Place(tmp_path / "data")
    answers = ("Café", "Ann", "ann@example.com", "", "none", "", "nobody")
    result = place.run("init", "--password", PASSWORD, typed="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    assert "'nobody' isn't a valid email address" in result.stderr
    assert "No one was invited." in result.stderr
    assert "sent" not in result.stderr


def test_interrupted_questions_still_show_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "can_be_asked", lambda: True)
    place = Place(tmp_path / "data")
    # There's no answer left for the question about channels.
    answers = "\n".join(("Café", "Ann", "ann@example.com", "", "none")) + "\n"
    result = place.run("init", "--password", PASSWORD, typed=answers)
    assert result.exit_code == 1
    shown = run("keys", "show", "ann@example.com", "--json", *place.flags)
    assert "ann@example.com" in result.stdout
    assert json.loads(shown.stdout)["api_key"] not in result.output
    assert "0 of 6 done" in result.stdout + result.stderr


def test_init_creates_the_file_that_its_answers_go_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, file = Place(tmp_path / "data"), tmp_path / "tertulia.toml"
    given = ("init", "--password", PASSWORD, "--config", str(file))
    typed = place.run(
        *given, "--yes", "--org", "Café", "--full-name", "Ann", "--email", "a@b.example"
    )
    assert (typed.exit_code, file.exists()) == (2, False), "a script names a file that exists"
    monkeypatch.setattr(init, "can_be_asked", lambda: True)
    answers = "\n".join(("Café", "Ann", "ann@example.com", "https://c.example", "none", "", "", ""))
    result = place.run(*given, typed=f"{answers}\n")
    assert result.exit_code == 0, result.output
    assert file.read_text() == 'external_url = "https://c.example"\n'
    place_of_it = f"--data-dir {place.data_dir} --config {file}`"
    assert f"`tertulia serve {place_of_it}" in result.stderr
    assert f"`tertulia first-steps {place_of_it}" in result.stderr
    assert f"Settings go in {file}," in result.stderr
    again = place.run("first-steps", "--config", str(file)).stdout
    assert f"`tertulia serve {place_of_it}" in again
    assert f"Settings go in {file}," in again
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_settings_are_added_to_an_existing_file(tmp_path: Path) -> None:
    file = tmp_path / "tertulia.toml"
    file.write_text("# ours\nport = 9000")
    file.chmod(0o640)
    settings_file.put(file, {"external_url": "https://ä.example"})
    assert file.read_text() == '# ours\nport = 9000\nexternal_url = "https://ä.example"\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    # Like the output of `config --show`, with all settings, some of them empty.
    file.write_text('smtp_port = 25\n  smtp_host=""\nport = 9000')
    settings_file.put(file, {"smtp_host": r"a\b", "smtp_port": 587, "mail_from": "c"})
    assert file.read_text() == (
        'smtp_port = 587\nsmtp_host = "a\\\\b"\nport = 9000\nmail_from = "c"\n'
    )
    for before, value in (
        ("port = 9000\n", "a\x7f"),
        # The file can't be changed if the result would be invalid or mean something else.
        ('smtp_user = """\na\n"""\n', "b"),
        ('mail_from = """\nsmtp_user = "a"\n"""\n', "b"),
        ("[table]\n", "b"),
    ):
        file.write_text(before)
        with pytest.raises(ConfigError, match="smtp_user"):
            settings_file.put(file, {"smtp_user": value})
        assert file.read_text() == before
    assert [one.name for one in tmp_path.iterdir()] == ["tertulia.toml"]


def test_only_the_owner_can_read_the_secret(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    assert stat.S_IMODE((place.data_dir / "secret").stat().st_mode) == 0o600


@pytest.mark.parametrize("role", ["owner", "admin", "moderator", "member", "guest"])
async def test_user_is_created_with_the_role(tmp_path: Path, role: str) -> None:
    place = Place(tmp_path / "data")
    await asyncio.to_thread(place.create_organization)
    user = await asyncio.to_thread(place.add, "ben", role)
    async with open_organization(place.config) as org:
        name = org.node.state.users[user["user_id"]].role.name.lower()
        assert name == {"admin": "administrator"}.get(role, role)


def test_password_is_read_from_standard_input(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    result = place.run("create-user", *NEW[:4], typed=f"{PASSWORD}\n")
    assert result.exit_code == 0
    assert "api_key" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--email", "nobody", *NEW[2:]), 1, "'nobody' isn't a valid email address."),
        (("--email", "ann@example.com", *NEW[2:]), 1, "already"),
        (("--email", "ANN@Example.com", *NEW[2:]), 1, "already"),
        ((*NEW[:2], "--full-name", "B\0b", *NEW[4:]), 1, "Names can't contain"),
        ((*NEW[:2], "--full-name", "", *NEW[4:]), 1, "Names must have 2 to 100 characters."),
        ((*NEW[:4], "--password", "short"), 2, "Passwords must have 8 to 100 characters."),
        ((*NEW[:4], "--password", "ben@example.com"), 2, "too easy to guess"),
        ((*NEW[:4], "--password", "2026 Example 2026"), 2, "it's your email address, your name"),
        (NEW[:4], 2, "A password is required"),
        ((*NEW, "--role", "king"), 2, "king"),
        ((*NEW, "--config", "/nowhere/at.toml"), 2, "Can't read /nowhere/at.toml"),
        ((*NEW, "--database-url", "mysql://x"), 1, "'mysql' isn't a supported database"),
    ],
)
def test_invalid_user_is_refused_in_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    result = place.run("create-user", *arguments)
    assert result.exit_code == code
    assert sentence in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["create-user", "create-bot", "check", "backup"])
def test_commands_without_an_organization_say_what_to_run_first(place: Place, command: str) -> None:
    arguments = {
        "create-user": NEW,
        "create-bot": ("--owner", "a@b.c", "--short-name", "x", "--full-name", "Xx"),
        "backup": (str(place.data_dir / "file"),),
    }
    result = place.run(command, *arguments.get(command, ()))
    assert result.exit_code == 2
    assert "tertulia init" in result.stderr
    assert not place.data_dir.exists()


async def test_bot_can_send_with_its_key(place: Place) -> None:
    await asyncio.to_thread(place.create_organization)
    bot = await asyncio.to_thread(
        place.answer,
        "create-bot",
        *("--owner", "ann@example.com", "--short-name", "weather", "--full-name", "Weather"),
    )
    assert bot["email"].startswith("weather-bot@")
    async with open_organization(place.config) as org:
        ann = await org["ann"].register()
        sender = org["weather"]
        assert sender.api_key == bot["api_key"]
        await sender.send("general", "today", "sun")
        (event,) = await ann.events()
        assert event["message"]["sender_id"] == bot["user_id"]


def test_bot_needs_an_existing_owner(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    result = place.run(
        "create-bot", "--owner", "no@example.com", "--short-name", "w", "--full-name", "Weather"
    )
    assert (result.exit_code, "no@example.com" in result.stderr) == (1, True)


async def test_operator_sets_a_new_password(place: Place) -> None:
    owner = await asyncio.to_thread(place.create_organization)
    arguments = ("--email", "ANN@example.com", "--password", "other good words")
    result = await asyncio.to_thread(place.run, "password", *arguments)
    assert result.exit_code == 0, result.output
    async with open_organization(place.config) as org:
        for word, status in ((PASSWORD, 401), ("other good words", 200)):
            sent = {"username": "ann@example.com", "password": word}
            reply = await org.nobody.post("/fetch_api_key", **sent)
            assert reply.status == status
        assert reply.ok["api_key"] != owner["api_key"]


def test_operator_cannot_set_a_name_as_password(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    name, email = "Bernadette Longname-Featherstone", "bernadette@example.com"
    new = ("--email", email, "--full-name", name, "--password", PASSWORD)
    assert place.run("create-user", *new).exit_code == 0
    for known in (name, "2026 Example 2026", email):
        result = place.run("password", "--email", email, "--password", known)
        assert (result.exit_code, "too easy to guess" in result.stderr) == (2, True)


async def test_operator_signs_a_person_out_everywhere(place: Place) -> None:
    owner = await asyncio.to_thread(place.create_organization)
    result = await asyncio.to_thread(place.run, "sign-out", "--email", "ann@example.com")
    assert result.stdout == "Signed ann@example.com out of 0 browsers and all programs.\n"
    async with open_organization(place.config) as org:
        sent = {"username": "ann@example.com", "password": PASSWORD}
        reply = await org.nobody.post("/fetch_api_key", **sent)
        assert reply.ok["api_key"] != owner["api_key"]


async def test_operator_lets_an_owner_in_who_has_no_other_way(place: Place) -> None:
    await asyncio.to_thread(place.create_organization)
    setting = "password_sign_in=false"
    method = {"name": "company", "kind": "oidc", "issuer": "http://127.0.0.1:9", "client_id": "a"}
    declared = json.dumps(json.dumps([method]))
    (place.data_dir / "tertulia.toml").write_text(
        f'external_url = "https://chat.example.com"\nsign_in = {declared}\n'
    )
    words = "settings", "set", *place.flags, setting
    assert (await asyncio.to_thread(run, *words)).exit_code == 0
    printed = await asyncio.to_thread(place.answer, "sign-in-link", "ann@example.com")
    path = printed["link"].partition("/sign-in-link/")[2]
    async with open_organization(place.config) as org:
        browser = signed_out_browser(org)
        assert (await browser.http.post(f"/sign-in-link/{path}")).status_code == 303
        assert (await browser.get("/users/me")).ok["email"] == "ann@example.com"
    assert (await asyncio.to_thread(place.run, "sign-in-link", "no@example.com")).exit_code == 1


async def test_operator_unlinks_an_account_from_a_provider(place: Place) -> None:
    owner = await asyncio.to_thread(place.create_organization)
    async with open_organization(place.config) as org:
        proven = ProvenIdentity(method="company", subject="https://id.example.com 7")
        context = CommandContext(org.node.state, org.node.clock(), None)
        await org.do(*identities.link_changes(context, owner["user_id"], proven))

    async def said(*words: str) -> str:
        return (await asyncio.to_thread(run, "identities", *words, *place.flags)).stdout

    assert "https://id.example.com 7" in await said("list")
    unlink = "unlink", "ann@example.com", "--method"
    assert await said(*unlink, "other") == "0 removed from ann@example.com.\n"
    assert await said(*unlink, "company") == "1 removed from ann@example.com.\n"
    assert "https://id.example.com 7" not in await said("list")


@pytest.mark.parametrize("command", ["password", "sign-out"])
@pytest.mark.parametrize(
    ("email", "sentence"),
    [
        ("no@example.com", "No account has the address"),
        ("w-bot@tertulia.invalid", "account is a bot"),
    ],
)
def test_unknown_person_cannot_be_signed_out(
    tmp_path: Path, command: str, email: str, sentence: str
) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    bot = ("--owner", "ann@example.com", "--short-name", "w", "--full-name", "Weather")
    assert place.run("create-bot", *bot).exit_code == 0
    more = ("--password", PASSWORD) if command == "password" else ()
    result = place.run(command, "--email", email, *more)
    assert result.exit_code == 1
    assert sentence in result.stderr
