"""Exports of any size in the formats of other servers, for the benchmark and tests.

All of them have the same team and conversations, always the same: threads, mentions, reactions,
edits, direct messages, and files. They're written message by message.
"""

import json
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from tests.imports import mattermost_export, rocketchat_dump, slack_exports, zulip_export

PEOPLE: Final = 200
CHANNELS: Final = 40
MEMBERS: Final = 20
"""People of each channel."""
BLOCK: Final = 10
"""Consecutive messages in one conversation."""
_FILE: Final = 2048
"""Bytes of each uploaded file."""
_FIRST: Final = 10
"""The number of the first person."""
_TEXT: Final = (
    "the meeting moved because nobody could find the notes from last week and so we should look at"
    " them again before lunch, thanks for the quick fix of the harbor door"
)
_WORDS: Final = _TEXT.split()
_encode = msgspec.json.encode
Json = dict[str, Any]


class Talk(Struct, frozen=True):
    """A message, independent of a server's format."""

    number: int
    at: int
    """UNIX seconds."""
    sender: int
    channel: int | None
    partner: int
    """The partner in a direct message."""
    root: int
    """The number of the message that begins the thread. Without a thread, it's the message's
    own."""
    begins: bool
    """Whether others reply to it."""
    text: str
    mentioned: int | None
    reactors: tuple[int, ...]
    is_edited: bool
    file: str
    """The name of a file."""


def people() -> range:
    return range(_FIRST, _FIRST + PEOPLE)


def members(channel: int) -> list[int]:
    """Return the members of a channel."""
    step = PEOPLE // MEMBERS
    return list(range(_FIRST + channel % step, _FIRST + PEOPLE, step))


def talks(messages: int) -> Iterator[Talk]:
    return map(_talk, range(messages))


def _talk(n: int) -> Talk:
    choose = random.Random(n)
    block, position = divmod(n, BLOCK)
    begin = block * BLOCK
    channel = None if block % 8 == 7 else 1 + block * 7919 % CHANNELS
    if channel is None:
        first = _FIRST + block * 31 % PEOPLE
        pair = [first, _FIRST + (first + 1 + block % 7) % PEOPLE]
        sender, partner = pair if choose.random() < 0.5 else pair[::-1]
        present = pair
    else:
        present = members(channel)
        sender, partner = choose.choice(present), 0
    words = choose.choices(_WORDS, k=choose.randrange(3, 40))
    if n % 50 == 0:
        words += ["\n```\nfor one in several:\n    print(one)\n```"]
    in_thread = channel is not None and 3 <= position < 7
    return Talk(
        number=n,
        at=1_500_000_000 + 30 * n,
        sender=sender,
        channel=channel,
        partner=partner,
        root=begin if in_thread else n,
        begins=channel is not None and position == 0,
        text=" ".join(words),
        mentioned=choose.choice(present) if n % 10 == 4 else None,
        reactors=tuple(choose.sample(present, 2)) if n % 4 == 0 else (),
        is_edited=n % 20 == 9,
        file=f"plan-{n}.txt" if n % 200 == 100 else "",
    )


def _content(name: str) -> bytes:
    return (name.encode() * _FILE)[:_FILE]


# Zulip


def zulip(messages: int, directory: Path) -> Path:
    """Write a directory like `manage.py export`, with a row for each reader of a message. Return
    its path."""
    made = zulip_export.ZulipExportBuilder()
    made.messages, made.flags, made.attachments, made.files = [], [], [], {}
    made.records = {}
    _zulip_realm(made)
    place = made.written(directory)
    reactions = (place / "reactions.part").open("wb")
    attachments = []
    file: BinaryIO | None = None
    rows: list[bytes] = []
    flags: list[bytes] = []
    with reactions:
        for one in talks(messages):
            key = one.number + 1
            row = _zulip_message(one)
            if one.file:
                attachments.append(_zulip_file(one, place))
            rows.append(msgspec.json.format(_encode(row), indent=2))
            flags += [_zulip_flag(one, key, n, who) for n, who in enumerate(_readers(one))]
            for n, who in enumerate(one.reactors):
                reaction = zulip_export.reaction(key * 2 + n, who, key, "+1", "1f44d")
                reactions.write(
                    b",\n" + _encode(reaction) if reactions.tell() else _encode(reaction)
                )
            if key % 1000 == 0 or key == messages:
                with (place / f"messages-{-(-key // 1000):06}.json").open("wb") as file:
                    file.write(b'{\n  "zerver_message": [\n' + b",\n".join(rows))
                    file.write(b'\n  ],\n  "zerver_usermessage": [\n' + b",\n".join(flags))
                    file.write(b"\n  ]\n}\n")
                rows.clear()
                flags.clear()
    realm = (place / "realm.json").read_bytes()
    begin, found, end = realm.partition(b'"zerver_reaction": [')
    with (place / "realm.json").open("wb") as file:
        file.write(begin + found)
        with (place / "reactions.part").open("rb") as read:
            while piece := read.read(1 << 20):
                file.write(piece)
        file.write(end)
    (place / "reactions.part").unlink()
    counts = {
        path.stem: {"zerver_message": min(1000, messages - 1000 * n)}
        for n, path in enumerate(sorted(place.glob("messages-*.json")))
    }
    (place / "stats.json").write_bytes(_encode(counts))
    (place / "attachment.json").write_bytes(_encode({"zerver_attachment": attachments}))
    return place


def _zulip_realm(made: zulip_export.ZulipExportBuilder) -> None:
    realm = made.realm
    kept = ("zerver_realm", "zerver_client", "zerver_userprofile_crossrealm")
    realm.update({table: [] for table in realm if table not in kept})
    realm.update(zulip_export.groups("now"))
    realm["zerver_usergroup"] = [row for row in realm["zerver_usergroup"] if row["id"] <= 8]
    realm["zerver_namedusergroup"] = [r for r in realm["zerver_namedusergroup"] if r["id"] <= 8]
    realm["zerver_usergroupmembership"] = realm["zerver_groupgroupmembership"] = []
    row = realm["zerver_realm"][0]
    for name in [one for one in row if one.endswith(("_group", "_stream"))]:
        del row[name]
    row["icon_source"] = "G"
    realm["zerver_userprofile"] = [
        zulip_export.user(who, f"Person {who}", role=100 if who == _FIRST else 400)
        | {"delivery_email": f"person{who}@example.com"}
        for who in people()
    ]
    channels = range(1, CHANNELS + 1)
    realm["zerver_stream"] = [
        zulip_export.channel("372", one, f"channel {one}", recipient=1000 + one, creator=_FIRST)
        for one in channels
    ]
    for one in realm["zerver_stream"]:
        del one["can_administer_channel_group"]
    realm["zerver_recipient"] = [
        *({"id": 100 + who, "type": 1, "type_id": who} for who in people()),
        *({"id": 1000 + one, "type": 2, "type_id": one} for one in channels),
    ]
    realm["zerver_subscription"] = [
        zulip_export.subscription(one * 1000 + who, who, 1000 + one)
        for one in channels
        for who in members(one)
    ]
    realm["zerver_realmauditlog"] = [
        zulip_export.event(one * 1000 + who, 301, who, one, 0)
        for one in channels
        for who in members(one)
    ]
    realm["zerver_reaction"] = []


def _readers(one: Talk) -> list[int]:
    return [one.sender, one.partner] if one.channel is None else members(one.channel)


def _zulip_message(one: Talk) -> Json:
    recipient = 100 + one.partner if one.channel is None else 1000 + one.channel
    text = one.text
    if one.mentioned:
        text += f" @**Person {one.mentioned}**"
    if one.file:
        text += f"\n[{one.file}](/user_uploads/2/aa/{one.number:020}/{one.file})"
    topic = "" if one.channel is None else f"topic {one.number // BLOCK % 2000}"
    row = zulip_export.message(one.number + 1, one.sender, recipient, text, subject=topic)
    row["date_sent"] = one.at + 0.25
    row["rendered_content"] = f"<p>{text}</p>"
    if one.is_edited:
        was = [{"user_id": one.sender, "timestamp": one.at + 9, "prev_content": one.text[::-1]}]
        row["edit_history"] = json.dumps(was)
    return row


def _zulip_flag(one: Talk, key: int, n: int, who: int) -> bytes:
    mask = (0 if who == _FIRST + 1 and key % 50 == 0 else 1) | 8 * (who == one.mentioned)
    return (
        f'    {{\n      "id": {key * MEMBERS + n},\n      "user_profile": {who},\n'
        f'      "message": {key},\n      "flags_mask": {mask}\n    }}'
    ).encode()


def _zulip_file(one: Talk, place: Path) -> Json:
    path = f"2/aa/{one.number:020}/{one.file}"
    target = place / "uploads" / path
    target.parent.mkdir(parents=True)
    target.write_bytes(_content(one.file))
    return {
        "id": one.number,
        "owner": one.sender,
        "create_time": one.at,
        "realm": 2,
        "file_name": one.file,
        "path_id": path,
        "size": _FILE,
        "content_type": "text/plain",
        "messages": [one.number + 1],
        "scheduled_messages": [],
    }


# Slack


def slack(messages: int, directory: Path) -> Path:
    """Write an archive like Slack's, with a file for each day of a conversation. Uploaded files are
    in the archive, as tools that download them do."""
    made = slack_exports.SlackFiles()
    made.users = [
        slack_exports.person(
            f"U{who}", f"Person {who}", is_owner=who == _FIRST, is_primary_owner=who == _FIRST
        )
        for who in people()
    ]
    for number, row in zip(people(), made.users, strict=True):
        row["profile"]["email"] = f"person{number}@example.com"
    made.channels = [
        slack_exports.channel(
            f"C{number}", f"channel-{number}", [f"U{who}" for who in members(number)]
        )
        for number in range(1, CHANNELS + 1)
    ]
    pairs: set[tuple[int, ...]] = set()
    place = directory / "Bench Slack export Jan 1 2020 - Jan 1 2026.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        day, some = "", dict[str, list[Json]]()
        for one in talks(messages):
            today = f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d}"
            if today != day:
                _slack_day(archive, day, some)
                day, some = today, {}
            if one.channel is None:
                pairs.add(tuple(sorted((one.sender, one.partner))))
            some.setdefault(_slack_place(one), []).append(_slack_message(one))
            if one.file:
                name = f"__uploads/F{one.number}/{one.file}"
                archive.writestr(name, _content(one.file), zipfile.ZIP_STORED)
        _slack_day(archive, day, some)
        made.dms = [
            {"id": f"D{a}A{b}", "created": 1, "members": [f"U{a}", f"U{b}"]}
            for a, b in sorted(pairs)
        ]
        for name, content in made.files().items():
            archive.writestr(name, content)
    return place


def _slack_place(one: Talk) -> str:
    if one.channel is not None:
        return f"channel-{one.channel}"
    first, last = sorted((one.sender, one.partner))
    return f"D{first}A{last}"


def _slack_message(one: Talk) -> Json:
    text = one.text
    parts: list[Json] = [{"type": "text", "text": text}]
    if one.mentioned:
        text += f" <@U{one.mentioned}>"
        parts += [{"type": "text", "text": " "}, {"type": "user", "user_id": f"U{one.mentioned}"}]
    section = {"type": "rich_text_section", "elements": parts}
    at = one.at + 0.000200
    row = {
        "user": f"U{one.sender}",
        "type": "message",
        "ts": f"{at:.6f}",
        "client_msg_id": f"{one.number:032x}",
        "text": text,
        "team": "T1",
        "user_team": "T1",
        "source_team": "T1",
        "user_profile": {"real_name": f"Person {one.sender}", "team": "T1", "is_restricted": False},
        "blocks": [{"type": "rich_text", "block_id": "b", "elements": [section]}],
    }
    if one.begins or one.root != one.number:
        row["thread_ts"] = f"{at - 30 * (one.number - one.root):.6f}"
    if one.reactors:
        users = [f"U{who}" for who in one.reactors]
        row["reactions"] = [{"name": "+1", "users": users, "count": len(users)}]
    if one.is_edited:
        row["edited"] = {"user": f"U{one.sender}", "ts": f"{at + 9:.6f}"}
    if one.file:
        row["files"] = [
            {
                "id": f"F{one.number}",
                "name": one.file,
                "mimetype": "text/plain",
                "size": _FILE,
                "url_private_download": f"https://files.slack.com/files-pri/T1-F{one.number}/plan",
            }
        ]
    return row


def _slack_day(archive: zipfile.ZipFile, day: str, some: Mapping[str, list[Json]]) -> None:
    for place, rows in some.items():
        content = msgspec.json.format(_encode(rows), indent=4).replace(b"/", b"\\/")
        archive.writestr(f"{place}/{day}.json", content)


# Mattermost


def mattermost(messages: int, directory: Path) -> Path:
    """Write an archive like `mmctl export create`. Posts contain their replies."""
    place = directory / "mattermost.zip"
    files: list[str] = []
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("import.jsonl", "w", force_zip64=True) as file:
            for line in _mattermost_organization():
                file.write(_encode(line) + b"\n")
            block: dict[int, Json] = {}
            direct: list[Json] = []
            for one in talks(messages):
                if one.number % BLOCK == 0:
                    file.writelines(_encode(line) + b"\n" for line in block.values())
                    block = {}
                line = _mattermost_post(one)
                if one.file:
                    files.append(one.file)
                if one.channel is None:
                    direct.append(line)  # Direct posts come last.
                    if len(direct) == 10_000:
                        file.writelines(_encode(line) + b"\n" for line in direct)
                        direct = []
                elif one.root != one.number:
                    block[one.root]["post"]["replies"].append(line)
                else:
                    block[one.number] = line
            file.writelines(_encode(line) + b"\n" for line in (*block.values(), *direct))
        for name in files:
            archive.writestr(f"data/files/{name}", _content(name), zipfile.ZIP_STORED)
    return place


def _mattermost_organization() -> Iterator[Json]:
    yield mattermost_export.version()
    yield mattermost_export.team()
    for one in range(1, CHANNELS + 1):
        yield mattermost_export.channel(f"channel-{one}", f"Channel {one}")
    for who in people():
        yield mattermost_export.user(
            f"person{who}",
            roles="system_admin system_user" if who == _FIRST else "system_user",
            channels=[
                mattermost_export.membership(f"channel-{one}")
                for one in range(1, CHANNELS + 1)
                if who in members(one)
            ],
        )


def _mattermost_post(one: Talk) -> Json:
    name = f"person{one.sender}"
    text = one.text + (f" @person{one.mentioned}" if one.mentioned else "")
    more: Json = {}
    if one.reactors:
        more["reactions"] = [
            {"user": f"person{who}", "create_at": 1, "emoji_name": "+1"} for who in one.reactors
        ]
    if one.file:
        more["attachments"] = [{"path": f"files/{one.file}"}]
    minute = 0
    line: Json
    post: Json
    if one.channel is None:
        line = mattermost_export.direct([name, f"person{one.partner}"], name, text, minute, **more)
        post = line["direct_post"]
    elif one.root != one.number:
        line = post = mattermost_export.reply(name, text, minute, **more)
    else:
        line = mattermost_export.post(name, text, minute, channel=f"channel-{one.channel}", **more)
        post = line["post"]
    post["create_at"] = 1000 * one.at
    post["edit_at"] = 1000 * (one.at + 9) if one.is_edited else 0
    return line


# Rocket.Chat


def rocketchat(messages: int, directory: Path) -> Path:
    """Write a directory like `mongodump`, with files in the database."""
    place = directory / "dump"
    rooms: dict[str, Json] = {}
    subscriptions: dict[str, Json] = {}
    for number in range(1, CHANNELS + 1):
        rooms[f"C{number}"] = rocketchat_dump.room(f"C{number}", fname=f"channel {number}")
        for who in members(number):
            row = rocketchat_dump.subscription(f"C{number}", f"person{who}")
            subscriptions[row["_id"]] = row
    rocketchat_dump.written(place, {})
    database = place / "rocketchat"
    with (
        (database / "rocketchat_message.bson").open("wb") as file,
        (database / "rocketchat_uploads.bson").open("wb") as uploads,
        (database / "rocketchat_uploads.chunks.bson").open("wb") as chunks,
    ):
        for one in talks(messages):
            row = _rocketchat_message(one)
            if one.channel is None and row["rid"] not in rooms:
                names = [f"person{who}" for who in sorted((one.sender, one.partner))]
                ids = [f"id-{name}" for name in names]
                rooms[row["rid"]] = rocketchat_dump.room(row["rid"], "d", uids=ids, usernames=names)
            file.write(rocketchat_dump.bson(row))
            if one.file:
                upload = {"_id": f"up{one.number}", "name": one.file, "store": "GridFS:Uploads"}
                uploads.write(rocketchat_dump.bson(upload))
                chunk = {"_id": upload["_id"], "files_id": upload["_id"], "n": 0}
                chunks.write(rocketchat_dump.bson(chunk | {"data": _content(one.file)}))
    others = {
        "users": [
            rocketchat_dump.user(
                f"person{who}", roles=["user", "admin"] if who == _FIRST else ["user"]
            )
            for who in people()
        ],
        "rocketchat_room": list(rooms.values()),
        "rocketchat_subscription": list(subscriptions.values()),
    }
    for name, rows in others.items():
        (database / f"{name}.bson").write_bytes(b"".join(map(rocketchat_dump.bson, rows)))
    return place


def _rocketchat_message(one: Talk) -> Json:
    text = one.text + (f" @person{one.mentioned}" if one.mentioned else "")
    more: Json = {}
    if one.begins:
        more["tcount"] = 4
    if one.root != one.number:
        more["tmid"] = f"m{one.root}"
    if one.reactors:
        names = [f"person{who}" for who in one.reactors]
        more["reactions"] = {":+1:": {"usernames": names}}
    if one.is_edited:
        more["editedAt"] = rocketchat_dump.Time(1000 * (one.at + 9))
        more["editedBy"] = rocketchat_dump.person(f"person{one.sender}")
    if one.file:
        file = {"_id": f"up{one.number}", "name": one.file, "type": "text/plain"}
        link = f"/file-upload/up{one.number}/{one.file}"
        more["files"] = [file]
        more["attachments"] = [{"type": "file", "title": one.file, "title_link": link}]
    row: Json = rocketchat_dump.message(f"m{one.number}", f"person{one.sender}", text, 0, **more)
    first, last = sorted((one.sender, one.partner))
    row["rid"] = f"D{first}A{last}" if one.channel is None else f"C{one.channel}"
    row["ts"] = rocketchat_dump.Time(1000 * one.at)
    return row


WRITERS: Final[Mapping[str, Callable[[int, Path], Path]]] = {
    "zulip": zulip,
    "slack": slack,
    "mattermost": mattermost,
    "rocketchat": rocketchat,
}
"""The functions that write an export with a number of messages into a directory, and return its
path."""
