"""Importing an export of Slack: the imported data, and untrusted files."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from tertulia.imports import references
from tertulia.imports.records import SourceMessage
from tertulia.imports.report import ImportReport
from tertulia.imports.slack.export import SlackExport
from tertulia.imports.slack.senders import SlackSender, sender_of
from tertulia.imports.source import SourceError
from tertulia.model.messages import Flag
from tertulia.model.reactions import EmojiKind
from tertulia.model.users import Role
from tertulia.outbound.http_client import Web
from tertulia.service.config import Config
from tertulia.store.database import READING
from tertulia.store.store import database_at
from tests.imports.invented import imported
from tests.imports.slack_exports import (
    BEGAN,
    PEOPLE,
    Read,
    SlackFiles,
    channel,
    message,
    opened,
    person,
    ts,
)


def says(*messages: Any, **more: Any) -> SlackFiles:
    """Return an export with messages in `general`."""
    files = SlackFiles()
    files.say("general", *messages)
    for name, value in more.items():
        setattr(files, name, value)
    return files


# People, channels, and other records


def test_people_have_their_roles_and_profiles(tmp_path: Path) -> None:
    files = says()
    files.users = [
        *PEOPLE,
        person("U4ADM", "Ada Lovelace", is_admin=True, profile={"display_name": "ada"}),
        person("U5OFF", "Otto", deleted=True, tz="Nowhere/Land"),
        person("U6EXT", "Eve", is_stranger=True),
        person("U7BOT", "ci", is_bot=True, profile={"bot_id": "B7"}),
        person("USLACKBOT", "Slackbot"),
        person(
            "U8PIC",
            "Pia",
            profile={
                "title": "Head of &lt;b&gt; &amp; c",
                "status_text": "Away",
                "status_emoji": ":palm_tree:",
                "image_512": "https://avatars.slack-edge.com/p_512.png",
                "image_original": "https://avatars.slack-edge.com/p_original.png",
            },
        ),
        person("U9DEF", "Dan", profile={"image_512": "https://secure.gravatar.com/x?d=default"}),
        person("U9EVIL", "Mal", profile={"image_original": "https://169.254.169.254/meta"}),
    ]
    found = {one.key: one for one in Read(files, tmp_path).organization.users}
    roles = [found[key].role for key in ("U1ANN", "U2BEN", "U3GUS", "U4ADM", "U6EXT")]
    assert roles == [Role.OWNER, Role.MEMBER, Role.GUEST, Role.ADMINISTRATOR, Role.GUEST]
    assert (found["U4ADM"].full_name, found["U4ADM"].profile["real_name"]) == (
        "ada",
        "Ada Lovelace",
    )
    assert found["U1ANN"].address == "ann@example.com"
    assert (found["U1ANN"].timezone, found["U5OFF"].timezone) == ("Europe/Lisbon", "Nowhere/Land")
    inactive = {key for key, one in found.items() if not one.is_active}
    assert inactive == {"U5OFF", "U6EXT", "U7BOT", "USLACKBOT"}
    assert {key for key, one in found.items() if one.bot is not None} == {"U7BOT", "USLACKBOT"}
    pia = found["U8PIC"]
    assert pia.profile["title"] == "Head of <b> & c"
    assert pia.status is not None
    assert (pia.status.text, pia.status.emoji) == ("Away", "palm_tree")
    assert pia.avatar is not None
    assert pia.avatar.place.endswith("p_512.png")
    assert found["U9DEF"].avatar is None
    assert found["U9EVIL"].avatar is None


def test_channels_groups_and_subscriptions(tmp_path: Path) -> None:
    files = SlackFiles()
    files.channels = [
        channel("C1GEN", "general", ("U1ANN", "U2BEN"), is_general=True),
        channel(
            "C2OLD",
            "old",
            (),
            is_archived=True,
            purpose={"value": "About <#C1GEN>"},
            topic={"value": "by <@U1ANN>"},
        ),
    ]
    files.groups = [channel("G1SEC", "secret", ("U1ANN",))]
    files.more["usergroups.json"] = [
        {"id": "S1", "handle": "cooks", "description": "They cook", "users": ["U2BEN", 5]}
    ]
    joined, left = {"subtype": "channel_join"}, {"subtype": "channel_leave"}
    files.say(
        "general",
        message(0, "first"),
        message(1, "…", "U2BEN", **joined),
        message(2, "second"),
        message(3, "…", "U3GUS", **joined),
        message(4, "third"),
        message(5, "…", "U3GUS", **left),
        message(6, "fourth"),
    )
    read = Read(files, tmp_path)
    found = {one.key: one for one in read.organization.channels}
    assert found["C1GEN"].is_default
    assert found["C2OLD"].is_archived
    assert found["C2OLD"].description == "About #general\n\nby @Ann"
    assert (found["G1SEC"].is_private, found["C1GEN"].is_private) == (True, False)
    (group,) = read.organization.groups
    assert (group.name, group.members) == ("cooks", ("U2BEN",))
    first, second, third, fourth = (one.key for one in read.messages)
    spans = {(one.channel, one.user): one.spans for one in read.organization.subscriptions}
    assert spans["C1GEN", "U1ANN"] == ((0, None),)
    ((begin, end),) = spans["C1GEN", "U2BEN"]
    assert end is None
    assert int(first) < begin < int(second)
    ((begin, until),) = spans["C1GEN", "U3GUS"]
    assert until is not None
    assert int(second) < begin < int(third) < until < int(fourth)
    assert (
        read.skipped[
            "messages: It's about someone joining or leaving, which the subscriptions show."
        ]
        == 3
    )


def test_of_very_many_joins_the_earliest_are_dropped(tmp_path: Path) -> None:
    """Nobody gets messages from before, even if they were a member when the export begins."""
    files = SlackFiles()
    files.channels = [channel("C1GEN", "general", ("U1ANN",), is_general=True)]
    kinds = ("channel_leave", "channel_join") * 51
    files.say(
        "general",
        message(0, "first"),
        *(message(n, "…", "U2BEN", subtype=kind) for n, kind in enumerate(kinds, 1)),
        message(200, "last"),
    )
    read = Read(files, tmp_path)
    spans = {one.user: one.spans for one in read.organization.subscriptions}
    assert all(begin > 0 for begin, _ in spans["U2BEN"])


# Threads


def test_threads_become_topics_and_everything_else_the_general_chat(tmp_path: Path) -> None:
    read = Read(
        says(
            message(0, "alone"),
            message(1, "Lunch *today*? <@U2BEN>", thread_ts=ts(1), reply_count=2),
            message(2, "yes", "U2BEN", thread_ts=ts(1)),
            message(3, "Lunch *today*? <@U2BEN>"),
            message(4, "no", "U2BEN", thread_ts=ts(3)),
            message(5, "also here", thread_ts=ts(1), subtype="thread_broadcast"),
            message(6, "its first message is gone", "U2BEN", thread_ts=ts(0.5)),
            message(7, "nobody replied", thread_ts=ts(7), reply_count=1),
            message(8, "", thread_ts=ts(8), files=[{"id": "F1", "mode": "tombstone"}]),
            message(9, "to a deleted file", thread_ts=ts(8)),
            message(10, "word " * 30, thread_ts=ts(10)),
            message(11, "ok", thread_ts=ts(10)),
            message(12, "general chat", thread_ts=ts(12)),
            message(13, "hm", thread_ts=ts(12)),
        ),
        tmp_path,
    )
    topics = {one.content: one.topic for one in read.messages}
    assert topics["alone"] == topics["nobody replied"] == ""
    assert topics["yes"] == topics["also here"] == "Lunch today? @Ben"
    assert topics["no"] == "Lunch today? @Ben (2)"
    assert topics["its first message is gone"] == "its first message is gone"
    assert topics["to a deleted file"] == "2023-11-14 22:13"
    assert topics["ok"] == "word " * 10 + "word…"
    assert topics["hm"] == "2023-11-14 22:13 (2)"
    assert len(read.messages) == 13


def test_threads_that_refer_to_each_other_are_topics(tmp_path: Path) -> None:
    read = Read(says(message(1, "a", thread_ts=ts(2)), message(2, "b", thread_ts=ts(1))), tmp_path)
    assert [one.topic for one in read.messages] == ["b", "a"]


# Messages


def test_messages_are_in_the_order_of_time_across_conversations(tmp_path: Path) -> None:
    files = says(message(0, "1"), message(86_400 * 3, "5"), message(20, "3"))
    files.channels.append(channel("C2DEV", "dev"))
    files.say("dev", message(10, "2"), message(86_400, "4"))
    read = Read(files, tmp_path)
    assert read.contents == ["1", "2", "3", "4", "5"]
    keys = [int(one.key) for one in read.messages]
    assert keys == sorted(set(keys))
    assert [one.sent_at for one in read.messages][:3] == [BEGAN, BEGAN + 10, BEGAN + 20]


def test_an_export_is_continued_after_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.imports.slack.export.BATCH_SIZE", 3)
    with opened(says(*(message(n, f"{n}") for n in range(10))), tmp_path) as export:
        export.survey()
        batches = list(export.messages("", ImportReport()))
        assert [len(one.messages) for one in batches] == [3, 3, 3, 1]
        for number, one in enumerate(batches):
            rest = list(export.messages(one.position, ImportReport()))
            assert rest == batches[number + 1 :]


def test_an_export_is_continued_between_long_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They make the messages that are read together too many for one batch."""
    monkeypatch.setattr("tertulia.imports.slack.export.BATCH_SIZE", 5)
    monkeypatch.setattr("tertulia.imports.slack.export.BATCH", 6)
    texts = [f"{n} " * (9000 if n % 4 == 1 else 1) for n in range(17)]
    with opened(says(*(message(n, text) for n, text in enumerate(texts))), tmp_path) as export:
        export.survey()
        batches = list(export.messages("", ImportReport()))
        assert len(batches) > 4
        for number, one in enumerate(batches):
            rest = list(export.messages(one.position, ImportReport()))
            assert rest == batches[number + 1 :]


def test_direct_messages_are_between_their_members(tmp_path: Path) -> None:
    files = SlackFiles()
    files.dms = [{"id": "D1", "members": ["U1ANN", "U2BEN"]}, {"id": "D2", "members": ["U1ANN"]}]
    files.mpims = [channel("G9", "mpdm-ann--ben--gus-1", ("U1ANN", "U2BEN", "U3GUS"))]
    files.say("D1", message(0, "to Ben"), message(1, "back", "U2BEN", thread_ts=ts(0)))
    files.say("D2", message(2, "note to myself"))
    files.say("mpdm-ann--ben--gus-1", message(3, "three"), message(4, "?", "UGONE"))
    read = Read(files, tmp_path)
    people = [one.people for one in read.messages]
    assert people[:3] == [("U1ANN", "U2BEN"), ("U1ANN", "U2BEN"), ("U1ANN",)]
    assert people[3] == ("U1ANN", "U2BEN", "U3GUS")
    assert "UGONE" in {one.key for one in read.organization.users}
    assert not [one for one in read.messages if one.channel or one.topic]


def test_reactions_edits_pins_and_mentions(tmp_path: Path) -> None:
    files = says(
        message(
            0,
            "look <@U2BEN> <!subteam^S1>",
            edited={"user": "U1ANN", "ts": ts(5)},
            reactions=[
                {"name": "+1::skin-tone-3", "users": ["U2BEN", "U2BEN"], "count": 1},
                {"name": "alias_of_parrot", "users": ["U1ANN"], "count": 1},
                {"name": "unseen", "users": ["U1ANN"], "count": 1},
                {"name": "loop1", "users": ["U1ANN"], "count": 1},
                {"name": "x", "users": ["U1ANN"], "count": 4},
            ],
            pinned_to=["C1GEN"],
        ),
        message(1, "pinned in the list"),
        message(2, "not pinned"),
    )
    files.channels[0]["pins"] = [{"id": ts(1), "type": "C", "user": "U1ANN"}]
    files.more["usergroups.json"] = [{"id": "S1", "handle": "cooks", "users": ["U3GUS"]}]
    files.more["emoji.json"] = {
        "parrot": "https://emoji.slack-edge.com/T1/parrot/1.gif",
        "alias_of_parrot": "alias:parrot",
        "loop1": "alias:loop2",
        "loop2": "alias:loop1",
        "internal": "https://169.254.169.254/secret.png",
    }
    read = Read(files, tmp_path)
    first = read.messages[0]
    found = [(one.user, one.kind, one.code) for one in first.reactions]
    assert found == [
        ("U2BEN", EmojiKind.UNICODE, "1f44d"),
        ("U1ANN", EmojiKind.CUSTOM, "parrot"),
        ("U1ANN", EmojiKind.UNICODE, "274c"),
    ]
    assert read.skipped["reactions: The export doesn't have the custom emoji's image."] == 2
    assert read.skipped["reactions: The export doesn't name the people."] == 3
    assert [one.name for one in read.organization.emoji] == ["parrot"]
    assert [(one.at, one.user) for one in first.edits] == [(BEGAN + 5, "U1ANN")]
    assert first.flags == {"U2BEN": Flag.MENTIONED, "U3GUS": Flag.MENTIONED}
    assert [one.is_pinned for one in read.messages] == [True, True, False]


def test_apps_and_strangers_get_accounts(tmp_path: Path) -> None:
    files = says(
        message(0, "from a known app", "", bot_id="B7", subtype="bot_message"),
        message(1, "from an app", "", bot_id="B8", bot_profile={"name": "Alerts"}),
        message(2, "under a name", "", bot_id="B8", username="CI *main*"),
        message(3, "from a webhook", "", username="hook", subtype="bot_message"),
        message(4, "from another workspace", "U7X", user_profile={"real_name": "Zed"}),
        message(5, "from nobody", ""),
    )
    files.users.append(person("U7BOT", "ci", is_bot=True, profile={"bot_id": "B7"}))
    read = Read(files, tmp_path)
    names = {one.key: one.full_name for one in read.organization.users}
    senders = [names[one.sender] for one in read.messages]
    assert senders == ["ci", "Alerts", "Alerts", "hook", "Zed", "Unknown sender"]
    assert read.contents[2] == "CI *main*\nunder a name"
    assert not any(one.is_active for one in read.organization.users if one.bot)


def test_long_names_are_not_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def noted(head: dict[str, Any]) -> SlackSender:
        looked_at.append(head["username"])
        return sender_of(head)

    monkeypatch.setattr("tertulia.imports.slack.index.sender_of", noted)
    huge = "h" * 1_000_000
    senders = (("", "hook"), ("", "hook"), ("", huge), ("", huge), ("U7X", "zed"))
    profile = {"real_name": huge, "image_72": f"https://example.com/{huge}"}
    read = Read(
        says(
            *(
                message(n, "hi", user, username=name, user_profile=profile)
                for n, (user, name) in enumerate(senders)
            )
        ),
        tmp_path,
    )
    assert looked_at == ["hook", huge, huge, "zed"]  # The second "hook" is already known.
    names = {one.key: one.full_name for one in read.organization.users}
    assert names["U7X"] == names[f"bot {huge[:100]}"] == huge[:100]


def test_special_messages(tmp_path: Path) -> None:
    room = {
        "created_by": "U1ANN",
        "date_start": BEGAN,
        "date_end": BEGAN + 725,
        "participant_history": ["U1ANN", "U2BEN"],
    }
    read = Read(
        says(
            message(0, "waves", subtype="me_message"),
            message(1, "", "USLACKBOT", subtype="huddle_thread", room=room),
            message(2, "a new topic", subtype="channel_topic"),
            message(3, "This message was deleted.", "USLACKBOT", subtype="tombstone"),
            message(4, ""),
        ),
        tmp_path,
    )
    assert read.contents[0] == "/me waves"
    assert read.contents[1].startswith("/me had a huddle of 12 minutes with ")
    assert read.messages[1].sender == "U1ANN"
    assert len(read.messages) == 2
    assert read.skipped["messages: It was deleted in Slack."] == 1
    assert read.skipped["messages: It's empty."] == 1
    reason = "It's about a change of the channel, which is imported in its current state."
    assert read.skipped[f"messages: {reason}"] == 1


def test_a_message_that_is_twice_in_the_export_comes_once(tmp_path: Path) -> None:
    files = says(message(0, "once"), message(0, "once"))
    assert Read(files, tmp_path).contents == ["once"]


def test_a_long_message_becomes_several_in_order(tmp_path: Path) -> None:
    text = "\n".join(f"line {n} <@U1ANN>" for n in range(2000))
    read = Read(says(message(0, text), message(1, "after")), tmp_path)
    shown = text.replace("<@U1ANN>", references.person("U1ANN", "@Ann"))
    assert "\n".join(read.contents[:-1]) == shown
    assert all(len(one) <= 10_000 for one in read.contents)
    keys = [int(one.key) for one in read.messages]
    assert keys == sorted(set(keys))


# Files


def shared(key: str, **more: Any) -> dict[str, Any]:
    url = f"https://files.slack.com/files-pri/T1-{key}/download/{key}.txt"
    return {
        "id": key,
        "name": f"{key}.txt",
        "title": f"{key}.txt",
        "mimetype": "text/plain",
        "mode": "hosted",
        "size": 5,
        "url_private_download": url,
        "permalink": f"https://acme.slack.com/files/U1/{key}/{key}.txt",
        **more,
    }


def test_which_files_are_imported(tmp_path: Path) -> None:
    with_token = "https://files.slack.com/F5.txt?t=xoxe-1-2"
    files = says(
        message(
            0,
            "files",
            files=[
                shared("F1"),
                shared("F2"),
                shared("F3", mode="hidden_by_limit"),
                shared("F4", mode="external", url_private="https://docs.example.com/1"),
                shared("F5", url_private_download=with_token),
                shared("F6", url_private_download="https://evil.example.com/slack.com"),
                shared("F7", mode="tombstone"),
                shared("F8"),
                {"id": ["?"]},
            ],
        )
    )
    files.more["__uploads/F2/two.txt"] = b"second"
    files.more["general/attachments/F8-eight.txt"] = b"eighth"
    read = Read(files, tmp_path)
    places = [one.file.place for one in read.messages[0].attachments]
    assert places == ["__uploads/F2/two.txt", with_token, "general/attachments/F8-eight.txt"]
    content = read.contents[0]
    assert "[F1.txt](https://acme.slack.com/files/U1/F1/F1.txt)" in content
    assert "[F4.txt](https://docs.example.com/1)" in content
    assert "xoxe" not in content
    assert "F3" not in content
    for one in read.messages[0].attachments:
        assert f"]({'/user_uploads/'}{one.path})" in content
    assert Read(files, tmp_path / "again").messages[0].attachments  # The index is built again.
    reasons = {key.partition(": ")[2] for key in read.skipped if key.startswith("files:")}
    assert reasons == {
        "Downloading them requires a token (--token), so they're linked.",
        "Slack hid them, because the plan's limit was reached.",
        "The export doesn't have links to them.",
        "They were deleted in Slack.",
    }


class FakeSlack(ThreadingHTTPServer):
    """Serves files to clients that send the token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str, str]] = []
        self.failures: dict[str, int] = {}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, FakeSlack)
        token = self.headers.get("Authorization", "")
        server.requests.append((self.headers["Host"].partition(":")[0], self.path, token))
        path = self.path.partition("?")[0]
        status, kind, body = 200, "text/plain", f"content of {path}".encode()
        if server.failures.get(path, 0) > 0:
            server.failures[path] -= 1
            status = 503
        elif path == "/moved.txt":
            status = 302
        elif path == "/gone.txt":
            status = 404
        elif self.headers["Host"].startswith("files.slack.com") and "xox" not in token + self.path:
            kind, body = "text/html", b"<title>Sign in</title>"
        self.send_response(status)
        port = server.server_address[1]
        self.send_header("Location", f"http://other.example.com:{port}/x.txt")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlack]:
    monkeypatch.setattr("tertulia.imports.slack.files.SCHEMES", frozenset({"http", "https"}))
    server = FakeSlack()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def local_web() -> Web:
    async def resolve(_host: str, _port: int) -> list[Any]:
        return [ip_address("127.0.0.1")]

    return Web(resolve=resolve, may_ask=lambda _: True, ports=None)


def test_files_are_fetched_with_the_token(
    slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.imports.downloads.asyncio.sleep", _no_sleep)
    base = f"http://files.slack.com:{slack.server_address[1]}"
    names = ["a", "busy", "moved", "gone"]
    slack.failures = {"/busy.txt": 2}
    given = [
        shared(f"F{n}", url_private_download=f"{base}/{one}.txt") for n, one in enumerate(names)
    ]
    files = says(message(0, "files", files=given))
    with opened(files, tmp_path, token="xoxp-1", new_web=local_web) as export:
        export.survey()
        (batch,) = export.messages("", ImportReport())
        found: list[bytes | str] = []
        for one in batch.messages[0].attachments:
            try:
                with export.open(one.file.place) as file:
                    found.append(file.read())
            except FileNotFoundError as error:
                found.append(str(error))
        left = [one for one in (tmp_path / "work").rglob("*") if one.suffix == ".txt"]
    assert found[0] == b"content of /a.txt"
    assert found[1] == b"content of /busy.txt"
    assert found[2] == b"content of /x.txt"
    assert "404" in str(found[3])
    assert left == []
    tokens = {host: token for host, _, token in slack.requests}
    assert tokens == {"files.slack.com": "Bearer xoxp-1", "other.example.com": ""}


async def _no_sleep(_: float) -> None:
    pass


def test_a_login_page_is_not_taken_for_a_file(slack: FakeSlack, tmp_path: Path) -> None:
    url = f"http://files.slack.com:{slack.server_address[1]}/a.txt"
    with (
        opened(says(), tmp_path, new_web=local_web) as export,
        pytest.raises(FileNotFoundError, match="Slack asked to sign in"),
    ):
        export.open(url)


# Untrusted files


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("users.json", b"[", r"users\.json isn't valid JSON"),
        ("users.json", b"{}", r"users\.json isn't a list"),
        ("users.json", b"[]", "The export has no people"),
        ("channels.json", b'["' + b"[" * 100_000, r"channels\.json isn't valid JSON"),
        ("channels.json", b"[" * 100_000, r"channels\.json isn't valid JSON"),
        ("emoji.json", b"?", r"emoji\.json isn't valid JSON"),
    ],
)
def test_broken_lists_are_named(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    files = says(message(0, "x"))
    files.more[name] = content
    with pytest.raises(SourceError, match=sentence):
        Read(files, tmp_path)


def test_something_else_is_not_an_export(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(SourceError, match="isn't a Slack export"):
        SlackExport(tmp_path / "photos", tmp_path / "work")
    archive = says(message(0, "x" * 5000)).zipped(tmp_path / "a.zip")
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(SourceError):
        SlackExport(archive, tmp_path / "work")


def test_crafted_values_are_skipped_or_ignored(tmp_path: Path) -> None:
    files = says(
        message(0, "good"),
        message(1, "odd", thread_ts={"a": 1}, edited=7, reactions="x", files={"id": 1}, blocks=3),
        message(2, "odder", user=["U1"], pinned_to=5, attachments=[[]], room=[], bot_id=9),
        message(3, None, ts="never"),
        message(4, "far", ts="99999999999999999999.0"),
        {"ts": ts(5), "text": "x", "reactions": [{"name": None, "users": [None, {}]}]},
        message(6, "\ud800 lone"),
    )
    files.users += [5, None, {"id": 3}, {"id": "U5", "profile": [], "name": {"x": 1}}]
    files.channels += [
        None,
        {"id": "C9"},
        {"id": "C1GEN", "name": "again"},
        channel("C8", "../../etc", members=[1, "U1ANN", "U404"], topic=3, created="never"),
    ]
    files.more["general/2023-11-15.json"] = b'[1, "x", null, [], {"ts": "1700000100.000000"'
    files.more["general/2023-11-16.json"] = b'[1, "x", null, []]'
    files.more["general/2023-11-17.json"] = b'{"ts": 1}'
    files.more["unlisted/2023-11-14.json"] = [message(7, "who knows")]
    read = Read(files, tmp_path)
    assert read.contents[:3] == ["good", "odd", "odder"]
    assert read.skipped["messages: It has no valid time."] == 2
    assert read.skipped["files of messages: It isn't a list of messages in JSON."] == 2
    assert read.skipped["messages: It isn't a valid JSON object."] == 4
    assert read.skipped["conversations: The export's lists don't mention it."] == 1
    assert [one.key for one in read.organization.channels] == ["C1GEN", "C9", "C8"]


def test_a_huge_message_is_skipped_and_a_large_one_is_cut(tmp_path: Path) -> None:
    read = Read(says(message(0, "x" * 10_000_000), message(1, "y" * 17_000_000)), tmp_path)
    assert len(read.messages) == 8
    (reason,) = (one.reason for one in read.report.changed.values() if "shortened" in one.reason)
    assert reason == "It was shortened to 72000 characters."
    assert read.skipped["messages: It's larger than 16 MiB."] == 1


def test_links_out_of_the_export_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps([message(0, "secret")]))
    files = says(message(1, "open", files=[shared("F1")]))
    root = files.unpacked(tmp_path / "export")
    (root / "general" / "2023-11-13.json").symlink_to(secret)
    (root / "__uploads" / "F1").mkdir(parents=True)
    (root / "__uploads" / "F1" / "a.txt").symlink_to(secret)
    read = Read(files, tmp_path)
    assert [one.content.partition("\n")[0] for one in read.messages] == ["open"]
    assert read.messages[0].attachments == ()


def test_names_with_markup_stay_text(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)> **all**"
    files = says(
        message(0, "hi <@U666> in <#C666>", thread_ts=ts(0)),
        message(1, "x", thread_ts=ts(0)),
        message(2, f"[{evil}](javascript:alert(1)) @**all**"),
    )
    files.users.append(person("U666", evil))
    files.channels.append(channel("C666", evil))
    read = Read(files, tmp_path)
    assert "@**all**" not in read.contents[2]
    assert "]" not in read.contents[2].replace(r"\]", "")
    assert read.messages[0].topic.startswith("hi @<img")


# Whole imports


pytest_async = pytest.mark.anyio


def rows_of(config: Config, sql: str) -> list[tuple[Any, ...]]:
    with closing(
        database_at(config.data_path, config.database_url).connect(readonly=True, limits=READING)
    ) as connection:
        return [tuple(row) for row in connection.query(sql)]


@pytest_async
async def test_an_export_becomes_an_organization(config: Config, tmp_path: Path) -> None:
    link = f"<https://acme.slack.com/archives/C1GEN/p{ts(1).replace('.', '')}>"
    files = says(
        message(1, "Where to eat?", thread_ts=ts(1)),
        message(2, "Here, <@U2BEN> and <@U4BEN>", "U2BEN", thread_ts=ts(1)),
        message(3, f"as I said: {link}", files=[shared("F1")]),
        message(4, "later", edited={"user": "U1ANN", "ts": ts(9)}),
    )
    files.users.append(person("U4BEN", "Ben", profile={"email": "other@example.com"}))
    files.dms = [{"id": "D1", "members": ["U1ANN", "U2BEN"]}]
    files.say("D1", message(5, "psst"))
    files.more["__uploads/F1/one.txt"] = b"hello"
    archive = files.zipped(tmp_path / "Harbor Café Slack export Nov 14 2023.zip")
    export = SlackExport(archive, tmp_path / "work")
    try:
        progress = await imported(config, export)
    finally:
        await asyncio.to_thread(export.close)
    assert progress.report.imported["messages"] == 5
    assert progress.report.imported["files"] == 1
    sql = (
        "SELECT m.id, t.name, m.content, m.rendered FROM messages AS m"
        " LEFT JOIN message_topics AS t ON t.id = m.topic_id ORDER BY m.id"
    )
    rows = rows_of(config, sql)
    assert [row[1] for row in rows][:4] == ["Where to eat?", "Where to eat?", "", ""]
    assert rows[1][2].count("@**Ben|") == 2
    assert f"/near/{rows[0][0]})" in rows[2][2]
    assert '<a href="/user_uploads/1/' in rows[2][3]
    edits = rows_of(config, "SELECT message_id, was_content FROM message_edits")
    assert edits == [(rows[3][0], "later")]
    assert rows_of(config, "SELECT doc FROM realm")[0][0].count("Harbor Café") == 1


def test_messages_have_no_other_kinds_of_keys(tmp_path: Path) -> None:
    """The importer applies subscriptions between integer keys."""
    read = Read(says(message(0, "x")), tmp_path)
    assert all(isinstance(one.key, int) for one in read.messages if isinstance(one, SourceMessage))
