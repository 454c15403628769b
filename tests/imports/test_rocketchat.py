"""Importing dumps of Rocket.Chat's database."""

import contextlib
import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tertulia.app.founding import opened_log
from tertulia.imports import references
from tertulia.imports.records import SourceMessage, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.rocketchat.bson import BadBson, documents
from tertulia.imports.rocketchat.dump import Dump
from tertulia.imports.rocketchat.markup import RocketChatMarkup
from tertulia.imports.rocketchat.source import RocketChatDump
from tertulia.imports.source import SourceError
from tertulia.model.messages import Flag
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.imports import rocketchat_dump as made
from tests.imports.invented import imported
from tests.imports.mattermost_export import PNG
from tests.imports.test_importer import contents

pytestmark = pytest.mark.anyio

ENCODED = bytes.fromhex(
    "e6000000025f69640012000000414141414141414141414141414141414100106e0003000000126269670000000000"
    "00010000016400000000000000f83f0a7800076f0065a1b2c3d4e5f60718293a4b0562696e0003000000006162630b"
    "7265006100690013646563000f000000000000000000000000003e30117473740002000000010000000d636f646500"
    "0200000078000f637300160000000200000078000c0000001061000100000000ff6d6b0009747300007073318f0100"
    "00037375620023000000046c001b000000103000010000000231000400000074776f0008320001000000"
)
"""A document with values of all types, encoded by MongoDB's own library."""


def opened(tmp_path: Path, collections: Any, *, is_packed: bool = False) -> RocketChatDump:
    place = made.written(tmp_path / "dump", collections, is_packed=is_packed)
    return RocketChatDump(place, tmp_path / "work")


def everything(
    source: RocketChatDump,
) -> tuple[SourceOrganization, list[SourceMessage], dict[str, Any]]:
    source.survey()
    report = ImportReport()
    organization = source.organization(report)
    messages = [one for batch in source.messages("", report) for one in batch.messages]
    return organization, messages, report.to_json()


def reasons(remarks: list[dict[str, Any]]) -> dict[str, int]:
    return {f"{one['kind']}: {one['reason']}": one["count"] for one in remarks}


def test_people_rooms_and_teams(tmp_path: Path) -> None:
    organization, _, report = everything(opened(tmp_path, made.sample()))
    people = {one.key: one for one in organization.users}
    assert organization.name == "Harbor Café"
    ann = people["id-ann"]
    assert (ann.full_name, ann.address, ann.role) == ("Ann Sample", "ann@example.com", Role.OWNER)
    assert ann.settings == {"default_language": "pt-br", "twenty_four_hour_time": True}
    assert ann.profile == {"nickname": "Annie", "bio": "Bakes."}
    assert ann.alert_words == ("scones",)
    assert ann.joined_at == made.BEGAN // 1000 - 6000
    assert ann.avatar is not None
    assert ann.avatar.place == "grid/avatars/av1"
    assert (people["id-gus"].role, people["id-gus"].is_active) == (Role.GUEST, False)
    assert people["id-kettle"].bot is not None
    assert people["id-ghost"].is_placeholder
    assert "id-visitor" not in people
    channels = {one.key: one for one in organization.channels}
    assert sorted(channels) == ["GENERAL", "SECRET", "TEAM"]
    general, team = channels["GENERAL"], channels["TEAM"]
    assert (general.name, general.description) == ("General", "All of us · Hi")
    assert general.is_default
    assert general.permissions["can_administer_channel_group"].people == ("id-ann",)
    assert (team.is_private, team.is_archived, team.folder) == (True, True, "T1")
    assert team.permissions["can_send_message_group"].groups == ("role:administrators",)
    # A private discussion in a public channel must not become public.
    assert (channels["SECRET"].name, channels["SECRET"].is_private) == ("Surprise", True)
    assert [(one.name, one.members) for one in organization.groups] == [("bakers", ("id-ben",))]
    subscriptions = {(one.channel, one.user): one for one in organization.subscriptions}
    assert len(subscriptions) == 4
    assert subscriptions["GENERAL", "id-ann"].pin_to_top
    assert subscriptions["GENERAL", "id-ben"].is_muted
    assert subscriptions["TEAM", "id-ben"].settings == {"desktop_notifications": True}
    assert [one.name for one in organization.emoji] == ["scone", "bun"]
    assert reasons(report["skipped"]) == {
        "messages: They aren't in Rocket.Chat's format.": 1,
        "messages: They are live chats with visitors.": 1,
        "messages: They are end-to-end encrypted, and only their authors' devices can read"
        " them.": 1,
        "previous versions: They are previous versions of messages.": 1,
        "notices: Notices, for example that someone joined a channel, aren't imported.": 1,
        "reactions: The person isn't in the dump.": 1,
        "files: They are in other storage. Download them, and pass the directory with --files.": 1,
        "people: They are visitors of live chats.": 1,
        "favorites: Only channels can be pinned here.": 1,
    }


def test_messages_are_in_order_and_threads_and_discussions_are_topics(tmp_path: Path) -> None:
    _, messages, _ = everything(opened(tmp_path, made.sample()))
    ben = references.person("id-ben", "@ben")
    said = references.person("id-ann", "ann", silent=True)
    assert [(one.channel, one.topic, one.content, one.people) for one in messages] == [
        ("GENERAL", "", f"Morning @**all** and {ben}, see {references.channel('TEAM', '#team')}"
         " and #nowhere", ()),
        ("GENERAL", "Who has the key?", "In the drawer", ()),
        ("SECRET", "", "A cake for Ann", ()),
        (None, "", "psst", ("id-ann", "id-ben")),
        ("GENERAL", "Who has the key? (2)", "Who has the **key**?", ()),
        ("GENERAL", "Who has the key? (2)", f"*I* do, {references.group('T1', '@bakers')}.", ()),
        ("GENERAL", "", f"{said} [said]({references.message_url(1, made.LINK + 'hello')}):\n"
         f"```quote\nMorning @**all**\n```\nGood morning!"
         f" [message]({references.message_url(5, made.LINK + 'root')})", ()),
        ("GENERAL", "", f"The **menu**\n[menu.png](/user_uploads/{messages[7].attachments[0].path})"
         "\n(missing file: plan.pdf)", ()),
        (None, "", "yes", ("id-ann", "id-ben")),
        ("GENERAL", "", "**Boiler**\nHot\n**[99 °C](https://x.y)**", ()),
        ("GENERAL", "", "Boo", ()),
    ]  # fmt: skip
    assert [one.key for one in messages if one.is_linked] == [1, 5]
    assert messages[0].flags == {"id-ben": Flag.MENTIONED}
    root = messages[4]
    assert root.is_pinned
    assert root.flags == {"id-ann": Flag.STARRED}
    assert [(one.user, one.code) for one in root.reactions] == [
        ("id-ann", "1f44d"),
        ("id-ann", ":bun:"),
    ]
    assert (messages[5].edits[0].user, messages[5].edits[0].at) == (
        "id-ben",
        made.BEGAN // 1000 + 780,
    )
    # Ben last read in minute 11. Gus is deactivated, and Ann has nothing unread.
    assert [one.unread_by for one in messages[4:]] == [
        (), ("id-ben",), (), ("id-ben",), ("id-ben",), ("id-ben",), ("id-ben",),
    ]  # fmt: skip


@pytest.mark.parametrize("is_packed", [False, True])
def test_files_are_put_together_from_their_pieces(tmp_path: Path, is_packed: bool) -> None:
    source = opened(tmp_path, made.sample(), is_packed=is_packed)
    source.survey()
    for place in ("grid/uploads/up1", "grid/avatars/av1", "grid/emoji/scone.png"):
        with source.open(place) as file:
            assert file.read(7) + file.read() == PNG
    for place in ("grid/uploads/none", "grid/else/up1", "disk/../users.bson", "disk/none", ""):
        with pytest.raises(FileNotFoundError):
            source.open(place)
    source.close()


def test_files_outside_of_the_database(tmp_path: Path) -> None:
    place = made.written(tmp_path / "dump", made.sample())
    files = tmp_path / "files"
    files.mkdir()
    (files / "up2.pdf").write_bytes(b"plan")
    source = RocketChatDump(place, tmp_path / "work", files)
    _, messages, _ = everything(source)
    attachment = messages[7].attachments[1]
    with source.open(attachment.file.place) as file:
        assert file.read() == b"plan"


async def test_the_organization_that_it_becomes(config: Config, tmp_path: Path) -> None:
    progress = await imported(config, opened(tmp_path, made.sample()))
    assert progress.report.imported["messages"] == 11
    assert progress.report.imported["files"] == 1
    assert progress.report.imported["custom emoji"] == 2
    async with opened_log(config, print) as log:
        ids = {one.full_name: one.id for one in log.state.users}
        channels = {one.name: one.id for one in log.state.channels}
    found = await contents(config)
    html = [row[7] for row in found["messages"]]
    assert f'data-user-id="{ids["Ben Sample"]}"' in html[0]
    assert f'href="/#narrow/channel/{channels["General"]}-General/topic/' in html[6]
    assert 'class="user-group-mention"' in html[5]
    assert {row[2] for row in found["reactions"]} == {"+1", "bun"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("*bold* _italic_ ~struck~", "**bold** *italic* ~~struck~~"),
        ("**bold** __italic__ ~~struck~~", "**bold** *italic* ~~struck~~"),
        ("* item\n* *other*", "* item\n* **other**"),
        ("2*3*4 snake_case_name a~b~c", "2*3*4 snake_case_name a~b~c"),
        ("*_both_*", "***both***"),
        ("`*code*` and *x*", "`*code*` and **x**"),
        ("```\n*code* @ann\n```", "```\n*code* @ann\n```"),
        ("<https://a.b/_c_|the *link*>", "[the *link*](https://a.b/_c_)"),
        ("https://a.b/_c_/*d*", "https://a.b/_c_/*d*"),
        ("[*x*](https://a.b/_c_)", "[**x**](https://a.b/_c_)"),
        (r"\[x_1 * y_1\] and \(a_b\)", "\n```math\nx_1 * y_1\n```\n and $$a_b$$"),
        ("@ann: (@ann) x@ann @all. @anna", "{ann}: ({ann}) x@ann @**all**. @anna"),
        ("#room, #room. a#room #12", "{room}, {room}. a#room #12"),
        (":slight_smile: :man_tone2: :bun:", ":smile: :man: :bun:"),
        ("\x01" + "0\x01 \x02P\x1fk\x1fx\x03", "0 Pkx"),
        ("> *quote*", "> **quote**"),
    ],
)
def test_markup(given: str, expected: str) -> None:
    markup = RocketChatMarkup({"ann": "a1"}, {}, {"room": "r1"}, {"bun"})
    written = expected.format(
        ann=references.person("a1", "@ann"), room=references.channel("r1", "#room")
    )
    assert markup.markdown(given) == written


def test_links_to_messages() -> None:
    markup = RocketChatMarkup({}, {}, {}, ())
    url = f"{made.LINK}abc"
    assert markup.markdown(f"see {url}, or [this]({url})") == (
        f"see [message]({references.message_url('abc', url)}),"
        f" or [this]({references.message_url('abc', url)})"
    )
    assert markup.linked == {"abc"}
    assert references.with_message_keys(markup.markdown(url), {"abc": 7}) == (
        f"[message]({references.message_url(7, url)})"
    )
    assert references.with_message_keys(markup.markdown(url), {}) == f"[message]({url})"


def test_exports_in_json(tmp_path: Path) -> None:
    def extended(value: Any) -> Any:
        match value:
            case made.Time():
                return {"$date": {"$numberLong": str(int(value))}}
            case bytes():
                import base64

                text = base64.b64encode(value).decode()
                return {"$binary": {"base64": text, "subType": "00"}}
            case list():
                return [extended(one) for one in value]
            case dict():
                return {name: extended(one) for name, one in value.items()}
        return value

    directory = tmp_path / "json"
    directory.mkdir()
    for name, collection in made.sample().items():
        lines = [json.dumps(extended(one)) for one in collection]
        (directory / f"{name}.json").write_text("\n".join(lines) + "\n")
    _, whole, _ = everything(opened(tmp_path, made.sample()))
    source = RocketChatDump(directory, tmp_path / "work2")
    _, messages, _ = everything(source)
    assert [(m.topic, m.sent_at) for m in messages] == [(m.topic, m.sent_at) for m in whole]
    with source.open("grid/uploads/up1") as file:
        assert file.read() == PNG
    (directory / "users.json").write_text('[{"_id": "x"}]')
    with pytest.raises(SourceError, match="without --jsonArray"):
        RocketChatDump(directory, tmp_path / "work3").survey()


def test_exports_in_json_that_are_nested_too_deeply(tmp_path: Path) -> None:
    refused = []
    # Whether decoding or converting exceeds Python's limit first depends on the depth.
    for depth in range(100, 3000, 100):
        nested = '{"a":' * depth + "1" + "}" * depth
        (tmp_path / "users.json").write_text(f'{{"_id": "x", "settings": {nested}}}')
        try:
            list(Dump(tmp_path).read("users", {"settings"}))
        except SourceError as error:
            refused.append((depth, str(error)))
    assert refused
    assert refused[0][0] > 100
    assert refused[-1][0] == 2900
    assert all("is nested too deeply" in reason for _, reason in refused)


def test_dumps_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="isn't a dump"):
        RocketChatDump(tmp_path / "empty", tmp_path / "work")
    archive = tmp_path / "dump.archive"
    for content in (b"\x6d\xe2\x99\x81rest", gzip.compress(b"\x6d\xe2\x99\x81rest")):
        archive.write_bytes(content)
        with pytest.raises(SourceError, match="without `--archive`"):
            RocketChatDump(archive, tmp_path / "work")
    place = made.written(tmp_path / "two", made.sample())
    (place / "rocketchat").rename(place / "one")
    made.written(place, made.sample())
    with pytest.raises(SourceError, match=r"several databases \(one, rocketchat\)"):
        RocketChatDump(place, tmp_path / "work")
    for is_packed, ending in ((False, ".bson"), (True, ".bson.gz")):
        place = made.written(tmp_path / f"half{ending}", made.sample(), is_packed=is_packed)
        broken = place / "rocketchat" / f"rocketchat_message{ending}"
        broken.write_bytes(broken.read_bytes()[:-40])
        with pytest.raises(SourceError, match=f"rocketchat_message{ending} can't be read"):
            RocketChatDump(place, tmp_path / "work").survey()
        assert not list((tmp_path / "work").glob("*.read/findings"))


def test_crafted_collections(tmp_path: Path) -> None:
    collections = made.sample()
    collections["rocketchat_room"] += [
        made.room("A", prid="B"),
        made.room("B", prid="A"),
        made.room("ODD", "z"),
        {"_id": 5, "t": "c"},
    ]
    names = ("clockMode", "sendOnEnter", "themeAppearence", "highlights")
    odd: dict[str, Any] = {name: [{}] for name in names}
    collections["users"].append(
        made.user("odd", settings={"preferences": {**odd, "emailNotificationMode": {}}})
    )
    collections["rocketchat_message"] = [
        made.message("m1", "ann", "circle", 1, rid="A"),
        made.message("m2", "ann", "odd", 1, rid="ODD"),
        made.message("m3", "ann", "nowhere", 1, rid="X"),
        made.message("m4", "ann", "reactions", 1, reactions={":+1:": 5, "x": {"usernames": [3]}}),
        made.message("m5", "ann", "late", 1, ts=made.Time(2**62)),
        made.message("m6", "ann", "self", 1, tmid="m6"),
        made.message("m7", "ann", "", 1, attachments=[{"message_link": [5], "fields": 7}, {}]),
        made.message("m9", "ann", "", 1, files=[{"_id": "x"}], reactions=None),
        made.message("m8", "ann", "files", 1, files=[{"_id": "../../x"}]),
    ]
    _, messages, report = everything(opened(tmp_path, collections))
    assert [one.content.split("\n")[0] for one in messages] == [
        "circle",
        "reactions",
        "self",
        "(missing file: x)",
        "files",
    ]
    found = reasons(report["skipped"])
    assert found["rooms: They aren't in Rocket.Chat's format."] == 1
    assert found["messages: The room isn't in the dump."] == 1
    assert found["messages: The time isn't valid."] == 1
    (tmp_path / "twice").mkdir()
    twice = made.sample()
    twice["users"].append(made.user("ann"))
    with pytest.raises(SourceError, match="two people with the same ID"):
        opened(tmp_path / "twice", twice).survey()


def test_bson_of_another_encoder() -> None:
    [(offset, found)] = documents(io.BytesIO(ENCODED))
    assert offset == 0
    assert found == {
        "_id": "A" * 17, "n": 3, "big": 2**40, "d": 1.5, "x": None,
        "o": "65a1b2c3d4e5f60718293a4b", "bin": b"abc", "re": None, "dec": None, "tst": None,
        "code": "x", "cs": None, "mk": None, "ts": 1_714_521_600_000,
        "sub": {"l": [1, "two", True]},
    }  # fmt: skip
    twice = list(documents(io.BytesIO(ENCODED * 2), {"n", "sub"}))
    assert twice == [(0, {"n": 3, "sub": found["sub"]}), (230, {"n": 3, "sub": found["sub"]})]


def test_damaged_bson_is_refused() -> None:
    choose = random.Random(7)
    for _ in range(3000):
        data = bytearray(ENCODED)
        for _ in range(choose.randint(1, 5)):
            data[choose.randrange(len(data))] = choose.randrange(256)
        with contextlib.suppress(BadBson):
            list(documents(io.BytesIO(bytes(data[: choose.randint(1, len(data))]))))
    nested: dict[str, Any] = {}
    for _ in range(100):
        nested = {"x": nested}
    with pytest.raises(BadBson, match="nested too deeply"):
        list(documents(io.BytesIO(made.bson(nested))))
