"""Importing records that have to be skipped or changed."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from tertulia.app.founding import opened_log
from tertulia.imports.dry_run import dry_run
from tertulia.imports.progress import ImportRefused, Progress
from tertulia.imports.records import (
    Holders,
    SourceAttachment,
    SourceBot,
    SourceChannel,
    SourceEmoji,
    SourceFile,
    SourceFolder,
    SourceGroup,
    SourceInvitation,
    SourceLinkifier,
    SourceMessage,
    SourceOrganization,
    SourceReaction,
    SourceScheduled,
    SourceSubmessage,
    SourceSubscription,
    SourceUser,
    SourceUserTopic,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, SourceError, Survey
from tertulia.model.reactions import EmojiKind
from tertulia.model.user_topics import Visibility
from tertulia.model.users import BotKind, Role
from tertulia.service.config import Config
from tertulia.state.state import State
from tertulia.store.database import READING
from tertulia.store.store import database_at
from tests.imports.invented import BEGAN, Invented, imported
from tests.imports.test_importer import contents

pytestmark = pytest.mark.anyio


class Made(Invented):
    """An export of these records."""

    def __init__(
        self,
        organization: SourceOrganization,
        messages: tuple[SourceMessage, ...] = (),
        *,
        keeps_ids: bool = True,
        file_bytes: int = 0,
    ) -> None:
        super().__init__(len(messages), keeps_ids=keeps_ids)
        self._made = organization
        self._sent = messages
        self._file_bytes = file_bytes

    def survey(self) -> Survey:
        return msgspec.structs.replace(super().survey(), file_bytes=self._file_bytes)

    def organization(self, report: ImportReport) -> SourceOrganization:
        return self._made

    def message(self, n: int) -> SourceMessage:
        return self._sent[n]


ANN = SourceUser(key=11, full_name="Ann", address="ann@example.com", role=Role.OWNER)
BEN = SourceUser(key=12, full_name="Ben", address="ben@example.com")


def organization(**values: Any) -> SourceOrganization:
    return SourceOrganization(**{"name": "Harbor Café", "users": (ANN, BEN), **values})


async def state_after(
    config: Config, source: Made, progress: list[Progress] | None = None
) -> State:
    found = await imported(config, source)
    if progress is not None:
        progress.append(found)
    await contents(config)  # Replays the log.
    async with opened_log(config, print) as log:
        return log.state


async def test_names_are_brought_into_shape(config: Config) -> None:
    source = Made(
        organization(
            name="\u202e" * 50,
            users=(
                ANN,
                SourceUser(key=12, full_name="**Ben**|12", address="not an address"),
                SourceUser(key=13, full_name="Notification Bot", address="cleo@example.com"),
                SourceUser(key=14, full_name="\0", address="", timezone="Mars/Olympus"),
            ),
            channels=(
                SourceChannel(key=21, name="Kitchen"),
                SourceChannel(key=22, name="kitchen"),
                SourceChannel(key=23, name="k" * 200, description="d" * 5000),
                SourceChannel(key=24, name="\u200b", is_private=True, is_web_public=True),
                SourceChannel(key=25, name="private", is_private=True, is_default=True),
            ),
            folders=(SourceFolder(key=1, name="News"), SourceFolder(key=2, name="news")),
            groups=(SourceGroup(key=31, name="role:owners"), SourceGroup(key=32, name="")),
            emoji=(SourceEmoji(key=1, name="<b>", file=SourceFile(place="missing")),),
        )
    )
    state = await state_after(config, source)
    assert state.realm.name == "Organization"
    assert state.users[12].full_name == "Ben12"
    assert state.users[12].address == "user12@imported.invalid"
    assert state.users[13].full_name == "Notification Bot (13)"
    assert state.users[14].full_name == "User 14"
    assert state.users[14].timezone == ""
    assert [state.channels[one].name for one in (21, 22, 24)] == [
        "Kitchen",
        "kitchen (2)",
        "channel",
    ]
    assert (len(state.channels[23].name), len(state.channels[23].description)) == (60, 1024)
    assert not state.channels[24].is_web_public
    assert not state.channels[25].is_default
    assert sorted(one.name for one in state.folders) == ["News", "news (2)"]
    assert [state.groups[one].name for one in (31, 32)] == ["group", "group (2)"]


async def test_people_with_one_address_share_an_account(config: Config) -> None:
    again = SourceUser(key=13, full_name="Ben again", address="BEN@example.com")
    messages = tuple(
        SourceMessage(key=n, sender=n, sent_at=BEGAN, channel=21, content="hi") for n in (12, 13)
    )
    found: list[Progress] = []
    state = await state_after(
        config,
        Made(
            organization(users=(ANN, BEN, again), channels=(SourceChannel(key=21, name="a"),)),
            messages,
        ),
        found,
    )
    assert 13 not in state.users
    assert found[0].report.imported["messages"] == 2
    assert "share an account" in str(found[0].report.to_json()["changed"])


async def test_someone_becomes_the_owner(config: Config) -> None:
    users = (
        msgspec.structs.replace(ANN, is_active=False),
        msgspec.structs.replace(BEN, role=Role.ADMINISTRATOR, joined_at=BEGAN + 5),
        SourceUser(key=13, full_name="Cleo", role=Role.ADMINISTRATOR, joined_at=BEGAN),
    )
    state = await state_after(config, Made(organization(users=users)))
    assert [one.id for one in state.users if one.is_owner and one.is_active] == [13]


async def test_roles_of_another_organization_give_no_rights(config: Config) -> None:
    await imported(config, Invented(4))
    cleo = SourceUser(key="c", full_name="Cleo", address="c@example.com", role=Role.OWNER)
    state = await state_after(config, Made(organization(users=(cleo,)), keeps_ids=False))
    account = state.user_with_address("c@example.com")
    assert account is not None
    assert account.role is Role.MEMBER


async def test_groups_contain_no_cycles(config: Config) -> None:
    groups = (
        SourceGroup(key=31, name="a", subgroups=(32, 31, "role:members")),
        SourceGroup(key=32, name="b", subgroups=(33,)),
        SourceGroup(key=33, name="c", subgroups=(31, 99)),
    )
    state = await state_after(config, Made(organization(groups=groups)))
    assert {one: state.groups[one].subgroups for one in (31, 32, 33)} == {
        31: (6, 32),
        32: (33,),
        33: (),
    }


async def test_settings_and_permissions_are_checked(config: Config) -> None:
    found: list[Progress] = []
    source = Made(
        organization(
            settings={
                "default_language": "klingon",
                "message_retention_days": 30,
                "digest_weekday": 9,
                "uuid": "mine",
                "signup_announcements_channel_id": 21,
                "can_create_groups": Holders(groups=("role:internet",)),
                "can_invite_users_group": Holders(people=(12,)),
                "waiting_period_threshold": 3,
            },
            user_defaults={"enter_sends": True, "web_font_size_px": -4},
            channels=(
                SourceChannel(
                    key=21,
                    name="a",
                    retention_days=-7,
                    permissions={"can_send_message_group": Holders(people=(12, 404))},
                ),
            ),
            linkifiers=(
                SourceLinkifier(key=1, pattern="(a+", url_template="https://example.com/"),
                SourceLinkifier(key=2, pattern="#(?P<n>[0-9]+)", url_template="javascript:{n}"),
                SourceLinkifier(key=3, pattern="#(?P<n>[0-9]+)", url_template="https://e.com/{n}"),
            ),
        ),
        (SourceMessage(key=1, sender=11, sent_at=BEGAN, channel=21, content="old"),),
    )
    state = await state_after(config, source, found)
    realm = state.realm
    assert (realm.default_language, realm.digest_weekday) == ("en", 1)
    assert realm.signup_announcements_channel_id == 21
    assert realm.can_invite_users_group != realm.can_create_groups
    assert state.default_settings.enter_sends is True
    assert state.channels[21].retention_days is None
    assert [one.id for one in state.linkifiers] == [3]
    assert realm.waiting_period_applied == 3
    report = str(found[0].report.to_json())
    assert "no setting 'uuid'" in report
    assert "deletes them within hours" in report


async def test_messages_are_brought_into_shape(config: Config) -> None:
    def message(key: int, **values: Any) -> SourceMessage:
        given = {"sender": 11, "sent_at": BEGAN, "channel": 21, "content": "hi", **values}
        return SourceMessage(key=key, **given)

    thumb = SourceReaction(12, EmojiKind.UNICODE, "1f44d", "+1")
    file = SourceFile(place="there", name="../a.txt")
    source = Made(
        organization(channels=(SourceChannel(key=21, name="a"),)),
        (
            message(1, content="\0\ud800 "),
            message(2, content="x" * 20_000, topic="a\x07b"),
            message(3, sender=404),
            message(4, channel=404),
            message(5, sent_at=2**62),
            message(6, reactions=(thumb,) * 3),
            message(7, submessages=(SourceSubmessage(12, "widget", "{"),)),
            message(
                8,
                attachments=(SourceAttachment(key=1, owner=11, path="1/aa/../../x", file=file),),
            ),
            message(2**60),
        ),
    )
    source.files["there"] = b"text"
    found: list[Progress] = []
    state = await state_after(config, source, found)
    rows = (await contents(config))["messages"]
    assert [row[0] for row in rows] == [1, 2, 5, 6, 7, 8, 9]
    assert rows[0][6] == "(empty message)"
    assert (len(rows[1][6]), rows[1][4]) == (10_000, "a b")
    assert rows[2][2] < 2**40
    assert found[0].report.imported["reactions"] == 1
    assert len(state.tables["attachments"]) == 0


async def test_subscriptions_follow_the_messages(config: Config) -> None:
    """Several begin and end between two messages, or end without having begun."""
    source = Made(
        organization(
            channels=(SourceChannel(key=21, name="a", is_private=True),),
            subscriptions=(
                SourceSubscription(channel=21, user=11, spans=((0, 1), (1, 2), (2, None))),
                SourceSubscription(channel=21, user=12, spans=((1, 1), (5, 3), (0, None))),
                SourceSubscription(channel=99, user=12),
                SourceSubscription(channel=21, user=99),
            ),
        ),
        tuple(
            SourceMessage(key=n, sender=11, sent_at=BEGAN, channel=21, content="hi")
            for n in (1, 2, 3)
        ),
    )
    state = await state_after(config, source)
    assert state.tables["subscriptions"][21, 11].spans == ((0, 1), (1, 2), (2, None))
    assert state.is_subscribed(12, 21)


async def test_sources_without_message_ids_have_subscribers_from_the_beginning(
    config: Config,
) -> None:
    users = tuple(msgspec.structs.replace(one, key=f"u{one.key}") for one in (ANN, BEN))
    source = Made(
        organization(
            users=users,
            channels=(SourceChannel(key="c", name="a", is_private=True, history_public=False),),
            subscriptions=(SourceSubscription(channel="c", user="u12"),),
        ),
        (SourceMessage(key="m", sender="u11", sent_at=BEGAN, channel="c", content="hi"),),
        keeps_ids=False,
    )
    state = await state_after(config, source)
    ((subscription),) = state.tables["subscriptions"]
    assert subscription.covers(1)


async def test_bots_have_their_services(config: Config) -> None:
    def bot(key: int, **values: Any) -> SourceUser:
        return SourceUser(key=key, full_name=f"Bot {key}", bot=SourceBot(**values))

    out = BotKind.OUTGOING_WEBHOOK
    users = (
        ANN,
        bot(51, kind=out, owner=11, service_url="https://example.com/", default_channel=21),
        bot(52, kind=out, owner=404, service_url="gopher://example.com"),
        bot(53, kind=BotKind.EMBEDDED, owner=11, program="../../etc/passwd"),
    )
    state = await state_after(
        config, Made(organization(users=users, channels=(SourceChannel(key=21, name="a"),)))
    )
    first, second, third = (state.users[one].bot for one in (51, 52, 53))
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.service is not None
    assert first.service.token_sealed
    assert first.default_sending_channel_id == 21
    assert (second.kind, second.owner_id) == (BotKind.GENERIC, 11)
    assert third.kind is BotKind.GENERIC


async def test_what_exists_here_keeps_its_domains_and_storage(config: Config) -> None:
    def helper(key: int, value: str) -> SourceUser:
        bot = SourceBot(owner=11, storage={"last": value})
        return SourceUser(key=key, full_name="Bot", address="bot@example.com", bot=bot)

    before = Made(organization(users=(ANN, helper(51, "1")), domains=(("example.com", False),)))
    await imported(config, before)
    progress: list[Progress] = []
    beside = organization(
        users=(ANN, helper(7, "2")),
        domains=(("evil.example", True),),
        channels=(SourceChannel(key=21, name="a"),),
    )
    message = SourceMessage(key=1, sender=11, channel=21, topic="a", content="hi", sent_at=BEGAN)
    state = await state_after(config, Made(beside, (message,)), progress)
    assert [one.name for one in state.domains] == ["example.com"]
    assert "email domains: This organization keeps its own." in progress[0].report.skipped
    with closing(
        database_at(config.data_path, config.database_url).connect(readonly=True, limits=READING)
    ) as connection:
        rows = connection.query("SELECT user_id, value FROM bot_storage")
    assert [tuple(row) for row in rows] == [(51, "1")]


async def test_what_people_have_is_checked(config: Config) -> None:
    source = Made(
        organization(
            users=(ANN, msgspec.structs.replace(BEN, alert_words=("a", "A", "x" * 500))),
            channels=(SourceChannel(key=21, name="a"),),
            scheduled=(
                SourceScheduled(key=1, user=11, channel=21, content="late", deliver_at=BEGAN),
                SourceScheduled(key=2, user=11, content="to nobody", deliver_at=BEGAN),
            ),
            user_topics=(
                SourceUserTopic(user=11, channel=21, topic="\x07", visibility=Visibility.MUTED),
            ),
            invitations=(
                SourceInvitation(address="cleo@example.com", inviter=12),
                SourceInvitation(address="gus@example.com", inviter=12, role=Role.OWNER),
                SourceInvitation(address="ann@example.com", inviter=12),
            ),
        )
    )
    state = await state_after(config, source)
    assert state.tables["alert_words"][12].words == ("a",)
    (scheduled,) = state.tables["scheduled_messages"]
    assert scheduled.failed
    assert [one.address for one in state.invitations] == ["cleo@example.com"]


async def test_errors_of_a_source_end_the_import_with_a_sentence(config: Config) -> None:
    class Broken(Invented):
        def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
            yield from list(super().messages(after, report))[:3]
            raise KeyError("sender")

    with pytest.raises(SourceError, match="can't be read: KeyError"):
        await imported(config, Broken(60))
    # The messages that were read before the interruption are written, and the rest follows.
    assert len((await contents(config))["messages"]) == 30
    await imported(config, Invented(60))
    assert len((await contents(config))["messages"]) == 60
    with pytest.raises(SourceError, match="can't be read: KeyError"):
        await dry_run(Broken(60), lambda _: None, State())


async def test_files_need_room(config: Config) -> None:
    with pytest.raises(ImportRefused, match="MiB left"):
        await imported(config, Made(organization(), file_bytes=2**60))


async def test_owners_get_the_report(config: Config) -> None:
    await imported(config, Invented(8))
    async with opened_log(config, print) as log:
        direct_id = log.state.directs.by_members[1, 11]
        rows = await log.store.read(
            lambda c: c.query("SELECT content FROM messages WHERE direct_id = ?", (direct_id,))
        )
    assert "8 messages" in rows[0][0]
