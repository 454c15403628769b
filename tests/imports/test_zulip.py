"""Importing Zulip's exports: every kind of record, at several feature levels, and damaged
exports."""

import asyncio
import json
import os
import random
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tertulia.app.founding import opened_log
from tertulia.imports import preparation
from tertulia.imports.lock import DIRECTORY, import_lock
from tertulia.imports.records import Holders, SourceMessage, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.source import SourceError
from tertulia.imports.zulip import tables as zulip_tables
from tertulia.imports.zulip.links import LocalLinks
from tertulia.imports.zulip.source import ZulipExport
from tertulia.imports.zulip.subscriptions import LAST, logged_spans
from tertulia.imports.zulip.tables import tables
from tertulia.jobs.imports import only_import
from tertulia.jobs.programs import environment_of
from tertulia.model.channels import TopicsPolicy
from tertulia.model.groups import Members, SystemGroup
from tertulia.model.messages import Flag
from tertulia.model.reactions import EmojiKind
from tertulia.model.users import BotKind, Role
from tertulia.service.config import Config
from tertulia.store.consistency import dangling
from tertulia.store.database import READING
from tertulia.store.store import database_at
from tertulia.wire.api.users.objects import UserFormat, user_object
from tests.cli.support import Place, run
from tests.imports.invented import Killed, imported, kill_after
from tests.imports.test_importer import contents, unread_ids
from tests.imports.zulip_export import (
    ANN,
    ATTIC,
    BEN,
    CLEO,
    CLOSED,
    COOKS,
    GHOST,
    GUS,
    HOOK,
    HOST,
    KITCHEN,
    LATER,
    LEVELS,
    OFFICE,
    PATH,
    PROGRAM,
    WAITERS,
    Level,
    ZulipExportBuilder,
    event,
    keys,
    message,
    subscription,
    user,
)
from tests.support import rows

pytestmark = pytest.mark.anyio


class Reading:
    """The content of an export, and the report."""

    def __init__(self, builder: ZulipExportBuilder, directory: Path) -> None:
        self.report = ImportReport()
        self.source = ZulipExport(builder.written(directory), directory / "work")
        try:
            self.survey = self.source.survey()
            self.organization: SourceOrganization = self.source.organization(self.report)
            self.batches = list(self.source.messages("", self.report))
        finally:
            self.source.close()
        self.messages: list[SourceMessage] = [m for b in self.batches for m in b.messages]

    def remarks(self) -> dict[str, str]:
        """The reasons, by kind."""
        both = (*self.report.skipped.values(), *self.report.changed.values())
        return {one.kind: one.reason for one in both}


@pytest.fixture
def reading(tmp_path: Path) -> Callable[..., Reading]:
    def read(builder: ZulipExportBuilder) -> Reading:
        tmp_path.joinpath("reading").mkdir(exist_ok=True)
        place = tmp_path / "reading" / str(len(list((tmp_path / "reading").iterdir())))
        place.mkdir()
        return Reading(builder, place)

    return read


def role(name: str) -> Holders:
    return Holders(groups=(f"role:{name}",))


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_has_the_same_organization(
    level: Level, reading: Callable[..., Reading]
) -> None:
    found = reading(ZulipExportBuilder(level))
    organization = found.organization
    assert organization.name == found.survey.name == "Harbor Café"
    settings = organization.settings
    assert settings["default_language"] == "pt"
    assert settings["gif_rating_policy"] == 3
    assert settings["topics_policy"] == "disable_empty_topic"
    assert settings["message_edit_history_visibility_policy"] == "none"
    assert settings["new_channel_announcements_channel_id"] == KITCHEN
    assert settings["signup_announcements_channel_id"] == -1
    assert settings["move_messages_within_channel_limit_seconds"] == 3600
    assert settings["can_add_custom_emoji_group"] == role("moderators")
    assert settings["can_move_messages_between_topics_group"] == role("nobody")
    if level == "2023":
        assert settings["can_create_private_channel_group"] == role("fullmembers")
        assert settings["can_create_bots_group"] == role("administrators")
        assert settings["can_create_write_only_bots_group"] == role("members")
        assert settings["can_add_subscribers_group"] == role("moderators")
        assert settings["can_invite_users_group"] == role("administrators")
        assert settings["can_mention_many_users_group"] == role("moderators")
        assert settings["can_manage_all_groups"] == role("administrators")
        assert settings["direct_message_permission_group"] == role("nobody")
    else:
        private = settings["can_create_private_channel_group"]
        assert private == Holders(people=(BEN,), groups=(COOKS,))
        assert settings["can_create_public_channel_group"] == Holders(groups=(COOKS,))
    assert organization.user_defaults == {"enter_sends": True}

    users = {one.key: one for one in organization.users}
    assert users[ANN].role is Role.OWNER
    assert users[GUS].role is Role.GUEST
    assert users[ANN].address == "ann@example.com"
    avatar, status = users[ANN].avatar, users[BEN].status
    assert avatar is not None
    assert avatar.place == "avatars/2/ann.original"
    assert users[ANN].profile == {1: "+351 1", 2: "0", 3: "[14,12]"}
    assert (users[ANN].alert_words, users[ANN].muted) == (("soup",), {GUS: 1_600_000_000})
    assert users[ANN].onboarding_steps == ("intro_streams",)
    assert users[BEN].settings == {
        "enable_channel_desktop_notifications": True,
        "web_home_view": "recent",
    }
    assert status is not None
    assert status.text == "cooking"
    assert users[BEN].uses_gravatar
    assert not users[CLEO].is_active
    assert not users[CLEO].is_placeholder
    assert users[GHOST].is_placeholder
    assert not users[GHOST].is_active
    assert users[GHOST].address == ""
    hook, program = users[HOOK].bot, users[PROGRAM].bot
    assert hook is not None
    assert program is not None
    assert (hook.kind, hook.owner, hook.service_is_slack) == (BotKind.OUTGOING_WEBHOOK, ANN, True)
    assert (hook.service_url, hook.token) == ("https://hooks.example/x", "tok")
    assert (program.program, program.config, program.storage) == (
        "converter",
        {"unit": "m"},
        {"last": "42"},
    )
    assert program.default_channel == KITCHEN
    assert organization.system_bots == {5: "welcome", 4: "notification"}

    groups = {one.key: one for one in organization.groups}
    assert list(groups) == [COOKS, WAITERS, CLOSED]
    assert (groups[WAITERS].members, groups[WAITERS].subgroups) == ((GUS,), (COOKS,))
    assert groups[COOKS].permissions == {"can_mention_group": role("nobody")}
    assert groups[WAITERS].permissions == {"can_mention_group": Holders(groups=(COOKS,))}
    assert groups[CLOSED].deactivated

    channels = {one.key: one for one in organization.channels}
    assert channels[ATTIC].name == ("attic" if level in {"372", "now"} else "kitchen")
    assert channels[ATTIC].is_archived
    assert keys(organization.channels)[-1] == ATTIC
    assert channels[OFFICE].is_private
    assert not channels[OFFICE].history_public
    kitchen = channels[KITCHEN]
    assert kitchen.is_default
    assert kitchen.creator == ANN
    assert kitchen.permissions["can_send_message_group"] == role("moderators")
    assert kitchen.permissions["can_remove_subscribers_group"] == role("moderators")
    if level == "now":
        assert (kitchen.folder, kitchen.topics_policy) == (1, TopicsPolicy.EMPTY_ONLY)
        assert organization.folders[0].name == "Rooms"
        assert organization.views[0].fragment == "narrow/is/starred"

    spans = {(one.channel, one.user): one.spans for one in organization.subscriptions}
    assert spans == {
        (KITCHEN, ANN): ((0, None),),
        (KITCHEN, BEN): ((0, None),),
        (KITCHEN, CLEO): ((0, 102),),
        (OFFICE, ANN): ((0, None),),
        (OFFICE, BEN): ((102, 104), (105, None)),
        # Archiving ended the subscription.
        (ATTIC, ANN): ((0, None),),
    }
    first, second, *_ = organization.subscriptions
    assert (first.color, first.is_muted, first.pin_to_top) == ("#ff0000", True, True)
    assert second.settings == {"desktop_notifications": True, "email_notifications": False}
    assert organization.domains == (("Example.com", True),)
    assert organization.linkifiers[0].url_template == "https://x.example/{id}"
    assert organization.playgrounds[0].language == "Rust"
    assert organization.emoji[0].file.place == "emoji/2/emoji/images/pot.png.original"
    assert organization.icon is not None
    assert organization.logo is None
    assert keys(organization.profile_fields) == [1, 2, 3, 4, 5]
    assert organization.profile_fields[0].data["in_summary"] is True
    assert organization.profile_fields[3].data["account"] == "github"
    assert [(one.key, one.channel, one.people) for one in organization.scheduled] == [
        (1, KITCHEN, ()),
        (2, None, (ANN,)),
    ]
    assert organization.user_topics[0].topic == "menu"
    assert [one.path for one in organization.attachments] == [LATER]
    assert len(organization.snippets) == (level in {"372", "now"})
    assert found.remarks() == {}


def test_messages_have_everything_of_them(reading: Callable[..., Reading]) -> None:
    found = reading(ZulipExportBuilder())
    assert found.survey.messages == len(found.messages) == 7
    assert (found.survey.files, found.survey.origin) == (2, "Zulip 11.4")
    assert [batch.position for batch in found.batches] == ["1:3", "2:4"]
    soup, menu, direct, group, general, archived, again = found.messages
    assert (soup.key, soup.channel, soup.topic, soup.client) == (
        101,
        KITCHEN,
        "menu",
        "ZulipMobile",
    )
    assert [(one.at, one.was_content, one.was_topic, one.topic) for one in soup.edits] == [
        (1_600_000_150, "Sop", None, None),
        (1_600_000_200, None, "mnu", "menu"),
    ]
    assert [(one.user, one.kind, one.code) for one in soup.reactions] == [
        (BEN, EmojiKind.UNICODE, "1f44d"),
        (ANN, EmojiKind.CUSTOM, "7"),
    ]
    assert soup.flags == {BEN: Flag.MENTIONED | Flag.STARRED}
    assert soup.unread_by == ()
    assert [(one.user, one.note) for one in soup.reminders] == [(BEN, "cook it")]
    assert menu.unread_by == (ANN,)
    assert [one.path for one in menu.attachments] == [PATH]
    assert [one.path for one in again.attachments] == [PATH]
    assert (direct.channel, direct.people, direct.topic) == (None, (ANN, BEN), "")
    assert (direct.unread_by, direct.flags) == ((BEN,), {})
    assert direct.reactions[0].kind is EmojiKind.EXTRA
    assert (group.people, group.topic, group.unread_by) == ((ANN, BEN, GUS), "", (ANN, BEN))
    assert general.topic == ""
    assert general.content == f"See [https://{HOST}/#narrow/near/101](/#narrow/near/101)"
    assert general.flags == {
        ANN: Flag.COLLAPSED | Flag.CHANNEL_WILDCARD_MENTIONED,
        GUS: Flag.STARRED | Flag.RECORD,
    }
    assert (archived.sender, archived.channel) == (4, ATTIC)
    assert again.flags == {ANN: Flag.HAS_ALERT_WORD}


def test_messages_continue_after_a_position(tmp_path: Path) -> None:
    builder = ZulipExportBuilder()
    builder.messages[0] = [message(1 + n, ANN, 131, str(n)) for n in range(140)]
    builder.flags[0] = []
    for n, row in enumerate(builder.messages[1]):
        row["id"] = 1000 + n
    source = ZulipExport(builder.written(tmp_path), tmp_path / "work")
    report = ImportReport()
    whole = list(source.messages("", report))
    assert [(len(batch.messages), batch.position) for batch in whole] == [
        (100, "1:100"),
        (40, "1:140"),
        (4, "2:4"),
    ]
    for n, batch in enumerate(whole, 1):
        rest = list(source.messages(batch.position, report))
        assert rest == whole[n:]
    source.close()
    assert not list((tmp_path / "work").iterdir())


def test_messages_out_of_order_are_also_noticed_after_a_position(tmp_path: Path) -> None:
    builder = ZulipExportBuilder()
    ids = [*range(201, 301), *range(101, 141)]
    builder.messages[0] = [message(n, ANN, 131, str(n)) for n in ids]
    builder.flags[0] = []
    with closing(ZulipExport(builder.written(tmp_path), tmp_path / "work")) as source:
        for position in ("", "1:100"):
            report = ImportReport()
            list(source.messages(position, report))
            (remark,) = report.changed.values()
            assert "aren't in order" in remark.reason
            assert remark.count == 40 + 4


def test_an_export_is_surveyed_once(tmp_path: Path) -> None:
    place, work = ZulipExportBuilder().written(tmp_path), tmp_path / "work"
    with closing(ZulipExport(place, work)) as source:
        survey = source.survey()
    file = place / "messages-000001.json"
    file.write_bytes(file.read_bytes().replace(b'"zerver_message": [', b'"zerver_message": {'))
    with closing(ZulipExport(place, work)) as again:  # As after an interruption.
        assert again.survey() == survey
    with closing(ZulipExport(place, tmp_path / "other")) as other, pytest.raises(SourceError):
        other.survey()


async def test_a_new_organization_is_as_the_export(config: Config, tmp_path: Path) -> None:
    progress = await imported(config, ZulipExport(ZulipExportBuilder().packed(tmp_path), tmp_path))
    assert progress.step == "done"
    found = await contents(config)
    assert [row[0] for row in found["messages"]] == [101, 102, 103, 104, 105, 108]
    assert found["messages"][5][6].endswith("@**Ann|11**")
    assert "/user_uploads/" in found["messages"][1][7]
    assert found["spans"][OFFICE, BEN] == ((102, 104), (105, None))
    assert [(row[0], row[2]) for row in found["reactions"]] == [
        (101, "pot"),
        (101, "+1"),
        (103, "zulip"),
    ]
    assert await unread_ids(config, BEN) == {103, 104}
    assert await unread_ids(config, ANN) == {102, 104, 105}
    async with opened_log(config, print) as log:
        state = log.state
        assert state.realm.can_create_private_channel_group == Members((BEN,), (COOKS,))
        assert state.realm.can_create_public_channel_group == COOKS
        assert state.realm.new_channel_announcements_channel_id == KITCHEN
        assert state.channels[KITCHEN].can_send_message_group == SystemGroup.MODERATORS
        assert state.channels[ATTIC].is_archived
        assert state.groups[WAITERS].subgroups == (COOKS,)
        assert state.users[GHOST].is_placeholder
        assert state.users[ANN].avatar_source == "U"
        assert state.users[BEN].avatar_source == "G"
        hook, program = state.users[HOOK].bot, state.users[PROGRAM].bot
        assert hook is not None
        assert hook.service is not None
        assert hook.service.url == "https://hooks.example/x"
        assert program is not None
        assert program.embedded is not None
        assert program.embedded.program == "converter"
        assert program.default_sending_channel_id == KITCHEN
        assert [one.message_id for one in state.tables["reminders"]] == [101]
        later = state.uploads.at_path(LATER)
        assert later is not None
        assert state.uploads.unclaimed(2e9, 10) == []
        values = {one.field_id: one.value for one in state.tables["profile_values"]}
        assert values == {1: "+351 1", 2: "0", 3: "[14,12]"}
    with closing(
        database_at(config.data_path, config.database_url).connect(readonly=True, limits=READING)
    ) as connection:
        assert dangling(connection) == []
        storage = connection.query("SELECT user_id, name, value FROM bot_storage")
        assert [tuple(row) for row in storage] == [(PROGRAM, "last", "42")]
    report = progress.report.to_json()
    assert report["imported"]["messages"] == 7
    assert (report["skipped"], report["changed"]) == ([], [])


async def test_a_placeholder_is_an_imported_stub(tmp_path: Path) -> None:
    config = Config(data_dir=str(tmp_path / "data"))
    await imported(config, ZulipExport(ZulipExportBuilder().written(tmp_path), tmp_path))
    async with opened_log(config, print) as log:
        state = log.state
        stubs = {
            user.id
            for user in state.users
            if user_object(state, state.users[ANN], user, HOST, UserFormat()).is_imported_stub
        }
    assert stubs == {GHOST}


@pytest.mark.parametrize("commits", [3, 5, 8, 9])
async def test_an_interrupted_import_continues(
    config: Config, tmp_path: Path, commits: int
) -> None:
    archive = ZulipExportBuilder().packed(tmp_path)
    whole = msgspec.structs.replace(config, data_dir=str(tmp_path / "whole"), database_url="")
    await imported(whole, ZulipExport(archive, tmp_path / "work"))
    expected = await contents(whole)
    with pytest.raises(Killed):
        await imported(config, ZulipExport(archive, tmp_path / "work"), kill_after(commits))
    await imported(config, ZulipExport(archive, tmp_path / "work"))
    assert await contents(config) == expected
    assert await unread_ids(config, ANN) == {102, 104, 105}


async def test_only_the_newest_edits_are_imported(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "MAX_EDITS", 2)
    builder = ZulipExportBuilder()
    builder.messages[0][0]["edit_history"] = json.dumps(
        [{"user_id": ANN, "timestamp": at, "prev_content": f"at {at}"} for at in (9, 7, 5, 3)]
    )
    progress = await imported(config, ZulipExport(builder.written(tmp_path), tmp_path))
    edits = (await contents(config))["edits"]
    assert [row[3] for row in edits if row[0] == 101] == ["at 7", "at 9"]
    remark = progress.report.skipped["edits: A message has more than 2."]
    assert (remark.count, remark.samples) == (2, ["101"])


async def test_beside_other_people_references_get_new_ids(config: Config, tmp_path: Path) -> None:
    await imported(config, ZulipExport(ZulipExportBuilder().written(tmp_path), tmp_path))
    builder = ZulipExportBuilder()
    builder.row("zerver_userprofile", BEN)["delivery_email"] = "other@example.com"
    link = "#narrow/channel/31-kitchen"
    builder.messages[0][0]["content"] = f"@**Ben|12** and @_**Ann|11** in [it](/{link})"
    (tmp_path / "second").mkdir()
    await imported(config, ZulipExport(builder.written(tmp_path / "second"), tmp_path))
    async with opened_log(config, print) as log:
        other = log.state.user_with_address("other@example.com")
        kitchen = max(one.id for one in log.state.channels if one.name.startswith("kitchen"))
        assert other is not None
        assert other.id != BEN
        assert kitchen != KITCHEN
    found = await contents(config)
    assert f"@**Ben|{other.id}** and @_**Ann|11** in [it](/#narrow/channel/{kitchen}-kitchen)" in {
        row[6] for row in found["messages"]
    }


# Damaged exports


def without(name: str) -> Callable[[Path], object]:
    return lambda place: (place / name).unlink()


def cut(name: str) -> Callable[[Path], None]:
    def halve(place: Path) -> None:
        content = (place / name).read_bytes()
        (place / name).write_bytes(content[: len(content) // 2])

    return halve


def with_text(name: str, text: str) -> Callable[[Path], object]:
    return lambda place: (place / name).write_text(text)


DEEP = "[" * 100_000


@rows(
    ("damage", "said"),
    [
        (without("realm.json"), "no realm.json, so it isn't a Zulip export"),
        (without("attachment.json"), "attachment.json is missing"),
        (without("messages-000001.json"), "messages-000001.json is missing"),
        (with_text("messages-000003.json.partial", "{}"), "isn't finished"),
        (with_text("stats.json", '{"messages-000009": {}}'), "messages-000009.json is missing"),
        (cut("realm.json"), "realm.json isn't valid JSON"),
        (cut("attachment.json"), "attachment.json isn't valid JSON"),
        (cut("messages-000002.json"), "ends too early"),
        (with_text("realm.json", ""), "it ends too early"),
        (with_text("realm.json", "[]"), "isn't valid JSON"),
        (with_text("realm.json", "{}"), "has no organization"),
        (with_text("realm.json", '{"zerver_realm": [1]}'), "has no organization"),
        (with_text("realm.json", '{"zerver_stream": {"id": 1}}'), "'zerver_stream' in realm.json"),
        (with_text("realm.json", f'{{"zerver_realm": {DEEP}'), "isn't valid JSON"),
        (with_text("realm.json", '{"zerver_realm": [{"id": 1' + "0" * 9999), "isn't valid JSON"),
    ],
)
def test_a_damaged_export_is_refused(
    damage: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    directory = tmp_path / str(len(list(tmp_path.iterdir())))
    directory.mkdir()
    place = ZulipExportBuilder().written(directory)
    damage(place)
    source = ZulipExport(place, directory / "work")
    try:
        with pytest.raises(SourceError, match=said):
            _ = source.survey(), source.organization(ImportReport())
    finally:
        source.close()
    assert not list((directory / "work").glob("*"))


def odd_rows(builder: ZulipExportBuilder) -> None:
    for table, found in builder.realm.items():
        if table != "zerver_realm":
            found += [{"id": None}, {"id": "x", "user_profile": []}, {"id": -1}, {"id": 2**70}]
            found += [None, 3, "text", [], {}, {**found[0], "id": 9999} if found[0] else {}]
            found += [{name: {"a": 1} for name in found[0]} | {"id": 77_777}]
            found += [{name: [1] for name in found[0]} | {"id": 77_778}]


def test_rows_that_nobody_would_write_are_reported(reading: Callable[..., Reading]) -> None:
    builder = ZulipExportBuilder()
    for n, messages in enumerate(builder.messages):
        messages += [{}, None, {"id": 5}, {"id": "6", "sender": 1, "recipient": 2}]  # type: ignore[list-item]
        builder.flags[n] += [{}, None, {"message": [], "user_profile": {}, "flags_mask": "1"}]  # type: ignore[list-item]
        builder.flags[n] += [{"message": 101, "user_profile": 999, "flags_mask": 0}]
    builder.attachments += [{}, None, {"id": 1, "owner": 1, "path_id": "../../etc/passwd"}]  # type: ignore[list-item]
    builder.messages[0][0]["edit_history"] = "not JSON"
    builder.messages[0][1]["edit_history"] = '[{"timestamp": "x"}, 3]'
    builder.messages[0][2]["subject"] = None
    odd_rows(builder)
    found = reading(builder)
    assert [one.key for one in found.messages] == [101, 102, 103, 104, 105, 107, 108]
    assert {"reactions", "subscriptions", "files", "edits", "flags", "messages", "people"} <= {
        one.kind for one in found.report.skipped.values()
    }


async def test_a_crafted_export_is_imported_without_an_error(
    config: Config, tmp_path: Path
) -> None:
    builder = ZulipExportBuilder()
    odd_rows(builder)
    html = "<script>alert(1)</script>\u202e\0"
    for table in ("zerver_userprofile", "zerver_stream", "zerver_namedusergroup"):
        for row in builder.rows(table):
            if isinstance(row, dict) and row.get("id") in {BEN, OFFICE, COOKS}:
                row["full_name" if "user" in table and "group" not in table else "name"] = html * 9
    builder.rows("zerver_realm")[0].update(name=html, default_language=5, unheard_of=html)
    builder.row("zerver_realmfilter", 1)["pattern"] = "(?P<id>((a+)+)+$"
    builder.rows("zerver_customprofilefieldvalue").append(
        {"id": 8, "user_profile": BEN, "field": 5, "value": "javascript:alert(1)"}
    )
    builder.row("zerver_realmemoji", 7)["name"] = html
    builder.rows("zerver_realmdomain")[0]["domain"] = html
    builder.rows("zerver_groupgroupmembership").append(
        {"id": 5, "supergroup": COOKS, "subgroup": WAITERS}
    )
    first, second = builder.messages
    first[0].update(content="\0", subject="a\u200e\u0007b" * 30, sending_client={})
    first[1].update(recipient=99_999)
    second[0].update(sender=99_999)
    second[1].update(content="long " * 9999)
    builder.rows("zerver_reaction").extend(
        {**builder.rows("zerver_reaction")[0], "id": 50 + n, "emoji_code": code}
        for n, code in enumerate(["1f44d", "x'><img", "1f44d" * 99])
    )
    progress = await imported(config, ZulipExport(builder.written(tmp_path), tmp_path))
    assert progress.step == "done"
    found = await contents(config)
    assert [row[0] for row in found["messages"]] == [101, 103, 105, 108]
    assert all("<script" not in row[7] for row in found["messages"])
    skipped = {one["kind"]: one["reason"] for one in progress.report.to_json()["skipped"]}
    assert {"linkifiers", "custom emoji", "email domains"} <= skipped.keys(), skipped.keys()
    async with opened_log(config, print) as log:
        assert [one.id for one in log.state.linkifiers_in_order] == [9999]
        assert COOKS in log.state.groups[WAITERS].subgroups
        assert log.state.groups[COOKS].subgroups == ()


async def test_two_people_with_one_address_are_one(config: Config, tmp_path: Path) -> None:
    builder = ZulipExportBuilder()
    builder.rows("zerver_userprofile").insert(
        0, user(3, "Old", delivery_email="ANN@example.com", is_active=False)
    )
    builder.messages[0][0]["sender"] = 3
    progress = await imported(config, ZulipExport(builder.written(tmp_path), tmp_path))
    found = await contents(config)
    assert found["users"][ANN] == ("Ann", Role.OWNER, True)
    assert found["messages"][0][1] == ANN
    assert [one["kind"] for one in progress.report.to_json()["changed"]] == ["people"]


def test_what_a_newer_version_adds_is_named(reading: Callable[..., Reading]) -> None:
    builder = ZulipExportBuilder()
    builder.realm["zerver_hologram"] = [{"id": 1}, {"id": 2}]
    builder.realm["import_source"] = "slack"
    builder.row("zerver_stream", KITCHEN)["hologram_policy"] = 1
    builder.row("zerver_userprofile", ANN)["hologram"] = True
    builder.messages[0][0]["hologram"] = ""
    found = reading(builder)
    samples = {sample for one in found.report.skipped.values() for sample in one.samples}
    assert samples == {
        *("zerver_hologram", "import_source", "zerver_stream.hologram_policy"),
        *("zerver_userprofile.hologram", "zerver_message.hologram"),
    }


def test_ten_thousand_channels(reading: Callable[..., Reading]) -> None:
    builder = ZulipExportBuilder()
    model = builder.row("zerver_stream", KITCHEN)
    for n in range(10_000):
        key = 5000 + n
        builder.rows("zerver_stream").append({**model, "id": key, "recipient": 20_000 + n})
        builder.rows("zerver_subscription").append(subscription(key, ANN, 20_000 + n))
    found = reading(builder)
    assert len(found.organization.channels) == 10_003
    assert len(found.organization.subscriptions) == 10_006


# Parts


@rows(
    ("events", "is_active", "spans"),
    [
        ([(301, 5)], True, ((5, None),)),
        ([(301, 5), (303, 9)], False, ((5, 9),)),
        ([(301, 5), (303, 9), (302, 12)], True, ((5, 9), (12, None))),
        ([(301, 5), (303, 5), (302, 7)], True, ((7, None),)),
        ([(303, 9)], False, ((0, 9),)),
        ([(303, 9)], True, ((0, 9), (9, None))),
        ([(301, 5)], False, ((5, LAST),)),
        ([(301, 5), (302, 7)], True, ((5, None),)),
        ([(301, 9), (303, 5), (302, 7)], True, ((9, None),)),
    ],
)
def test_events_of_the_audit_log_are_spans(
    events: list[tuple[int, int]], is_active: bool, spans: Any
) -> None:
    assert logged_spans(events, is_active=is_active) == spans


def test_without_an_audit_log_messages_tell_who_was_subscribed(
    reading: Callable[..., Reading],
) -> None:
    builder = ZulipExportBuilder()
    builder.realm["zerver_realmauditlog"] = [event(5, 301, ANN, OFFICE, 0)]
    found = reading(builder)
    spans = {(one.channel, one.user): one.spans for one in found.organization.subscriptions}
    assert spans == {
        (KITCHEN, ANN): ((100, None),),
        (KITCHEN, BEN): ((100, None),),
        (OFFICE, ANN): ((0, None),),
        (OFFICE, BEN): ((107, None),),
    }
    builder.flags = [[], []]
    found = reading(builder)
    spans = {(one.channel, one.user): one.spans for one in found.organization.subscriptions}
    # Where history isn't shared, nobody sees more than before.
    assert spans[OFFICE, BEN] == ((LAST, None),)
    assert spans[KITCHEN, BEN] == ((0, None),)
    assert "only new messages" in found.remarks()["subscriptions"]


@rows(
    ("before", "after"),
    [
        (f"[a](https://{HOST}/#narrow/id/7)", "[a](/#narrow/id/7)"),
        (f"[a](http://{HOST.upper()}#narrow/id/7)", "[a](/#narrow/id/7)"),
        (f"[a]: https://{HOST}/user_uploads/2/x", "[a]: /user_uploads/2/x"),
        (
            f"see https://{HOST}/user_uploads/2/x.",
            f"see [https://{HOST}/user_uploads/2/x.](/user_uploads/2/x.)",
        ),
        (f"`https://{HOST}/#narrow/id/7`", f"`https://{HOST}/#narrow/id/7`"),
        (f"```\nhttps://{HOST}/#narrow/1\n```", f"```\nhttps://{HOST}/#narrow/1\n```"),
        (f"https://{HOST}/help/", f"https://{HOST}/help/"),
        ("https://other.example/#narrow/1", "https://other.example/#narrow/1"),
    ],
)
def test_links_to_the_other_server_are_relative(before: str, after: str) -> None:
    assert LocalLinks(HOST).local(before) == after
    assert LocalLinks("").local(before) == before


def test_links_are_found_in_linear_time() -> None:
    nasty = "`" * 30_000 + "[](" * 10_000 + f"https://{HOST}/#narrow/" * 1000
    assert len(LocalLinks(HOST).of_message(nasty)) >= len(nasty)


def random_value(choose: random.Random, depth: int = 0) -> Any:
    texts = ['a"b\\', "} ]", "},\n    {", "é鍵\u2028", "", "{[", "\\u0041"]
    kinds: list[Callable[[], Any]] = [
        lambda: choose.choice(texts) * choose.randrange(4),
        lambda: choose.choice([0, -5, 1.5, 10**15, True, False, None, 1e-7]),
    ]
    if depth < 3:
        kinds += [
            lambda: [random_value(choose, depth + 1) for _ in range(choose.randrange(4))],
            lambda: random_row(choose, depth + 1),
        ]
    return choose.choice(kinds)()


def random_row(choose: random.Random, depth: int = 0) -> dict[str, Any]:
    names = ["id", "a", "b}", "c]", "é"]
    return {name: random_value(choose, depth) for name in names[: choose.randrange(6)]}


@pytest.mark.parametrize("seed", range(20))
def test_tables_are_read_as_they_were_written(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = random.Random(seed)
    monkeypatch.setattr(zulip_tables, "WINDOW", choose.choice([16, 64, 300, 4096]))
    written = {
        f"zerver_{n}": [random_row(choose) for _ in range(choose.choice([0, 1, 2, 30]))]
        for n in range(5)
    }
    form = choose.choice([{"indent": 2}, {"indent": 4}, {"separators": (",", ":")}, {}])
    path = tmp_path / "tables.json"
    text = json.dumps(written, ensure_ascii=choose.random() < 0.5, **form)  # type: ignore[arg-type]
    path.write_text(text, encoding="utf-8")
    found: dict[str, list[Any]] = {}
    for name, some in tables(path):
        found.setdefault(name, []).extend(some)
    assert found == written


def test_only_rows_of_a_large_file_are_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zulip_tables, "WINDOW", 4096)
    path = tmp_path / "tables.json"
    path.write_text(json.dumps({"zerver_a": [{"id": n} for n in range(20_000)]}, indent=2))
    assert max(len(some) for _, some in tables(path)) < 1000
    monkeypatch.setattr(zulip_tables, "MAX_ROW", 10_000)
    path.write_text(json.dumps({"zerver_a": [{"text": "x" * 50_000}]}))
    with pytest.raises(SourceError, match="far too large"):
        list(tables(path))


# The command


def test_the_command_imports_and_reports(database_url: str, tmp_path: Path) -> None:
    place = Place(tmp_path / "data", database_url)
    archive = ZulipExportBuilder().packed(tmp_path)
    result = run("import", "zulip", *place.flags, str(archive), "--dry-run")
    assert result.exit_code == 0, result.output
    assert "Would import from Zulip 11.4" in result.output
    assert not list(place.data_dir.rglob("*.json"))
    answer = json.loads(run("import", "zulip", *place.flags, str(archive), "--json").stdout)
    assert answer["imported"]["messages"] == 7
    # Only the lock is left.
    assert len(list((place.data_dir / "imports").rglob("*"))) == 1
    (tmp_path / "broken.tar.gz").write_bytes(archive.read_bytes()[:2000])
    result = run("import", "zulip", *place.flags, str(tmp_path / "broken.tar.gz"))
    assert result.exit_code == 1
    assert "may be incomplete" in result.output


@pytest.mark.parametrize(
    "words", [("zulip", "export.tar.gz"), ("zulip-live", "http://127.0.0.1:1", "--email", "a@b.c")]
)
def test_two_imports_cannot_run_together(words: tuple[str, ...], tmp_path: Path) -> None:
    """Otherwise, they would write everything twice."""
    place = Place(tmp_path / "data", "")
    with import_lock(place.data_dir / DIRECTORY):
        result = run("import", *words, *place.flags, typed="k" * 32)
    assert result.exit_code == 1
    assert "Another import is running" in result.output


def test_live_sends_no_report_and_names_the_next_command(tmp_path: Path) -> None:
    archive = ZulipExportBuilder().packed(tmp_path)
    place = Place(tmp_path / "data", "")
    result = run("import", "zulip", "--live", *place.flags, str(archive))
    assert result.exit_code == 0, result.output
    assert "tertulia import zulip-live" in result.output
    assert "Forgot password" not in result.output
    # People there will write messages with the next IDs.
    with closing(database_at(place.data_dir, "").connect(readonly=True, limits=READING)) as reading:
        assert reading.query("SELECT max(id) FROM messages") == [(108,)]


async def test_imports_with_other_data_directories_wait_for_each_other(
    config: Config, tmp_path: Path
) -> None:
    archive = ZulipExportBuilder().packed(tmp_path)
    other = [sys.executable, "-m", "tertulia", "import", "zulip", str(archive)]
    here = msgspec.structs.replace(
        config, data_dir=str(tmp_path / "other") if config.database_url else config.data_dir
    )

    async def second() -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *other, env=environment_of(here, os.environ), stderr=asyncio.subprocess.PIPE
        )
        _, said = await process.communicate()
        return process.returncode, said.decode()

    async with opened_log(config, print) as log:
        # Held by another machine.
        code, said = await only_import(log, tmp_path / "elsewhere", second)
        assert code == 1
        assert "Another import into this organization is running" in said
        assert log.state.is_empty
    assert (await second())[0] == 0


async def test_crafted_rows_leave_an_organization_that_can_be_opened(
    config: Config, tmp_path: Path
) -> None:
    builder = ZulipExportBuilder()
    for row in builder.realm["zerver_stream"]:
        row["message_retention_days"] = True
    for row in builder.realm["zerver_userprofile_crossrealm"]:
        row["id"] = ANN  # The only owner.
    for row in builder.realm["zerver_scheduledmessage"]:
        row["scheduled_timestamp"] = 9e15
    half = "\\ud83d"  # Half of a surrogate pair, as in JSON.
    builder.realm["zerver_realmfilter"][0]["alternative_url_templates"] = ["HALF"]
    field = {**builder.realm["zerver_customprofilefield"][0], "id": 99, "field_type": 3}
    field |= {"name": "Size", "field_data": json.dumps({"HALF": {"text": "S", "order": "HALF"}})}
    builder.realm["zerver_customprofilefield"].append(field)
    directory = builder.written(tmp_path)
    realm = directory / "realm.json"
    realm.write_text(realm.read_text().replace("HALF", half))
    source = ZulipExport(directory, tmp_path / "work")
    with closing(source):
        await imported(config, source)
    async with opened_log(config, print) as log:
        state = log.state
        assert {one.retention_days for one in state.channels} == {None}
        assert state.users[ANN].role is Role.OWNER
        due = [one.deliver_at for one in state.tables["reminders"]]
        assert due
        assert max(due) < 10**10
