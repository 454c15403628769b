"""Importing bulk exports of Mattermost."""

import json
from pathlib import Path
from typing import Any

import pytest

from tertulia.app.founding import opened_log
from tertulia.imports import references
from tertulia.imports.mattermost.markup import MattermostMarkup
from tertulia.imports.mattermost.source import MattermostExport
from tertulia.imports.records import SourceMessage, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.source import SourceError
from tertulia.model.messages import Flag
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.imports import mattermost_export as made
from tests.imports.invented import imported
from tests.imports.test_importer import contents

pytestmark = pytest.mark.anyio

ANN = references.person("ann", "@ann")


def opened(tmp_path: Path, lines: list[Any], team: str = "") -> MattermostExport:
    place = made.written(tmp_path / "export.zip", lines)
    return MattermostExport(place, tmp_path / "work", team)


def everything(
    source: MattermostExport,
) -> tuple[SourceOrganization, list[SourceMessage], dict[str, Any]]:
    source.survey()
    report = ImportReport()
    organization = source.organization(report)
    messages = [one for batch in source.messages("", report) for one in batch.messages]
    return organization, messages, report.to_json()


def reasons(report: dict[str, Any]) -> dict[str, int]:
    return {f"{one['kind']}: {one['reason']}": one["count"] for one in report["skipped"]}


def test_people_and_channels(tmp_path: Path) -> None:
    organization, _, report = everything(opened(tmp_path, made.sample()))
    people = {one.key: one for one in organization.users}
    assert organization.name == "Harbor Café"
    assert organization.settings == {"invite_required": True}
    ann = people["ann"]
    assert (ann.full_name, ann.address, ann.role) == ("Ann Sample", "ann@example.com", Role.OWNER)
    assert ann.settings == {
        "default_language": "de",
        "twenty_four_hour_time": True,
        "enable_channel_desktop_notifications": True,
        "enable_offline_email_notifications": False,
    }
    assert ann.profile == {"nickname": "Annie", "position": "Baker"}
    assert ann.alert_words == ("scones",)
    assert ann.status is not None
    assert (ann.status.text, ann.status.emoji) == ("Break", "tea")
    assert people["gus"].role is Role.GUEST
    assert not people["old.ed"].is_active
    assert people["kettle"].bot is not None
    assert people["kettle"].bot.owner == "ann"
    assert people["ghost"].is_placeholder
    channels = {one.key: one for one in organization.channels}
    square = channels["harbor/town-square"]
    assert square.description == "All of us · [Menu](https://a.b)"
    assert square.is_default
    assert square.created_at == made.BEGAN // 1000 + 60
    assert channels["harbor/cellar"].is_private
    assert channels["harbor/cellar"].permissions["can_administer_channel_group"].people == ("ann",)
    assert channels["harbor/old"].is_archived
    ben = next(one for one in organization.subscriptions if one.user == "ben")
    assert (ben.is_muted, ben.pin_to_top) == (True, True)
    assert ben.settings == {"desktop_notifications": True}
    assert [one.name for one in organization.emoji] == ["scone"]
    assert reasons(report) == {
        "permission schemes and roles: Set permissions after the import.": 1,
        "notices: Notices, for example that someone joined a channel, aren't imported.": 1,
        "files: The file isn't in the export. Create the export with attachments.": 1,
        "favorite direct messages: Direct messages can't be pinned here.": 1,
        "headers of direct messages: Direct messages don't have headers here.": 1,
    }


def test_messages_are_in_order_and_threads_are_topics(tmp_path: Path) -> None:
    _, messages, _ = everything(opened(tmp_path, made.sample()))
    assert [one.key for one in messages] == list(range(1, len(messages) + 1))
    assert [(one.topic, one.content.split("\n")[0], one.people) for one in messages] == [
        ("", f"Morning @**all**, see {references.channel('harbor/cellar', '~cellar')}"
         " and ~nowhere", ()),
        ("", "Boo", ()),
        ("", "psst", ("ann", "ben")),
        ("", "yes?", ("ann", "ben")),
        ("", "note to self", ("ann",)),
        ("Who has the key?", "Who has the **key**?", ()),
        ("", "The menu", ()),
        ("Who has the key?", f"I do, {references.person('ben', '@ben')}.", ()),
        ("Who has the key?", "Thanks!", ()),
        ("", "**Boiler**", ()),
    ]  # fmt: skip
    key = messages[5]
    assert key.is_pinned
    assert key.flags == {"ann": Flag.STARRED, "old.ed": Flag.STARRED | Flag.RECORD}
    assert [(one.user, one.code, one.name) for one in key.reactions] == [
        ("ann", "1f937-200d-2642", "man_shrugging"),
        ("ann", ":scone:", "scone"),
        ("gus", "1f44d", "+1"),
    ]
    assert messages[7].flags == {"ben": Flag.MENTIONED}
    assert messages[8].edits[0].at == made.BEGAN // 1000 + 60 * 15
    menu = messages[6]
    assert menu.content == (
        f"The menu\n[a b.png](/user_uploads/{menu.attachments[0].path})\n(missing file: lost.pdf)"
    )
    assert messages[9].content == "**Boiler**\n**[Hot](https://x.y)**\n99 °C"
    # Ann and Gus last read in minute 11, and Ben later. Their own messages are read.
    assert [one.unread_by for one in messages[5:]] == [
        (), (), ("gus",), ("ann", "gus"), ("ann", "gus"),
    ]  # fmt: skip


def test_reading_continues_at_a_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tertulia.imports.sorting.BATCH", 3)
    monkeypatch.setattr("tertulia.imports.sorting.RUN_BYTES", 900)
    monkeypatch.setattr("tertulia.imports.sorting.MAX_RUNS", 2)
    _, whole, _ = everything(opened(tmp_path, made.sample()))
    # The same file, because an archive has the time when it was written.
    source = MattermostExport(tmp_path / "export.zip", tmp_path / "work", "")
    batches = list(source.messages("", ImportReport()))
    assert [len(one.messages) for one in batches] == [3, 3, 3, 1]
    rest = list(source.messages(batches[1].position, ImportReport()))
    assert [one for batch in rest for one in batch.messages] == whole[6:]
    [scratch] = (tmp_path / "work").glob("*.read")
    assert sorted(one.name for one in scratch.iterdir()) == ["findings", "messages", "organization"]
    assert scratch.stat().st_mode & 0o077 == 0


def test_teams_are_one_organization_or_one_is_chosen(tmp_path: Path) -> None:
    lines = made.sample()
    lines[3:3] = [made.team("pier", "Pier"), made.channel("town-square", "Town square", "pier")]
    lines.insert(10, made.user("pia", team="pier", channels=[made.membership("town-square")]))
    lines += [
        made.post("pia", "Ahoy", 2, team="pier"),
        made.post("pia", "I was here", 2),
        made.direct(["pia", "ann"], "pia", "hi", 8),
    ]
    (tmp_path / "all").mkdir()
    organization, messages, _ = everything(opened(tmp_path / "all", lines))
    assert [one.name for one in organization.channels if one.name.endswith("quare")] == [
        "Pier / Town square",
        "Harbor Café / Town Square",
    ]
    assert [one.key for one in organization.folders] == ["harbor", "pier"]
    assert len(messages) == 13
    organization, messages, report = everything(opened(tmp_path, lines, "harbor"))
    assert {one.name for one in organization.channels} == {"Town Square", "Cellar", "Old"}
    assert len(messages) == 11
    pia = next(one for one in organization.users if one.key == "pia")
    assert (pia.full_name, pia.is_active) == ("Pia Sample", False)
    assert reasons(report)["messages: They are in other teams."] == 1
    with pytest.raises(SourceError, match=r"no team named 'moon'\. It has: harbor, pier"):
        opened(tmp_path, lines, "moon").survey()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("hi @ann, and @ann.", f"hi {ANN}, and {ANN}."),
        ("a@ann.com @annie `@ann` **@ann**", "a@ann.com @annie `@ann` **@ann**"),
        ("(@ANN)", f"({references.person('ann', '@ANN')})"),
        ("```\n@ann :man-shrugging:\n```\n@here!", "```\n@ann :man-shrugging:\n```\n@**all**!"),
        ("```latex\nx^2 @ann\n```\nso", "```math\nx^2 @ann\n```\nso"),
        ("~~struck~~ ~cellar", f"~~struck~~ {references.channel('harbor/cellar', '~cellar')}"),
        ("![x](https://a.b/c.png =100x50)", "![x](https://a.b/c.png)"),
        (":man-shrugging: at 10:20:30 :scone:", ":man_shrugging: at 10:20:30 :scone:"),
        ("\x02P\x1fann\x1fx\x03 forged\x00", "Pannx forged"),
        ("<b>x</b> #tag", "<b>x</b> #tag"),
        ("unclosed ``` @ann", f"unclosed ``` {ANN}"),
        ("~~~\n@ann", "~~~\n@ann"),
    ],
)  # fmt: skip
def test_markup(given: str, expected: str) -> None:
    converter = MattermostMarkup({"ann"}, {"harbor/cellar"})
    assert converter.markdown(given, "harbor") == expected


def test_a_long_post_becomes_several_messages(tmp_path: Path) -> None:
    code = "```python\n" + "print('hello world')\n" * 700 + "```\nend"
    lines = [*made.sample()[:11], made.post("ann", code, 5, replies=[made.reply("ben", "ok", 9)])]
    _, messages, report = everything(opened(tmp_path, lines))
    assert len(messages) == 3
    assert {one.topic for one in messages} == {"print('hello world')"}
    assert messages[0].content.endswith("```")
    assert messages[1].content.startswith("```python\nprint")
    assert sum(one.content.count("hello") for one in messages) == 700
    assert "They were too long, so they were split." in [one["reason"] for one in report["changed"]]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "isn't a bulk export|no teams"),
        ('{"type":"team","team":{"name":"a"}}\n', "doesn't begin with a version"),
        ('{"type":"version","version":2}\n', "Only 1 is known"),
        ('{"type":"version","version":1}\n', "no teams"),
        ('{"type":"version","version":1}\n{"type":"team","te', "middle of a line"),
    ],
)
def test_a_file_that_is_no_export(tmp_path: Path, content: str, error: str) -> None:
    place = tmp_path / "import.jsonl"
    place.write_text(content)
    with pytest.raises(SourceError, match=error):
        MattermostExport(place, tmp_path / "work").survey()


def test_crafted_lines_are_skipped_with_a_reason(tmp_path: Path) -> None:
    begun = json.dumps(made.post("ann", "deep", 2)["post"])[:-1]
    deep = '{"type": "post", "post": ' + f'{begun}, "replies": [' * 5000
    lines = [
        *made.sample()[:11],
        made.post("ann", "fine", 1),
        made.post("ann", "no time", 1, create_at=-5),
        made.post("ann", "far", 1, create_at=2**60),
        made.post("ann", "wrong", 1, props=[]),
        made.post("ann", "", 1),
        made.post("ann", "elsewhere", 1, channel="nowhere"),
        made.post("ann", "files", 1, attachments=[{"path": "../../etc/passwd"}, {"path": "a\0b"}]),
        {"type": "post"},
        {"type": "surprise"},
        deep + "]}" * 5000 + "}",
        made.user("late"),
        ["list"],
    ]
    _, messages, report = everything(opened(tmp_path, lines))
    assert [one.content.split("\n")[0] for one in messages] == ["fine", "files"]
    assert reasons(report) == {
        "permission schemes and roles: Set permissions after the import.": 1,
        "messages: The time isn't valid.": 2,
        "messages: The message is empty.": 1,
        "messages: The channel isn't in the export.": 1,
        "files: The file isn't in the export. Create the export with attachments.": 2,
        "lines: The line has no content.": 1,
        "lines: The line's type is unknown.": 1,
        "lines: A team, channel, or person comes after the first post.": 1,
        "lines: The line isn't in Mattermost's format.": 3,
    }
    twice = [*made.sample()[:11], made.sample()[6]]
    (tmp_path / "twice").mkdir()
    source = opened(tmp_path / "twice", twice)
    source.survey()
    with pytest.raises(SourceError, match="two people with the same ID"):
        source.organization(ImportReport())


async def test_the_organization_that_it_becomes(config: Config, tmp_path: Path) -> None:
    source = opened(tmp_path, made.sample())
    progress = await imported(config, source)
    assert progress.report.imported["messages"] == 10
    assert progress.report.imported["files"] == 1
    assert progress.report.imported["custom emoji"] == 1
    async with opened_log(config, print) as log:
        state = log.state
        ids = {one.full_name: one.id for one in state.users}
        assert state.users[ids["Ben Sample"]].address == "ben@example.com"
        assert {one.name for one in state.channels} == {"Town Square", "Cellar", "Old"}
    found = await contents(config)
    html = [row[7] for row in found["messages"]]
    assert f'data-user-id="{ids["Ben Sample"]}"' in html[7]
    assert "#Cellar</a>" in html[0]
    assert 'href="/user_uploads/1/' in html[6]
    assert {row[2] for row in found["reactions"]} == {"man_shrugging", "scone", "+1"}
    assert {row[4] for row in found["messages"]} >= {"Who has the key?", ""}


def test_only_the_file_of_lines(tmp_path: Path) -> None:
    place = tmp_path / "bulk.jsonl"
    place.write_text("".join(json.dumps(line) + "\n" for line in made.sample()))
    survey = MattermostExport(place, tmp_path / "work").survey()
    assert (survey.name, survey.origin, survey.messages) == (
        "Harbor Café",
        "Mattermost 9.5.1",
        10,
    )
