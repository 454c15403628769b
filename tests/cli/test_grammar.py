"""`key=value`, typed for a command's options, and the names of commands below their nouns."""

from pathlib import Path

import pytest

from tertulia.cli.grammar import as_options
from tests.cli.support import PASSWORD, Place, command_line, run


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "data")
    place.create_organization()
    return place


@pytest.mark.parametrize(
    ("names", "typed", "expected"),
    [
        ("users list", ["role=guest", "ann"], ["--role=guest", "ann"]),
        ("users create", ["full_name=B=C", "full-name="], ["--full-name=B=C", "--full-name="]),
        ("users list", ["--role", "role=guest"], ["--role", "role=guest"]),
        ("users list", ["--role"], ["--role"]),
        ("users list", ["--", "role=guest"], ["--", "role=guest"]),
        ("users list", ["other=1", "Role=guest", "=", "role"], None),
        ("users list", ["data_dir=x", "json=true", "help=1"], None),
        ("users list", ["--json", "role=guest"], ["--json", "--role=guest"]),
        ("users list", ["words=x"], ["words=x"]),
        ("channels create", ["private=yes", "announce=no"], ["--private"]),
        ("channels create", ["private=maybe"], ["--private=maybe"]),
        ("backups save", ["files=false", "compress=TRUE"], ["--no-files", "--compress"]),
        ("channels change", ["general", "name=x"], None),
        ("users erase", ["messages=all", "files=yes"], ["--messages=all", "--files"]),
    ],
)
def test_pairs_that_name_an_option_are_options(
    names: str, typed: list[str], expected: list[str] | None
) -> None:
    noun, verb = names.split()
    command = command_line().commands[noun].commands[verb]
    assert as_options(command, typed) == (typed if expected is None else expected)


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
def test_keys_are_printed_only_when_asked_for(place: Place, as_json: tuple[str, ...]) -> None:
    def prints_key(*typed: str) -> bool:
        result = run(*typed, *place.flags, *as_json)
        assert result.exit_code == 0, result.output
        return "api_key" in result.stdout

    def person(name: str) -> list[str]:
        return [f"email={name}@example.com", f"full_name={name}", f"password={PASSWORD}"]

    def bot(name: str) -> list[str]:
        return ["owner=ann@example.com", f"short_name={name}", f"full_name={name}"]

    assert not prints_key("users", "create", *person("ben"))
    assert prints_key("users", "create", *person("cleo"), "--show-key")
    assert prints_key("create-user", *person("dan"))
    assert not prints_key("bots", "create", *bot("sun"))
    assert prints_key("bots", "create", *bot("rain"), "show_key=true")
    assert prints_key("create-bot", *bot("snow"))


def test_other_names_do_the_same(place: Place, tmp_path: Path) -> None:
    place.add("ben")
    for words in (["mail"], ["mail", "list"]):
        assert run(*words, *place.flags).stdout == "No pending emails.\n"
    for words in (["mail", "--test", "x@example.com"], ["mail", "test", "x@example.com"]):
        assert "Wrote a test email to x@example.com" in run(*words, *place.flags).stdout
    ben = "ben@example.com"
    for words in (["sign-out", "--email", ben], ["users", "sign-out", ben]):
        assert "Signed ben@example.com out of" in run(*words, *place.flags).stdout
    for words in (["password", "--email", ben], ["users", "password", ben]):
        result = run(*words, "password=other good words", *place.flags)
        assert "Set a new password" in result.stdout
    saved = [tmp_path / "one.zip", tmp_path / "two.zip"]
    for words, file in ((["backup"], saved[0]), (["backups", "save"], saved[1])):
        assert run(*words, str(file), *place.flags).exit_code == 0
    for words, file in ((["restore"], saved[0]), (["backups", "restore"], saved[1])):
        new = tmp_path / f"from-{file.stem}"
        assert run(*words, str(file), "--data-dir", str(new)).exit_code == 0
    for words in (["end-queues"], ["queues", "end"]):
        assert run(*words, *place.flags).stdout.startswith("Ended 0 event queues.")
    for words in (["move-files"], ["files", "move"]):
        assert "Set files_also_at" in run(*words, *place.flags).stderr
