"""Small dumps of Rocket.Chat's database in the format of `mongodump`."""

import gzip
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.imports.mattermost_export import PNG

BEGAN = 1_600_000_000_000
"""Milliseconds since 1970."""


class Time(int):
    """Milliseconds since 1970, as BSON's date."""


def bson(document: Mapping[str, Any]) -> bytes:
    """Encode a document."""
    content = b"".join(_element(name, value) for name, value in document.items())
    return struct.pack("<i", len(content) + 5) + content + b"\0"


def _element(name: str, value: Any) -> bytes:
    key = name.encode() + b"\0"
    match value:
        case bool():
            return b"\x08" + key + bytes([value])
        case Time():
            return b"\x09" + key + struct.pack("<q", value)
        case int():
            return b"\x10" + key + struct.pack("<i", value)
        case float():
            return b"\x01" + key + struct.pack("<d", value)
        case str():
            text = value.encode() + b"\0"
            return b"\x02" + key + struct.pack("<i", len(text)) + text
        case bytes():
            return b"\x05" + key + struct.pack("<ib", len(value), 0) + value
        case list():
            return b"\x04" + key + bson({str(n): one for n, one in enumerate(value)})
        case Mapping():
            return b"\x03" + key + bson(value)
        case None:
            return b"\x0a" + key
    raise TypeError(value)


def at(minute: float) -> Time:
    return Time(BEGAN + 60_000 * minute)


def person(name: str) -> dict[str, Any]:
    return {"_id": f"id-{name}", "username": name, "name": f"{name.title()} Sample"}


def user(name: str, **more: Any) -> dict[str, Any]:
    return {
        **person(name),
        "type": "user",
        "active": True,
        "roles": ["user"],
        "emails": [{"address": f"{name}@example.com", "verified": True}],
        "createdAt": at(-100),
        "services": {"password": {"bcrypt": "$2b$10$x"}},
        **more,
    }


def room(key: str, kind: str = "c", **more: Any) -> dict[str, Any]:
    return {"_id": key, "t": kind, "name": key.lower(), "ts": at(-50), "u": person("ann"), **more}


def subscription(key: str, name: str, **more: Any) -> dict[str, Any]:
    values = {"_id": f"{key}{name}", "rid": key, "u": person(name), "t": "c", "open": True}
    return {**values, "ls": at(11), "alert": False, "unread": 0, "f": False, **more}


def message(key: str, sender: str, text: str, minute: float, **more: Any) -> dict[str, Any]:
    values = {"_id": key, "rid": "GENERAL", "msg": text, "ts": at(minute), "u": person(sender)}
    parsed = [{"type": "PARAGRAPH", "value": [{"type": "PLAIN_TEXT", "value": text}]}]
    return {**values, "urls": [], "mentions": [], "channels": [], "md": parsed, **more}


LINK = "https://chat.example.com/channel/general?msg="


def sample() -> dict[str, list[dict[str, Any]]]:
    """Return the collections of a server with three people, a bot, and one of everything. Messages
    aren't in chronological order."""
    return {
        "rocketchat_settings": [
            {"_id": "Site_Name", "value": "Harbor Café"},
            {"_id": "Other", "value": {"a": [1, 2]}},
        ],
        "users": [
            user(
                "ann",
                roles=["user", "admin"],
                nickname="Annie",
                bio="Bakes.",
                language="pt-BR",
                statusText="Break",
                settings={"preferences": {"clockMode": 2, "highlights": ["scones"]}},
            ),
            user("ben"),
            user("gus", roles=["guest"], active=False),
            user("kettle", type="bot", emails=None),
            user("visitor", type="visitor"),
        ],
        "rocketchat_avatars": [{"_id": "av1", "userId": "id-ann", "name": "ann"}],
        "rocketchat_avatars.chunks": [{"_id": "c1", "files_id": "av1", "n": 0, "data": PNG}],
        "rocketchat_team": [{"_id": "T1", "name": "bakers", "type": 1, "roomId": "TEAM"}],
        "rocketchat_team_member": [{"_id": "m1", "teamId": "T1", "userId": "id-ben"}],
        "rocketchat_room": [
            room("GENERAL", fname="General", default=True, topic="All of us", announcement="Hi"),
            room("TEAM", "p", teamId="T1", teamMain=True, ro=True, archived=True),
            room("DISC", prid="GENERAL", fname="Who has the key?"),
            room("SECRET", "p", prid="GENERAL", fname="Surprise"),
            room("LIVE", "l"),
            room("DM", "d", uids=["id-ann", "id-ben"], usernames=["ann", "ben"]),
        ],
        "rocketchat_subscription": [
            subscription("GENERAL", "ann", roles=["owner"], f=True),
            subscription("GENERAL", "ben", alert=True, disableNotifications=True),
            subscription("GENERAL", "gus", alert=True),
            subscription("TEAM", "ben", desktopNotifications="all"),
            subscription("DISC", "ben", f=True),
            subscription("DM", "ann"),
            subscription("DM", "ben", unread=2, alert=True),
        ],
        "rocketchat_custom_emoji": [{"name": "scone", "extension": "png", "aliases": ["bun"]}],
        "custom_emoji.chunks": [{"_id": "c2", "files_id": "scone.png", "n": 0, "data": PNG}],
        "rocketchat_uploads": [
            {"_id": "up1", "name": "menu.png", "store": "GridFS:Uploads", "rid": "GENERAL"},
            {"_id": "up2", "name": "plan.pdf", "store": "AmazonS3:Uploads"},
        ],
        "rocketchat_uploads.chunks": [
            {"_id": "c4", "files_id": "up1", "n": 1, "data": PNG[30:]},
            {"_id": "c3", "files_id": "up1", "n": 0, "data": PNG[:30]},
        ],
        "rocketchat_message": [
            message(
                "root",
                "ben",
                "Who has the *key*?",
                10,
                tcount=2,
                reactions={
                    ":thumbsup:": {"usernames": ["ann", "ghost"]},
                    ":bun:": {"usernames": ["ann"]},
                },
                starred=[{"_id": "id-ann"}],
                pinned=True,
            ),
            message("hello", "ann", "Morning @all and @ben, see #team and #nowhere", 1),
            message("r1", "ann", "_I_ do, @bakers.", 12, tmid="root", editedAt=at(13),
                    editedBy=person("ben")),
            message(
                "quote", "ben", f"[ ]({LINK}hello) Good morning! {LINK}root", 13,
                attachments=[{"message_link": f"{LINK}hello", "author_name": "ann",
                              "text": "Morning @all", "ts": at(1)}],
            ),
            message("joined", "ben", "ben", 0, t="uj"),
            message("old", "ann", "Mornign", 0.5, _hidden=True, parent="hello"),
            message("sealed", "ann", "xxxx", 2, t="e2e"),
            message(
                "files", "gus", "", 14,
                files=[
                    {"_id": "up1", "name": "menu.png", "type": "image/png"},
                    {"_id": "thumb", "name": "thumb-menu.png", "typeGroup": "thumb"},
                    {"_id": "up2", "name": "plan.pdf"},
                ],
                attachments=[{"type": "file", "title": "menu.png", "description": "The *menu*",
                              "title_link": "/file-upload/up1/menu.png"}],
            ),
            message("d1", "ben", "In the drawer", 3, rid="DISC"),
            message("d2", "ben", "A cake for Ann", 4, rid="SECRET"),
            message("l1", "visitor", "help", 5, rid="LIVE"),
            message("dm1", "ben", "psst", 6, rid="DM"),
            message("dm2", "ann", "yes", 15, rid="DM", tmid="dm1"),
            message("bot", "kettle", "Hot", 20, alias="Boiler",
                    attachments=[{"title": "99 °C", "title_link": "https://x.y"}]),
            message("gone", "ghost", "Boo", 21),
            {"_id": "broken", "rid": "GENERAL", "msg": 7},
        ],
    }  # fmt: skip


def written(
    place: Path, collections: Mapping[str, list[dict[str, Any]]], *, is_packed: bool = False
) -> Path:
    """Write a directory like `mongodump` or, with `is_packed`, `mongodump --gzip`."""
    directory = place / "rocketchat"
    directory.mkdir(parents=True)
    for name, documents in collections.items():
        content = b"".join(map(bson, documents))
        if is_packed:
            (directory / f"{name}.bson.gz").write_bytes(gzip.compress(content))
        else:
            (directory / f"{name}.bson").write_bytes(content)
    return place
