"""Commands about what's in the organization."""

import asyncio
import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tertulia.cli.settings import _organization_names
from tertulia.service.config import Config
from tests.cli.support import APP, PASSWORD, Place, command_line, run
from tests.support import as_sent, open_organization, row

DOCUMENT = Path(__file__).parents[2] / "docs" / "command-line.md"


class Lines(Place):
    """A place with commands as lines of text."""

    def typed(self, line: str, *more: str) -> Any:
        """Run a command with --json, and return the result."""
        group, command, *rest = line.split()
        result = run(group, command, *rest, *more, *self.flags, "--json")
        assert result.exit_code == 0, (line, result.output)
        return json.loads(result.stdout)

    def refused(self, line: str, *more: str) -> tuple[int, str]:
        """Run a command, and return its exit code and the error."""
        group, command, *rest = line.split()
        result = run(group, command, *rest, *more, *self.flags)
        assert "Traceback" not in result.output
        return result.exit_code, result.stderr.strip()


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    place = Lines(tmp_path / "data")
    place.create_organization()
    return place


async def test_users_are_listed_changed_deactivated_and_erased(
    database_url: str, tmp_path: Path
) -> None:
    lines = Lines(tmp_path / "data", database_url)

    def commands() -> None:
        lines.create_organization()
        lines.add("ben")
        lines.add("cleo", "guest")
        (ben,) = lines.typed("users list BEN")["users"]
        assert ben == {
            "user_id": ben["user_id"],
            "email": "ben@example.com",
            "full_name": "Ben",
            "role": "member",
            "status": "active",
            "joined_at": ben["joined_at"],
            "last_active_at": None,
        }
        assert [u["email"] for u in lines.typed("users list --role guest")["users"]] == [
            "cleo@example.com"
        ]
        assert lines.typed("users show ben@example.com")["channels"] == ["general"]
        line = "users change ben@example.com --role admin --email benny@example.com"
        changed = lines.typed(line, "--full-name", "Benny Boo")
        assert (changed["role"], changed["email"], changed["full_name"]) == (
            *("admin", "benny@example.com"),
            "Benny Boo",
        )
        file = tmp_path / "benny.zip"
        made = lines.typed(f"users data benny@example.com {file}")
        assert made["size"] == file.stat().st_size
        assert file.stat().st_mode & 0o077 == 0
        with zipfile.ZipFile(file) as archive:
            (account,) = json.loads(archive.read("account.json"))
        assert account["full_name"] == "Benny Boo"
        assert "already exists" in lines.refused(f"users data cleo@example.com {file}")[1]
        lines.typed("users deactivate benny@example.com --comment Farewell")
        assert [u["status"] for u in lines.typed("users list boo --status all")["users"]] == [
            "deactivated"
        ]
        assert lines.typed("users list boo") == {"users": []}
        lines.typed("users reactivate benny@example.com")
        lines.typed(f"users erase {ben['user_id']} --yes --messages public")
        assert lines.typed(f"users show {ben['user_id']}")["full_name"].startswith("Deleted user")

    await asyncio.to_thread(commands)
    config = Config(data_dir=str(lines.data_dir), database_url=lines.database_url)
    async with open_organization(config) as org:
        cleo = await org["cleo"].get("/users")
        names = {one["full_name"] for one in cleo.ok["members"]}
        assert not names & {"Ben", "Benny Boo"}


async def test_operator_recovers_an_organization_without_a_usable_owner(tmp_path: Path) -> None:
    """The only owner has left, and no one else has their password or mailbox."""

    lines = Lines(tmp_path / "data")

    def rescue() -> dict[str, Any]:
        lines.create_organization()
        lines.add("ben")
        assert "the last organization owner" in lines.refused("users deactivate ann@example.com")[1]
        lines.typed("users change ben@example.com --role owner")
        run(
            "password", "--email", "ben@example.com", "--password", "other good words", *lines.flags
        )
        lines.typed("users deactivate ann@example.com")
        found: dict[str, Any] = lines.typed("users list --role owner")
        return found

    owners = await asyncio.to_thread(rescue)
    assert [one["email"] for one in owners["users"]] == ["ben@example.com"]
    async with open_organization(Config(data_dir=str(lines.data_dir))) as org:
        for name, password, status in (
            ("ann", PASSWORD, 401),
            ("ben", PASSWORD, 401),
            ("ben", "other good words", 200),
        ):
            sent = {"username": f"{name}@example.com", "password": password}
            assert (await org.nobody.post("/fetch_api_key", **sent)).status == status
        assert (await org["ben"].patch("/realm", invite_required=False)).ok


def test_bots_keys_sessions_and_agents(lines: Lines) -> None:
    lines.add("ben")
    bot = lines.typed("bots create owner=ben@example.com short_name=w full_name=Weather --show-key")
    (shown,) = lines.typed("bots list weath --owner ben@example.com")["bots"]
    assert (shown["kind"], shown["owner"], shown["status"]) == (
        *("generic", "ben@example.com"),
        "active",
    )
    who = bot["email"]
    assert lines.typed(f"keys show {who}") == bot
    replaced = lines.typed(f"keys replace {who}")
    assert replaced["api_key"] != bot["api_key"]
    assert lines.typed(f"bots change {who} --owner ann@example.com --full-name Sky")["full_name"]
    lines.typed(f"bots deactivate {who}")
    lines.typed(f"bots reactivate {who}")
    assert lines.typed(f"keys show {who}")["api_key"] != replaced["api_key"]
    assert lines.typed("bots list --owner ann@example.com")["bots"][0]["full_name"] == "Sky"
    assert lines.typed("sessions list") == {"sessions": []}
    assert lines.typed("agents list ben@example.com") == {"agents": []}


async def test_sessions_and_agents_are_ended(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "data")
    await asyncio.to_thread(lines.create_organization)
    config = Config(data_dir=str(lines.data_dir))
    async with open_organization(config) as org:
        made = await org["ann"].post("/agents", name="Helper", can_write=True)
        browser = await org.nobody.post("/sessions", username="ann@example.com", password=PASSWORD)
        assert made.ok
        assert browser.ok
    (agent,) = (await asyncio.to_thread(lines.typed, "agents list"))["agents"]
    assert (agent["name"], agent["channels"], agent["can_write"]) == ("Helper", None, True)
    (session,) = (await asyncio.to_thread(lines.typed, "sessions list ann@example.com"))["sessions"]
    await asyncio.to_thread(lines.typed, f"agents end {agent['id']}")
    await asyncio.to_thread(lines.typed, f"sessions end {session['id']}")
    async with open_organization(config) as org:
        assert not len(org.node.state.sessions)
        assert not len(org.node.state.access_keys)


def test_channels_are_created_changed_archived_and_subscribed(lines: Lines) -> None:
    ben = lines.add("ben")["user_id"]
    made = lines.typed("channels create weather --private --subscriber ben@example.com")
    assert (made["kind"], made["subscribers"]) == ("private", 1)
    assert lines.typed("channels create lobby --default")["subscribers"] == 0
    assert [c["name"] for c in lines.typed("channels list o b")["channels"]] == ["lobby"]
    assert lines.typed(f"channels subscribe lobby {ben} ann@example.com --tell") == {"changed": 2}
    assert lines.typed("channels unsubscribe #lobby ann@example.com") == {"changed": 1}
    (left,) = lines.typed("channels subscribers lobby")["subscribers"]
    assert left["email"] == "ben@example.com"
    settings = lines.typed("channels show lobby")["settings"]
    del settings["name"]
    kept = [f"{name}={as_sent(value)}" for name, value in settings.items()]
    assert lines.typed("channels change lobby", *kept)["settings"].items() >= settings.items()
    line = "channels change weather name=sky can_send_message_group=moderators retention_days=30"
    changed = lines.typed(line, "description=Over *us*")
    assert changed["name"] == "sky"
    assert (
        changed["settings"].items()
        >= {
            "can_send_message_group": "moderators",
            "retention_days": 30,
            "description": "Over *us*",
        }.items()
    )
    lines.typed("channels archive sky")
    assert [c["name"] for c in lines.typed("channels list --archived")["channels"]] == ["sky"]
    lines.typed("channels change sky", "description=\x1b[2Jgone")
    assert "\\x1b[2Jgone" in run("channels", "show", "sky", *lines.flags).stdout
    lines.typed("channels unarchive sky")
    assert lines.typed("channels show sky")["is_archived"] is False


def test_every_setting_can_be_set_as_it_is_shown(lines: Lines) -> None:
    before = lines.typed("settings list")["settings"]
    assert before.keys() == _organization_names().keys()
    same = [f"{name}={as_sent(value)}" for name, value in before.items()]
    assert lines.typed("settings set", *same)["settings"] == before
    new = {
        "name": "Café",
        "invite_required": False,
        "can_invite_users_group": "moderators",
        "create_multiuse_invite_group": {"direct_members": [4], "direct_subgroups": []},
        "message_content_edit_limit_seconds": "unlimited",
        "new_channel_announcements_channel_id": "general",
        "media_preview_size": 150,
    }
    lines.typed("settings set", *(f"{name}={as_sent(value)}" for name, value in new.items()))
    assert lines.typed("settings list")["settings"] == {**before, **new}
    shown = lines.typed("settings show message_retention_days")
    assert (shown["value"], shown["takes"], shown["for_owners"]) == (
        *("unlimited", "a number or unlimited"),
        True,
    )


def picture(path: Path) -> Path:
    from PIL import Image

    Image.new("RGB", (80, 60), "brown").save(path)
    return path


def test_nouns_are_created_changed_ordered_and_removed(lines: Lines, tmp_path: Path) -> None:
    """A value that is shown can be typed as input, and a value that was typed is shown."""
    made = lines.typed(
        "linkifiers add", r"pattern=#(?P<id>\d+)", "url_template=https://a.test/{id}"
    )
    other = lines.typed("linkifiers add", "pattern=TIC", "url_template=https://tic.test")
    assert lines.typed(f"linkifiers order {other['id']}")["done"]
    shown = lines.typed("linkifiers list")["linkifiers"]
    assert [one["id"] for one in shown] == [other["id"], made["id"]]
    again = [f"{name}={value}" for name, value in made.items() if name != "id"]
    assert lines.typed(f"linkifiers change {made['id']}", *again) == made
    changed = lines.typed(
        "linkifiers change TIC", "alternative_url_templates=https://b.test https://c.test"
    )
    assert changed["alternative_url_templates"] == "https://b.test https://c.test"
    assert lines.typed("linkifiers show TIC") == changed
    lines.typed("linkifiers remove TIC")
    assert lines.typed("linkifiers list tic") == {"linkifiers": []}

    place = lines.typed(
        "playgrounds add name=Rust language=Rust url_template=https://p.test/{code}"
    )
    assert lines.typed("playgrounds list")["playgrounds"] == [place]
    lines.typed("playgrounds remove rust")

    lines.typed("domains add domain=Example.com allow_subdomains=false")
    assert lines.typed("domains change example.com allow_subdomains=true")["allow_subdomains"]
    assert [one["domain"] for one in lines.typed("domains list")["domains"]] == ["example.com"]
    lines.typed("domains remove example.com")

    lines.typed("folders create name=Projects description=")
    teams = lines.typed("folders create name=Teams", "description=Of *all*")
    lines.typed("folders order Teams")
    lines.typed("folders change Projects is_archived=true")
    assert [
        (one["name"], one["is_archived"]) for one in lines.typed("folders list")["folders"]
    ] == [
        ("Teams", False),
        ("Projects", True),
    ]
    assert lines.typed("channels change general folder=Teams")["settings"]["folder"] == "Teams"
    assert teams["description"] == "Of *all*"

    field = lines.typed("fields create name=Team type=choice", "choices=Bar,Kitchen")
    assert (field["type"], field["choices"], field["required"]) == ("choice", "Bar,Kitchen", False)
    lines.typed("fields create type=account account=github")
    lines.typed("fields create name=Site type=account", "url_pattern=https://s.test/%(username)s")
    field = lines.typed("fields change Team required=true choices=Garden,Kitchen")
    assert (field["choices"], field["required"]) == ("Garden,Kitchen", True)
    lines.typed("fields order Site")
    assert [one["name"] for one in lines.typed("fields list")["fields"]] == [
        "Site",
        "Team",
        "GitHub",
    ]
    assert lines.typed("fields show Site")["url_pattern"] == "https://s.test/%(username)s"
    lines.typed("fields remove GitHub")

    file = picture(tmp_path / "espresso.png")
    assert lines.typed(f"emoji add espresso {file}")["added_by"] == "ann@example.com"
    assert [one["name"] for one in lines.typed("emoji list")["emoji"]] == ["espresso"]
    lines.typed("emoji remove espresso")
    assert lines.typed("emoji list") == {"emoji": []}

    shown = lines.typed(f"pictures set icon {file}")["pictures"]
    assert [(one["name"], one["is_own"]) for one in shown] == [
        *(("icon", True), ("logo", False)),
        ("night-logo", False),
    ]
    assert lines.typed(f"pictures set night-logo {file}")["pictures"][2]["is_own"]
    assert not any(one["is_own"] for one in lines.typed("pictures list")["pictures"][1:2])
    lines.typed("pictures remove night-logo")
    left = lines.typed("pictures remove icon")["pictures"]
    assert [one["is_own"] for one in left] == [False] * 3
    kept = lines.data_dir / "files" / "realm"
    assert not kept.exists() or not list(kept.iterdir())

    lines.typed("channels create recipes")
    lines.typed("channels create orders")
    made = lines.typed("default-groups create name=Kitchen channels=recipes,#orders")
    assert (made["name"], made["channels"]) == ("Kitchen", ["recipes", "orders"])
    changed = lines.typed("default-groups change kitchen", "name=Food", "description=All of it")
    assert (changed["name"], changed["description"]) == ("Food", "All of it")
    assert lines.typed("default-groups remove-channels Food recipes")["channels"] == ["orders"]
    again = lines.typed("default-groups add-channels Food recipes")
    assert again["channels"] == made["channels"]
    assert lines.typed("default-groups list foo")["default_groups"] == [again]
    text_again = [f"{n}={as_sent(v)}" for n, v in again.items() if n != "id"]
    lines.typed("default-groups remove Food")
    again["id"] += 1
    assert lines.typed("default-groups create", *text_again) | {"id": again["id"]} == again

    before = lines.typed("defaults list")["settings"]
    same = [f"{name}={as_sent(value)}" for name, value in before.items()]
    assert lines.typed("defaults set", *same)["settings"] == before
    assert lines.typed("defaults set enter_sends=true color_scheme=2")["settings"] == {
        "enter_sends": True,
        "color_scheme": 2,
    }
    assert "2: dark" in lines.typed("defaults show color_scheme")["about"]


async def test_kept_choices_stay_in_profiles(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "data")
    await asyncio.to_thread(lines.create_organization)
    line = "fields create name=Team type=choice choices=Bar,Kitchen"
    field = await asyncio.to_thread(lines.typed, line)
    config = Config(data_dir=str(lines.data_dir))
    async with open_organization(config) as org:
        data = json.dumps([{"id": field["id"], "value": "1"}])
        assert (await org["ann"].patch("/users/me/profile_data", data=data)).ok
    await asyncio.to_thread(lines.typed, "fields change Team choices=Garden,Kitchen,Bar")
    async with open_organization(config) as org:
        ann = (await org["ann"].get("/users/me", include_custom_profile_fields=True)).ok
        fields = (await org["ann"].get("/realm/profile_fields")).ok["custom_fields"]
        key = ann["profile_data"][str(field["id"])]["value"]
        assert json.loads(fields[0]["field_data"])[key]["text"] == "Kitchen"


def test_groups_are_created_changed_filled_and_deactivated(lines: Lines) -> None:
    ben = lines.add("ben")["user_id"]
    lines.add("cleo")
    made = lines.typed(
        "groups create name=baristas members=ben@example.com can_manage_group=moderators"
    )
    assert (made["members"], made["people"], made["can_manage_group"]) == (
        *("ben@example.com", 1),
        "moderators",
    )
    lines.typed("groups create name=bar subgroups=baristas,moderators", "description=All of it")
    more = lines.typed("groups add baristas cleo@example.com --group owners")
    assert (more["members"], more["subgroups"], more["people"]) == (
        *("ben@example.com,cleo@example.com", "owners"),
        3,
    )
    assert lines.typed(f"groups remove baristas {ben} --group owners")["people"] == 1
    changed = lines.typed("groups change bar name=counter can_mention_group=moderators")
    assert (changed["name"], changed["can_mention_group"]) == ("counter", "moderators")
    lines.typed("groups deactivate counter")
    (shown,) = lines.typed("groups list counter")["groups"]
    assert (shown["status"], shown["subgroups"]) == ("deactivated", "moderators,baristas")
    assert lines.typed("groups reactivate counter")["status"] == "active"
    names = [one["name"] for one in lines.typed("groups list role")["groups"]]
    assert {"owners", "everyone"} <= set(names)
    assert "counter" not in names
    assert lines.typed("channels change general can_send_message_group=counter")


async def test_files_are_filtered_and_removed(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "data")
    await asyncio.to_thread(lines.create_organization)
    config = Config(data_dir=str(lines.data_dir))
    async with open_organization(config) as org:
        small = await org["ann"].upload("small.txt", b"s")
        await org["ann"].upload("large.bin", b"l" * 2**20, "application/octet-stream")
        await org["ann"].send("general", "t", f"[s](/user_uploads/{small})")

    def names(line: str) -> list[str]:
        return [one["name"] for one in lines.typed(f"files list {line}")["files"]]

    def commands() -> None:
        assert names("") == ["large.bin", "small.txt"]
        assert names("--least 0.5") == names("--unlinked") == names("LARGE") == ["large.bin"]
        assert names("--type text/") == ["small.txt"]
        assert names("--of ann@example.com --limit 1") == ["large.bin"]
        assert names("--older 1") == []
        (small,) = lines.typed("files list small")["files"]
        assert (small["size"], small["messages"], small["email"]) == (1, 1, "ann@example.com")
        lines.typed(f"files remove {small['id']}")
        assert names("") == ["large.bin"]

    await asyncio.to_thread(commands)


def test_invitations_are_listed_and_revoked(lines: Lines) -> None:
    link = lines.typed("invitations create --role guest --days 0")["invite_link"]
    lines.typed("invitations create --email cleo@example.com")
    first, second = lines.typed("invitations list")["invitations"]
    assert (first["invite_link"], first["email"], first["role"]) == (link, None, "guest")
    assert (first["expires_at"], second["email"]) == (None, "cleo@example.com")
    for one in (first, second):
        lines.typed(f"invitations revoke {one['id']}")
    assert lines.typed("invitations list") == {"invitations": []}


def test_running_server_shows_changes_by_commands(lines: Lines) -> None:
    with lines.serving() as (_, address):
        lines.typed("settings set name=Elsewhere")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            settings = httpx.get(f"{address}/api/v1/server_settings", timeout=60).json()
            if settings["realm_name"] == "Elsewhere":
                return
            time.sleep(0.1)  # The server checks every two seconds.
        pytest.fail("the server does not notice")


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("users show nobody@example.com", 1, "No account has the address"),
        ("users show 999", 1, "No account has the ID 999."),
        ("users show 1", 1, "is a bot. Use `tertulia bots`"),
        ("bots deactivate ann@example.com", 1, "is a person. Use `tertulia users`"),
        ("bots deactivate 1", 1, "This bot doesn't exist."),
        ("keys replace 1", 1, "an API key that programs can use"),
        ("users change 4", 2, "Nothing to change"),
        ("users change 4 --role king", 2, "king"),
        ("users change 4 --role member", 1, "the last organization owner"),
        ("users change 4 --email x", 1, "'x' isn't a valid email address."),
        ("users erase 4", 2, "Use --yes"),
        ("users erase 4 --yes --messages some", 2, "not 'some'"),
        ("users erase 4 --yes", 1, "the last organization owner"),
        ("pictures set portrait x.png", 2, "portrait"),
        ("pictures set icon /dev/null", 1, "image"),
        ("pictures set icon nowhere.png", 1, "nowhere.png"),
        ("default-groups create name=A channels=nowhere", 2, "Channel 'nowhere' doesn't exist."),
        ("default-groups create name=A channels=general", 1, "default channel for everyone"),
        ("default-groups change A name=B", 1, "Default group 'A' doesn't exist."),
        ("channels show nowhere", 1, "Channel 'nowhere' doesn't exist."),
        ("channels create general", 1, "general"),
        ("channels change general name", 2, "isn't in the form NAME=VALUE"),
        ("channels change general color=red", 2, "Unknown setting 'color'"),
        ("channels change general is_private=perhaps", 2, "expected true or false"),
        ("channels change general folder=x", 2, "Folder 'x' doesn't exist"),
        ("channels change general can_send_message_group=x", 2, "The built-in groups are"),
        ("settings show invite_requird", 2, "Did you mean invite_required"),
        ("settings set invite_required=no", 2, "expected true or false"),
        ("settings set name=A name=B", 2, "'name' is set twice"),
        ("settings set media_preview_size=7", 2, "expected 100 or 150 or 200"),
        ("settings set message_retention_days=-1", 2, "expected a number or unlimited"),
        ("users quota 4 99999999999999999999", 2, "a number from 1 to 1000000000 or realm_default"),
        ("users quota 4 1000000001", 1, "must be 1 to 1000000000"),
        ("settings set signup_announcements_channel_id=x", 2, "Channel 'x' doesn't exist"),
        ("settings set password_sign_in=false", 1, "At least one sign-in method"),
        ("settings set enable_spectator_access=true name=", 1, "name"),
        ("sessions end 1", 1, "This session doesn't exist."),
        ("agents end 1", 1, "This agent doesn't exist."),
        ("invitations revoke 1", 1, "No invitation has the ID 1."),
        ("groups show baristas", 1, "Group 'baristas' doesn't exist."),
        ("groups create name=everyone2 members=x@example.com", 1, "No account has the address"),
        ("groups create description=x", 2, "name is required."),
        ("groups create name=x can_join_group=y", 2, "The built-in groups are"),
        ("groups create name=x is_system_group=true", 2, "Unknown setting 'is_system_group'"),
        ("groups change moderators members=", 2, "Unknown setting 'members'"),
        ("groups add owners ann@example.com", 1, "members of a system group"),
        ("groups add owners", 2, "Name at least one person"),
        ("groups deactivate owners", 1, "group"),
        (
            "linkifiers add pattern=( url_template=https://x.test",
            1,
            "isn't a valid regular expression",
        ),
        ("linkifiers add pattern=x", 2, "url_template is required."),
        ("linkifiers remove 9", 1, "Linkifier '9' doesn't exist."),
        ("playgrounds add name=x language=Rust url_template=https://x.test", 1, "variable 'code'"),
        ("domains add domain=x allow_subdomains=perhaps", 2, "expected true or false"),
        ("domains add domain=x allow_subdomains=true", 1, "isn't a valid domain name"),
        ("domains add domain=example.com", 2, "allow_subdomains is required."),
        ("folders change Teams name=x", 1, "Folder 'Teams' doesn't exist."),
        ("fields create name=x type=colour", 2, "expected text or long-text or choice"),
        ("fields create name=x type=choice", 1, "at least one"),
        ("fields create name=x type=date choices=a", 1, "don't accept field data"),
        (
            "fields create name=x type=account account=myspace",
            1,
            "This type of external account doesn't exist.",
        ),
        ("emoji add x /dev/zero/no.png", 1, "/dev/zero/no.png"),
        ("emoji add Ä /dev/null", 1, "lowercase letters"),
        ("emoji add x /dev/null", 1, "image"),
        ("emoji add x /dev/zero", 1, "larger than the 5 MiB limit"),
        (f"groups show {'9' * 5000}", 1, "doesn't exist."),
        (f"channels show {'9' * 5000}", 1, "doesn't exist."),
        (f"users show {'9' * 5000}", 1, "No account has"),
        ("emoji remove x", 1, "Emoji 'x' doesn't exist."),
        ("defaults set color_scheme=7", 2, "expected 1 or 2 or 3"),
        ("defaults set default_language=de", 2, "Unknown setting 'default_language'"),
        ("defaults set notification_sound=moo", 1, "This notification sound doesn't exist."),
        ("files list --of nobody@example.com", 1, "No account has the address"),
        ("files remove 9", 1, "No file has the ID 9."),
    ],
)
def test_invalid_commands_are_refused_in_one_sentence(
    shared_lines: Lines, line: str, code: int, sentence: str
) -> None:
    found = shared_lines.refused(line)
    assert found[0] == code
    assert sentence in found[1]


def test_quotas_and_announcements(lines: Lines) -> None:
    lines.add("ben")
    assert lines.typed("settings set upload_quota_per_user_mib=5")["settings"] == {
        "upload_quota_per_user_mib": 5
    }
    room = {"email": "ben@example.com", "used": 0, "limit": 5 * 2**20}
    assert lines.typed("users quota ben@example.com") == {
        **room,
        "upload_quota_mib": "realm_default",
    }
    assert lines.typed("users quota ben@example.com 7")["limit"] == 7 * 2**20
    assert lines.typed("users quota ben@example.com unlimited")["limit"] is None
    code, sentence = lines.refused("users quota ben@example.com much")
    assert code == 2
    assert "Invalid value 'much' for MIB" in sentence
    assert lines.typed("settings set upload_quota_per_user_mib=unlimited")["settings"] == {
        "upload_quota_per_user_mib": "unlimited"
    }

    assert lines.typed("announce list")["announcements"] == []
    posted = lines.typed("announce post", "Down at nine.", "--hours", "2")
    (told,) = lines.typed("announce list")["announcements"]
    assert told == posted
    assert (told["content"], told["ends_at"] - told["posted_at"]) == ("Down at nine.", 7200)
    assert lines.typed(f"announce end {told['id']}")
    assert lines.typed("announce list")["announcements"] == []
    assert "announcement doesn't exist" in lines.refused("announce end 9")[1]


@pytest.fixture(scope="module")
def shared_lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    place = Lines(tmp_path_factory.mktemp("shared") / "data")
    place.create_organization()
    return place


def leaves(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands, with their names."""
    inner = getattr(command, "commands", None)
    if inner is None or (names and command.invoke_without_command):
        yield names, command
    for name, one in (inner or {}).items():
        yield from leaves(one, *names, name)


COMMANDS = {names: one for names, one in leaves(command_line()) if not one.hidden}
"""Without those that only the server runs."""


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_commands_are_documented_and_have_json(names: tuple[str, ...]) -> None:
    command = COMMANDS[names]
    document = DOCUMENT.read_text()
    assert f"`tertulia {' '.join(names)}" in document or f"(`{' '.join(names)}`)" in document
    assert command.epilog.startswith("Example: ")
    flags = {flag for one in command.params for flag in one.opts}
    assert "--json" in flags or names == ("serve",)


NUMBERS = [
    (names, one.opts[0])
    for names, command in COMMANDS.items()
    for one in command.params
    if "float" in one.type.name
]


@pytest.mark.parametrize("typed", ["nan", "inf", "-inf", "1e999", "-1", "much"])
def test_invalid_numbers_are_refused(typed: str) -> None:
    """Comparisons with nan or inf would be wrong."""
    assert len(NUMBERS) >= 3
    for names, flag in NUMBERS:
        with row(names, flag):
            result = run(*names, f"{flag}={typed}")
            assert result.exit_code == 2
            assert flag in result.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("us", {"users", "usage"}),
        ("users de", {"deactivate"}),
        ("settings set invite_r", {"invite_required"}),
        ("groups create can_man", {"can_manage_group"}),
        ("defaults show color", {"color_scheme"}),
        ("users list --role mod", {"moderator"}),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_names(shell: str, typed: str, offered: set[str]) -> None:
    words = f"tertulia {typed}"
    environment = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(len(typed.split()))},
        "zsh": {"_TYPER_COMPLETE_ARGS": words},
        "fish": {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    variables = {"_TERTULIA_COMPLETE": f"complete_{shell}", **environment[shell]}
    result = CliRunner().invoke(APP, [], prog_name="tertulia", env=variables)
    assert {name for name in offered if name not in result.stdout} == set()
    assert "deactivate" in offered or "deactivate" not in result.stdout
