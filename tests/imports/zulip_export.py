"""Small exports in the formats of Zulip servers of several years."""

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from PIL import Image

Level = Literal["2023", "312", "372", "now"]
"""Feature level 185, levels of real exports, and the newest known one."""
LEVELS: tuple[Level, ...] = ("2023", "312", "372", "now")
BEGAN = 1_600_000_000.5
"""UNIX seconds."""
HOST = "chat.harbor.example"
PATH = "2/3f/Abc-De_f1234567890/menu.pdf"
LATER = "2/4f/Abc-De_f1234567899/later.txt"

Row = dict[str, Any]
_SYSTEM_GROUPS = (
    *("nobody", "owners", "administrators", "moderators", "fullmembers", "members"),
    *("everyone", "internet"),
)
GROUP_IDS = {f"role:{name}": n for n, name in enumerate(_SYSTEM_GROUPS, 1)}
ANONYMOUS, COOKS, WAITERS, CLOSED = 20, 21, 22, 23
"""An unnamed group with Ben and the cooks, the cooks, a group in a group, and a deactivated
group."""
ANN, BEN, CLEO, GUS, GHOST, HOOK, PROGRAM = 11, 12, 13, 14, 15, 16, 17
KITCHEN, OFFICE, ATTIC = 31, 32, 33
"""Channels: a public one, a private one without shared history, and an archived one."""


def picture() -> bytes:
    """Return a PNG."""
    content = io.BytesIO()
    Image.new("RGB", (40, 40), "teal").save(content, "PNG")
    return content.getvalue()


def user(key: int, name: str, **values: Any) -> Row:
    """Return the row of an account."""
    return {
        "id": key,
        "email": f"user{key}@{HOST}",
        "delivery_email": f"{name.lower()}@example.com",
        "full_name": name,
        "date_joined": BEGAN,
        "is_active": True,
        "is_bot": False,
        "bot_type": None,
        "bot_owner": None,
        "role": 400,
        "realm": 2,
        "recipient": 100 + key,
        "timezone": "Europe/Lisbon",
        "avatar_source": "G",
        "is_mirror_dummy": False,
        "default_sending_stream": None,
        "default_events_register_stream": None,
        "default_all_public_streams": False,
        "enter_sends": False,
        "enable_stream_desktop_notifications": False,
        "web_home_view": "inbox",
        "long_term_idle": False,
        **values,
    }


def message(key: int, sender: int, recipient: int, content: str, **values: Any) -> Row:
    """Return the row of a message."""
    return {
        "id": key,
        "sender": sender,
        "recipient": recipient,
        "realm": 2,
        "type": 1,
        "subject": "menu",
        "content": content,
        "rendered_content": "<p>?</p>",
        "date_sent": BEGAN + key,
        "sending_client": 1,
        "edit_history": None,
        **values,
    }


def subscription(key: int, who: int, recipient: int, **values: Any) -> Row:
    return {
        "id": key,
        "user_profile": who,
        "recipient": recipient,
        "active": True,
        "is_user_active": True,
        "is_muted": False,
        "color": "#c2c2c2",
        "pin_to_top": False,
        "desktop_notifications": None,
        "audible_notifications": None,
        "push_notifications": None,
        "email_notifications": None,
        "wildcard_mentions_notify": None,
        **values,
    }


class ZulipExportBuilder:
    """An export, whose tables and files a test can change before it's written."""

    def __init__(self, level: Level = "now") -> None:
        self.level = level
        self.realm: dict[str, Any] = _realm(level)
        self.messages: list[list[Row]] = [_first_messages(), _second_messages()]
        self.flags: list[list[Row]] = [_first_flags(), _second_flags()]
        self.attachments: list[Row] = _attachments()
        self.files: dict[str, bytes] = {
            f"uploads/{PATH}": b"%PDF-1.7 menu",
            f"uploads/{LATER}": b"later",
            "avatars/2/ann.original": picture(),
            "emoji/2/emoji/images/pot.png.original": picture(),
            "realm_icons/2/icon.original": picture(),
        }
        self.records: dict[str, Any] = {
            "avatars": [{"user_profile_id": ANN, "path": "2/ann.original"}],
            "emoji": [{"file_name": "pot.png", "path": "2/emoji/images/pot.png.original"}],
            "realm_icons": [{"path": "2/icon.original"}],
        }
        self.others: dict[str, Any] = {}
        """More files, as objects."""
        if level in {"372", "now"}:
            self.others["migration_status.json"] = {"zulip_version": "11.4"}

    def rows(self, table: str) -> list[Row]:
        """Return a table's rows, to change them."""
        found: list[Row] = self.realm.setdefault(table, [])
        return found

    def row(self, table: str, key: int) -> Row:
        """Return the row with that ID."""
        return next(row for row in self.rows(table) if row["id"] == key)

    def written(self, directory: Path) -> Path:
        """Write the export into a new directory below `directory`, and return its path."""
        place = directory / "zulip-export-test"
        place.mkdir()
        # Their indentation differs.
        indent = 4 if self.level == "2023" else 2
        objects = {
            "realm.json": self.realm,
            "attachment.json": {"zerver_attachment": self.attachments},
            **self.others,
        }
        for n, (messages, flags) in enumerate(zip(self.messages, self.flags, strict=True), 1):
            tables = {"zerver_message": messages, "zerver_usermessage": flags}
            objects[f"messages-{n:06}.json"] = tables
        for name, rows in self.records.items():
            objects[f"{name}/records.json"] = rows
        for name, content in self.files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        for name, found in objects.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(json.dumps(found, indent=indent, ensure_ascii=False))
        return place

    def packed(self, directory: Path) -> Path:
        """Write the export as the archive that administrators download."""
        place = self.written(directory)
        archive = directory / "export.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(place, place.name)
        return archive


def _realm(level: Level) -> dict[str, Any]:
    realm: dict[str, Any] = {
        "zerver_realm": [_settings(level)],
        "zerver_realmauditlog": _events(),
        "zerver_realmuserdefault": [{"id": 1, "realm": 2, "enter_sends": True, "dense_mode": True}],
        "zerver_client": [{"id": 1, "name": "ZulipMobile"}],
        "zerver_userprofile": [
            user(ANN, "Ann", role=100, avatar_source="U", email="ann@example.com"),
            user(
                BEN, "Ben", enable_stream_desktop_notifications=True, web_home_view="recent_topics"
            ),
            user(CLEO, "Cleo", is_active=False),
            user(GUS, "Gus", role=600),
            user(HOOK, "Hook", is_bot=True, bot_type=3, bot_owner=ANN),
            user(
                PROGRAM,
                "Converter",
                is_bot=True,
                bot_type=4,
                bot_owner=BEN,
                default_sending_stream=KITCHEN,
            ),
        ],
        "zerver_userprofile_mirrordummy": [
            user(
                GHOST,
                "Ghost",
                is_active=False,
                is_mirror_dummy=True,
                delivery_email=f"exported-user-0123abcd@{HOST}",
            )
        ],
        "zerver_userprofile_crossrealm": [
            {"email": "welcome-bot@zulip.com", "id": 5, "recipient_id": 105},
            {"email": "notification-bot@zulip.com", "id": 4, "recipient_id": 104},
        ],
        "zerver_service": [
            {
                "id": 1,
                "name": "hook",
                "user_profile": HOOK,
                "base_url": "https://hooks.example/x",
                "token": "tok",
                "interface": 2,
            },
            {"id": 2, "name": "converter", "user_profile": PROGRAM, "base_url": "", "token": "t"},
        ],
        "zerver_botconfigdata": [{"id": 1, "bot_profile": PROGRAM, "key": "unit", "value": "m"}],
        "zerver_botstoragedata": [{"id": 1, "bot_profile": PROGRAM, "key": "last", "value": "42"}],
        "zerver_stream": [channel(level, KITCHEN, "kitchen"), *_other_channels(level)],
        "zerver_defaultstream": [{"id": 1, "realm": 2, "stream": KITCHEN}],
        "zerver_recipient": [
            *({"id": 100 + who, "type": 1, "type_id": who} for who in (ANN, BEN, CLEO, GUS)),
            *({"id": 100 + it, "type": 2, "type_id": it} for it in (KITCHEN, OFFICE, ATTIC)),
            {"id": 150, "type": 3, "type_id": 1},
        ],
        "zerver_huddle": [{"id": 1, "huddle_hash": "?", "recipient": 150, "group_size": 3}],
        "zerver_subscription": [
            subscription(1, ANN, 131, color="#FF0000", is_muted=True, pin_to_top=True),
            subscription(2, BEN, 131, desktop_notifications=True, email_notifications=False),
            subscription(3, ANN, 132),
            subscription(4, BEN, 132),
            subscription(5, ANN, 133, active=False),
            subscription(6, CLEO, 131, active=False),
            *(subscription(10 + n, who, 150) for n, who in enumerate((ANN, BEN, GUS))),
        ],
        "zerver_reaction": [
            reaction(1, BEN, 101, "+1", "1f44d"),
            reaction(2, ANN, 101, "pot", "7", "realm_emoji"),
            reaction(3, ANN, 103, "zulip", "zulip", "zulip_extra_emoji"),
        ],
        "zerver_realmemoji": [
            {"id": 7, "author": ANN, "name": "pot", "file_name": "pot.png", "deactivated": False}
        ],
        "zerver_realmdomain": [{"id": 1, "domain": "Example.com", "allow_subdomains": True}],
        "zerver_realmfilter": [
            {
                "id": 1,
                "pattern": "#(?P<id>[0-9]+)",
                "url_template": "https://x.example/{id}",
                "order": 0,
            }
        ],
        "zerver_realmplayground": [
            {
                "id": 1,
                "name": "Rust there",
                "pygments_language": "Rust",
                "url_template": "https://play.example/?code={code}",
            }
        ],
        "zerver_customprofilefield": [
            _field(1, "Phone", 1),
            _field(2, "Editor", 3, '{"0": {"text": "Vim", "order": "1"}}'),
            _field(3, "Mentor", 6),
            _field(4, "GitHub", 7, '{"subtype": "github"}'),
            _field(5, "Site", 5),
        ],
        "zerver_customprofilefieldvalue": [
            {"id": 1, "user_profile": ANN, "field": 1, "value": "+351 1", "rendered_value": "?"},
            {"id": 2, "user_profile": ANN, "field": 2, "value": "0", "rendered_value": None},
            {"id": 3, "user_profile": ANN, "field": 3, "value": "[14,12]", "rendered_value": None},
        ],
        "zerver_alertword": [{"id": 1, "user_profile": ANN, "word": "soup"}],
        "zerver_muteduser": [
            {"id": 1, "user_profile": ANN, "muted_user": GUS, "date_muted": BEGAN}
        ],
        "zerver_userstatus": [
            {"id": 1, "user_profile": BEN, "status_text": "cooking", "emoji_name": "coffee"}
        ],
        "zerver_usertopic": [
            {
                "id": 1,
                "user_profile": BEN,
                "stream": KITCHEN,
                "recipient": 131,
                "topic_name": "menu",
                "last_updated": BEGAN,
                "visibility_policy": 3,
            }
        ],
        "zerver_scheduledmessage": _scheduled(),
        "zerver_useractivity": [{"id": 1, "user_profile": ANN}],
    }
    step = {"id": 1, "user": ANN, "timestamp": BEGAN}
    if level == "2023":
        realm["zerver_userhotspot"] = [{**step, "hotspot": "intro_streams"}]
    else:
        realm["zerver_onboardingstep"] = [{**step, "onboarding_step": "intro_streams"}]
    if level in {"372", "now"}:
        realm["zerver_savedsnippet"] = [
            {
                "id": 1,
                "user_profile": BEN,
                "title": "Hi",
                "content": "Good day",
                "date_created": BEGAN,
            }
        ]
    if level == "now":
        realm["zerver_channelfolder"] = [
            {"id": 1, "name": "Rooms", "description": "", "order": 0, "date_created": BEGAN}
        ]
        realm["zerver_navigationview"] = [
            {"id": 1, "user": BEN, "fragment": "narrow/is/starred", "is_pinned": True, "name": None}
        ]
    realm.update(groups(level))
    return realm


def _settings(level: Level) -> Row:
    common = {
        "id": 2,
        "name": "Harbor Café",
        "description": "An *old* café",
        "string_id": "harbor",
        "date_created": BEGAN,
        "deactivated": False,
        "default_language": "pt",
        "message_retention_days": -1,
        "waiting_period_threshold": 3,
        "giphy_rating": 3,
        "move_messages_within_stream_limit_seconds": 3600,
        "icon_source": "U",
        "logo_source": "D",
        "night_logo_source": "D",
        "plan_type": 1,
    }
    if level == "2023":
        return {
            **common,
            "add_custom_emoji_policy": 4,
            "bot_creation_policy": 2,
            "create_private_stream_policy": 3,
            "create_public_stream_policy": 2,
            "edit_topic_policy": 6,
            "invite_to_realm_policy": 2,
            "invite_to_stream_policy": 4,
            "private_message_policy": 2,
            "user_group_edit_policy": 2,
            "wildcard_mention_policy": 7,
            "mandatory_topics": True,
            "allow_edit_history": False,
            "notifications_stream": KITCHEN,
            "signup_notifications_stream": None,
        }
    new = {
        **common,
        "can_add_custom_emoji_group": GROUP_IDS["role:moderators"],
        "can_create_private_channel_group": ANONYMOUS,
        "can_create_public_channel_group": COOKS,
        "new_stream_announcements_stream": KITCHEN,
        "signup_announcements_stream": None,
    }
    if level == "312":
        return {
            **new,
            "edit_topic_policy": 6,
            "mandatory_topics": True,
            "allow_edit_history": False,
        }
    return {
        **new,
        "can_move_messages_between_topics_group": GROUP_IDS["role:nobody"],
        "message_edit_history_visibility_policy": 3,
        **({"topics_policy": 3} if level == "now" else {"mandatory_topics": True}),
    }


def channel(level: Level, key: int, name: str, **values: Any) -> Row:
    common = {
        "id": key,
        "name": name,
        "realm": 2,
        "date_created": BEGAN,
        "creator": ANN,
        "deactivated": False,
        "description": f"The {name}",
        "rendered_description": f"<p>The {name}</p>",
        "recipient": 100 + key,
        "invite_only": False,
        "history_public_to_subscribers": True,
        "is_web_public": False,
        "message_retention_days": None,
        "can_remove_subscribers_group": GROUP_IDS["role:moderators"],
        "first_message_id": 101,
    }
    if level in {"2023", "312"}:
        return {**common, "stream_post_policy": 4, **values}
    common |= {
        "can_send_message_group": GROUP_IDS["role:moderators"],
        "can_administer_channel_group": ANONYMOUS,
    }
    if level == "now":
        common |= {"topics_policy": 4, "folder": 1}
    return {**common, **values}


def _other_channels(level: Level) -> list[Row]:
    name = {"2023": "!DEACTIVATED:kitchen", "312": "0123abc!DEACTIVATED:kitchen"}.get(
        level, "attic"
    )
    return [
        channel(level, OFFICE, "office", invite_only=True, history_public_to_subscribers=False),
        channel(level, ATTIC, name, deactivated=True),
    ]


def groups(level: Level) -> dict[str, list[Row]]:
    system = [
        {"id": key, "name": name, "description": name, "is_system_group": True}
        for name, key in GROUP_IDS.items()
    ]
    everyone, nobody = GROUP_IDS["role:everyone"], GROUP_IDS["role:nobody"]
    named: list[Row] = [
        {"id": COOKS, "name": "cooks", "description": "They cook", "can_mention_group": nobody},
        {"id": WAITERS, "name": "waiters", "description": "", "can_mention_group": COOKS},
        {"id": CLOSED, "name": "closed", "description": "", "can_mention_group": everyone},
    ]
    named = [{**row, "is_system_group": False, "deactivated": False} for row in named]
    named[2]["deactivated"] = True
    links = {
        "zerver_usergroupmembership": [
            {"id": 1, "user_group": GROUP_IDS["role:owners"], "user_profile": ANN},
            {"id": 2, "user_group": COOKS, "user_profile": ANN},
            {"id": 3, "user_group": WAITERS, "user_profile": GUS},
            {"id": 4, "user_group": ANONYMOUS, "user_profile": BEN},
        ],
        "zerver_groupgroupmembership": [
            {
                "id": 1,
                "supergroup": GROUP_IDS["role:members"],
                "subgroup": GROUP_IDS["role:owners"],
            },
            {"id": 2, "supergroup": WAITERS, "subgroup": COOKS},
            {"id": 3, "supergroup": ANONYMOUS, "subgroup": COOKS},
        ],
    }
    if level == "2023":
        old = [{**row, "name": f"@{row['name']}"} for row in system]
        return {**links, "zerver_usergroup": [*old, *named, {"id": ANONYMOUS, "realm": 2}]}
    both = [*system, *named]
    return {
        **links,
        "zerver_usergroup": [
            {"id": key, "realm": 2} for key in (*(r["id"] for r in both), ANONYMOUS)
        ],
        "zerver_namedusergroup": [{**row, "usergroup_ptr": row["id"]} for row in both],
    }


def _field(key: int, name: str, kind: int, data: str = "") -> Row:
    return {
        "id": key,
        "name": name,
        "hint": "",
        "order": key,
        "display_in_profile_summary": key == 1,
        "field_type": kind,
        "field_data": data,
    }


def reaction(key: int, who: int, of: int, name: str, code: str, kind: str = "unicode_emoji") -> Row:
    return {
        "id": key,
        "user_profile": who,
        "message": of,
        "emoji_name": name,
        "emoji_code": code,
        "reaction_type": kind,
    }


def event(key: int, kind: int, who: int, channel: int, last: int | None) -> Row:
    """Return a row of the audit log about a subscription."""
    return {
        "id": key,
        "event_time": BEGAN + key,
        "extra_data": {"nested": [{"a": "}]"}]},
        "event_type": kind,
        "modified_user": who,
        "modified_stream": channel,
        "event_last_message_id": last,
    }


def _events() -> list[Row]:
    return [
        event(1, 301, ANN, KITCHEN, 0),
        event(2, 301, BEN, KITCHEN, 0),
        event(3, 301, CLEO, KITCHEN, 0),
        event(4, 303, CLEO, KITCHEN, 102),
        event(5, 301, ANN, OFFICE, 0),
        event(6, 301, BEN, OFFICE, 102),
        event(7, 303, BEN, OFFICE, 104),
        event(8, 302, BEN, OFFICE, 105),
        event(9, 301, ANN, ATTIC, 0),
        {"id": 10, "event_type": 215, "modified_stream": None, "extra_data": {}},
    ]


def _scheduled() -> list[Row]:
    common: Mapping[str, Any] = {
        "sender": BEN,
        "subject": "",
        "scheduled_timestamp": 4_000_000_000.5,
        "delivered": False,
        "failed": False,
        "delivery_type": 1,
    }
    link = f"[later](/user_uploads/{LATER})"
    return [
        {
            **common,
            "id": 1,
            "recipient": 131,
            "subject": "menu",
            "content": link,
            "stream": KITCHEN,
        },
        {**common, "id": 2, "recipient": 100 + ANN, "content": "hello", "stream": None},
        {**common, "id": 3, "recipient": 131, "content": "gone", "delivered": True},
        {
            **common,
            "id": 4,
            "recipient": 100 + BEN,
            "content": "You requested a reminder",
            "delivery_type": 2,
            "reminder_target_message_id": 101,
            "reminder_note": "cook it",
        },
    ]


def _first_messages() -> list[Row]:
    history = [
        {"user_id": ANN, "timestamp": 1_600_000_200, "prev_topic": "mnu", "topic": "menu"},
        {"user_id": ANN, "timestamp": 1_600_000_150, "prev_content": "Sop"},
    ]
    return [
        message(101, ANN, 131, "Soup for @**Ben**", edit_history=json.dumps(history)),
        message(102, BEN, 132, f"[menu](/user_uploads/{PATH})"),
        message(103, ANN, 100 + BEN, "Only you", subject=""),
    ]


def _second_messages() -> list[Row]:
    return [
        message(104, GUS, 150, "All of us", subject="\x07"),
        message(105, BEN, 131, f"See https://{HOST}/#narrow/near/101", subject="(no topic)"),
        message(107, 4, 133, "Archived"),
        message(108, BEN, 132, f"again [menu](/user_uploads/{PATH}) and @**Ann|11**"),
    ]


def _flag(of: int, who: int, mask: int) -> Row:
    return {"id": of * 100 + who, "user_profile": who, "message": of, "flags_mask": mask}


def _first_flags() -> list[Row]:
    return [
        _flag(101, ANN, 1),
        _flag(101, BEN, 1 | 8 | 2),
        _flag(102, ANN, 0),
        _flag(103, ANN, 1 | 2048),
        _flag(103, BEN, 2048),
    ]


def _second_flags() -> list[Row]:
    return [
        *(_flag(104, who, 2048 | (who == GUS)) for who in (ANN, BEN, GUS)),
        _flag(105, ANN, 16 | 4),
        _flag(105, BEN, 1),
        _flag(108, BEN, 1),
        _flag(108, ANN, 1 | 512),
        _flag(105, GUS, 1 | 1024 | 2),
    ]


def _attachments() -> list[Row]:
    common = {"owner": BEN, "create_time": BEGAN, "realm": 2}
    return [
        {
            **common,
            "id": 1,
            "file_name": "menu.pdf",
            "path_id": PATH,
            "size": 13,
            "content_type": "application/pdf",
            "messages": [102, 108],
            "scheduled_messages": [],
        },
        {
            **common,
            "id": 2,
            "file_name": "later.txt",
            "path_id": LATER,
            "size": 5,
            "content_type": "text/plain",
            "messages": [],
            "scheduled_messages": [1],
        },
    ]


def keys(rows: Sequence[Any]) -> list[Any]:
    """Return the keys of records."""
    return [one.key for one in rows]
