"""Small bulk exports in Mattermost's format."""

import json
import zipfile
from pathlib import Path
from typing import Any

BEGAN = 1_600_000_000_000
"""Milliseconds since 1970."""
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def version() -> dict[str, Any]:
    info = {
        "generator": "mattermost-server",
        "version": "9.5.1 (0a1b2c, enterprise: false)",
        "created": "2024-03-01T10:00:00Z",
    }
    return {"type": "version", "version": 1, "info": info}


def team(name: str = "harbor", title: str = "Harbor Café", **more: Any) -> dict[str, Any]:
    values = {"name": name, "display_name": title, "type": "O", "description": "We brew."}
    return {"type": "team", "team": {**values, "allow_open_invite": False, **more}}


def channel(name: str, title: str, team: str = "harbor", **more: Any) -> dict[str, Any]:
    values = {"team": team, "name": name, "display_name": title, "type": "O"}
    return {"type": "channel", "channel": {**values, "header": "", "purpose": "", **more}}


def membership(name: str, *, roles: str = "channel_user", **more: Any) -> dict[str, Any]:
    props = {"desktop": "default", "mobile": "default", "mark_unread": "all"}
    return {"name": name, "roles": roles, "notify_props": props, "favorite": False, **more}


def user(
    name: str, *, channels: list[dict[str, Any]] | None = None, team: str = "harbor", **more: Any
) -> dict[str, Any]:
    roles = more.pop("team_roles", "team_user")
    values = {
        "username": name,
        "email": f"{name}@example.com",
        "auth_service": None,
        "nickname": "",
        "first_name": name.title(),
        "last_name": "Sample",
        "position": "",
        "roles": "system_user",
        "locale": "en",
        "delete_at": 0,
        "teams": [{"name": team, "roles": roles, "channels": channels or []}],
        "notify_props": {
            "desktop": "mention",
            "email": "true",
            "mobile": "mention",
            "channel": "true",
            "mention_keys": f"{name},@{name}",
        },
    }
    return {"type": "user", "user": {**values, **more}}


def post(sender: str, message: str, minute: int, **more: Any) -> dict[str, Any]:
    values = {"team": "harbor", "channel": "town-square", "user": sender, "type": ""}
    at = {"create_at": BEGAN + 60_000 * minute, "edit_at": 0}
    lists: dict[str, Any] = {"reactions": [], "replies": [], "props": {}}
    return {"type": "post", "post": {**values, "message": message, **at, **lists, **more}}


def reply(sender: str, message: str, minute: int, **more: Any) -> dict[str, Any]:
    at = {"create_at": BEGAN + 60_000 * minute, "edit_at": 0}
    return {"user": sender, "type": "", "message": message, **at, **more}


def direct(members: list[str], sender: str, message: str, minute: int, **more: Any) -> Any:
    values = {"channel_members": members, **reply(sender, message, minute)}
    return {"type": "direct_post", "direct_post": {**values, **more}}


def sample() -> list[dict[str, Any]]:
    """Return a team with three people, a bot, and one of everything. Posts aren't in chronological
    order."""
    square = membership("town-square", last_viewed_at=BEGAN + 60_000 * 11)
    return [
        version(),
        {"type": "role", "role": {"name": "custom"}},
        team(),
        channel("town-square", "Town Square", purpose="All of us", header="[Menu](https://a.b)"),
        channel("cellar", "Cellar", type="P"),
        channel("old", "Old", deleted_at=BEGAN),
        user(
            "ann",
            channels=[square, membership("cellar", roles="channel_user channel_admin")],
            roles="system_admin system_user",
            nickname="Annie",
            position="Baker",
            locale="de",
            military_time="true",
            custom_status={"emoji": "tea", "text": "Break"},
            notify_props={"mention_keys": "ann,@ann,scones", "desktop": "all", "email": "false"},
        ),
        user(
            "ben",
            channels=[
                membership(
                    "town-square",
                    favorite=True,
                    notify_props={"mark_unread": "mention", "desktop": "all"},
                    last_viewed_at=BEGAN + 60_000 * 30,
                )
            ],
            auth_service="ldap",
        ),
        user("gus", channels=[square], roles="system_guest", team_roles="team_guest"),
        user("old.ed", delete_at=BEGAN),
        {
            "type": "bot",
            "bot": {"username": "kettle", "owner": "ann", "display_name": "Kettle"},
        },
        post(
            "ben",
            "Who has the **key**?",
            10,
            reactions=[
                {"user": "ann", "create_at": 1, "emoji_name": "man-shrugging"},
                {"user": "ann", "create_at": 1, "emoji_name": "scone"},
                {"user": "gus", "create_at": 1, "emoji_name": "+1_dark_skin_tone"},
                {"user": "gus", "create_at": 2, "emoji_name": "thumbsup"},
            ],
            replies=[
                reply("ann", "I do, @ben.", 12),
                reply("ben", "Thanks!", 14, edit_at=BEGAN + 60_000 * 15),
            ],
            flagged_by=["ann", "old.ed"],
            is_pinned=True,
        ),
        post("ann", "Morning @all, see ~cellar and ~nowhere", 1),
        post("ann", "ann joined the channel.", 0, type="system_join_channel"),
        post(
            "gus",
            "The menu",
            11,
            attachments=[{"path": "2024/a b.png"}, {"path": "2024/lost.pdf"}],
        ),
        post("ghost", "Boo", 3, channel="cellar"),
        post(
            "kettle",
            "",
            20,
            props={
                "from_webhook": "true",
                "override_username": "Boiler",
                "attachments": [{"title": "Hot", "title_link": "https://x.y", "text": "99 °C"}],
            },
        ),
        {"type": "emoji", "emoji": {"name": "scone", "image": "emoji/1/image"}},
        {
            "type": "direct_channel",
            "direct_channel": {"members": ["ann", "ben"], "favorited_by": ["ann"], "header": "x"},
        },
        direct(["ann", "ben"], "ben", "psst", 5, replies=[reply("ann", "yes?", 6)]),
        direct(["ann", "ann"], "ann", "note to self", 7),
    ]


def written(place: Path, lines: list[Any]) -> Path:
    """Write an archive like `mmctl export create`. A line is an object or JSON text."""
    with zipfile.ZipFile(place, "w") as archive:
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        text = "".join(one + "\n" for one in texts)
        archive.writestr("import.jsonl", text)
        archive.writestr("data/2024/a b.png", PNG)
        archive.writestr("data/emoji/1/image", PNG)
    return place
