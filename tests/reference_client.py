"""A client that mirrors an organization: the response of POST /register, kept up to date by events.
It knows only what the API documentation says about events. `shown` is its state in a form that can
be compared with another client's, without what a client derives from the clock or isn't told.
"""

import copy
from typing import Any

from tests.support import Listener, Person

MODERN = {
    "notification_settings_null": True,
    "bulk_message_deletion": True,
    "user_avatar_url_field_optional": True,
    "stream_typing_notifications": True,
    "linkifier_url_template": True,
    "user_list_incomplete": True,
    "include_deactivated_groups": True,
    "archived_channels": True,
    "empty_topic_name": True,
    "simplified_presence_events": True,
    "individual_emoji_changes": True,
}
WAYS: dict[str, dict[str, Any]] = {
    "of old": {"include_subscribers": True},
    "modern": {"include_subscribers": True, "client_capabilities": MODERN, "apply_markdown": True},
    "sparse": {"client_capabilities": {"archived_channels": True}, "client_gravatar": False},
}
"""Ways to register."""

_UNTOLD = {"stream_weekly_traffic", "first_message_id", "is_default"}
_OWN = ("email", "delivery_email", "full_name", "avatar_source", "avatar_url")
_SUBSCRIPTION = {
    *("color", "is_muted", "in_home_view", "pin_to_top", "desktop_notifications"),
    *("audible_notifications", "push_notifications", "email_notifications"),
    *("wildcard_mentions_notify", "email_address"),
}
_NO_SETTINGS = {
    *("realm_users", "realm_non_active_users", "realm_user_groups", "realm_bots", "realm_emoji"),
    *("realm_domains", "realm_linkifiers", "realm_filters", "realm_playgrounds", "realm_billing"),
    *("realm_default_streams", "realm_default_stream_groups", "realm_user_settings_defaults"),
    *("realm_embedded_bots", "realm_incoming_webhook_bots"),
}
"""Fields named like settings of the organization that aren't settings."""


class ReferenceClient:
    """One client of one person."""

    def __init__(self, listener: Listener, parameters: dict[str, Any]) -> None:
        self.listener = listener
        self.parameters = parameters
        data = copy.deepcopy(listener.data)
        self.user_id = listener.person.user_id
        self.users = {u["user_id"]: {**u, "is_active": True} for u in data["realm_users"]}
        self.users |= {
            u["user_id"]: {**u, "is_active": False} for u in data["realm_non_active_users"]
        }
        self.servers_own = {bot["user_id"] for bot in data["cross_realm_bots"]}
        self.settings = data["user_settings"]
        self.statuses = {int(user_id): status for user_id, status in data["user_status"].items()}
        self.fields = data["custom_profile_fields"]
        self.own = {name: data[name] for name in _OWN}
        self.groups = {g["id"]: g for g in data["realm_user_groups"]}
        self.bots = {bot["user_id"]: bot for bot in data["realm_bots"]}
        self.channels = {c["stream_id"]: c for c in data["streams"]}
        self.subscriptions = {c["stream_id"]: c for c in data["subscriptions"]}
        self.others = {
            c["stream_id"]: c for c in [*data["unsubscribed"], *data["never_subscribed"]]
        }
        self.folders = {folder["id"]: folder for folder in data["channel_folders"]}
        self.topics = {self._topic(topic): topic for topic in data["user_topics"]}
        self.realm = {
            name: value
            for name, value in data.items()
            if name.startswith("realm_") and name not in _NO_SETTINGS
        }
        self.setup = {
            "domains": {one["domain"]: one for one in data["realm_domains"]},
            "linkifiers": data["realm_linkifiers"],
            "playgrounds": data["realm_playgrounds"],
            "default groups": data["realm_default_stream_groups"],
            "default settings": data["realm_user_settings_defaults"],
            "onboarding": data["onboarding_steps"],
        }
        self.unread: dict[int, tuple[Any, ...]] = {}
        self.mentions = set(data["unread_msgs"]["mentions"])
        self._load_unread(data["unread_msgs"])
        self.starred = set(data["starred_messages"])
        self.alert_words = data["alert_words"]
        self.muted = data["muted_users"]
        self.emoji = data["realm_emoji"]
        self.hanging: dict[int, dict[str, Any]] = {}
        """Reactions and widget data of received messages."""
        self.attachments: dict[int, dict[str, Any]] = {}
        self.recent = {
            tuple(c["user_ids"]): c["max_message_id"] for c in data["recent_private_conversations"]
        }

        self.drafts = {one["id"]: one for one in data["drafts"]}
        self.snippets = {one["id"]: one for one in data["saved_snippets"]}
        self.scheduled = {one["scheduled_message_id"]: one for one in data["scheduled_messages"]}
        self.reminders = {one["reminder_id"]: one for one in data["reminders"]}
        self.views = {one["fragment"]: one for one in data["navigation_views"]}
        self.devices: dict[str, Any] = data["devices"]

    @classmethod
    async def begin(cls, person: Person, parameters: dict[str, Any]) -> "ReferenceClient":
        """Register again from scratch."""
        client = cls(await person.register(**parameters), parameters)
        answer = await person.get("/attachments")
        client.attachments = {one["id"]: one for one in answer.ok["attachments"]}
        return client

    def _load_unread(self, unread: dict[str, Any]) -> None:
        for topic in unread["streams"]:
            for message_id in topic["unread_message_ids"]:
                self.unread[message_id] = ("channel", topic["stream_id"], topic["topic"].casefold())
        for direct in unread["pms"]:
            for message_id in direct["unread_message_ids"]:
                self.unread[message_id] = self._direct([direct["other_user_id"]])
        for group in unread["huddles"]:
            people = [int(part) for part in group["user_ids_string"].split(",")]
            for message_id in group["unread_message_ids"]:
                self.unread[message_id] = self._direct(people)

    def _direct(self, people: list[int]) -> tuple[Any, ...]:
        return ("direct", *sorted({*people, self.user_id}))

    def shown(self) -> dict[str, Any]:
        """Its state of the organization."""
        return {
            "users": self.users,
            # Own avatars of Gravatar's come with the snapshot, but in events clients compute them.
            "own": {
                name: value
                for name, value in self.own.items()
                if name != "avatar_url" or self.own["avatar_source"] != "G"
            },
            "settings": self.settings,
            "statuses": self.statuses,
            "profile fields": self.fields,
            "groups": {i: self._held(g) for i, g in self.groups.items()},
            "bots": self.bots,
            "realm": self._told(self.realm),
            "setup": self.setup,
            "channels": {i: self._told(c) for i, c in self.channels.items()},
            "subscriptions": {i: self._told(c) for i, c in self.subscriptions.items()},
            "other channels": {i: self._told(c, own=False) for i, c in self.others.items()},
            "folders": self.folders,
            "topics": self.topics,
            "unread": self.unread,
            "mentions": self.mentions & self.unread.keys(),
            "starred": self.starred,
            "alert words": self.alert_words,
            "muted users": self.muted,
            "emoji": self.emoji,
            "recent": self.recent,
            "drafts": self.drafts,
            "snippets": self.snippets,
            "scheduled": self.scheduled,
            "reminders": self.reminders,
            "views": self.views,
            "devices": self.devices,
            "attachments": self.attachments,
        }

    def _told(self, channel: dict[str, Any], *, own: bool = True) -> dict[str, Any]:
        left_out = _UNTOLD if own else _UNTOLD | _SUBSCRIPTION
        return self._held({name: value for name, value in channel.items() if name not in left_out})

    def _held(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record with its current permissions."""
        told = dict(record)
        for name, value in told.items():
            if isinstance(value, dict) and "direct_members" in value:
                # Deactivated accounts hold no permission, which a client derives from the accounts.
                active = [u for u in value["direct_members"] if self._is_active(u)]
                told[name] = {**value, "direct_members": active}
        return told

    def _is_active(self, user_id: int) -> bool:
        return user_id in self.users and bool(self.users[user_id]["is_active"])

    def _is_known(self, user_id: int) -> bool:
        return user_id in self.users or user_id in self.servers_own

    async def catch_up(self) -> list[dict[str, Any]]:
        """Apply all pending events and return them."""
        taken = []
        while events := await self.listener.events():
            for event in events:
                self.take(event)
            taken += events
        return taken

    def take(self, event: dict[str, Any]) -> None:
        """Apply one event."""
        handler = getattr(self, f"_{event['type']}_{event.get('op', '')}".rstrip("_"), None)
        if handler is not None:
            handler(event)

    # Accounts

    def _realm_user_add(self, event: dict[str, Any]) -> None:
        person = event["person"]
        self.users[person["user_id"]] = {"is_active": True, **person}

    def _realm_user_remove(self, event: dict[str, Any]) -> None:
        self.users.pop(event["person"]["user_id"], None)
        self.statuses.pop(event["person"]["user_id"], None)

    def _realm_user_update(self, event: dict[str, Any]) -> None:
        news = dict(event["person"])
        user = self.users[news.pop("user_id")]
        if "new_email" in news:
            news["email"] = news.pop("new_email")
        if user is self.users.get(self.user_id):
            self.own |= {name: value for name, value in news.items() if name in _OWN}
        if "custom_profile_field" in news:
            self._fill_in(user, news.pop("custom_profile_field"))
        if news.pop("is_deleted", False):
            user["is_deleted"] = True
        if "role" in news:
            role = news["role"]
            news |= {"is_owner": role == 100, "is_admin": role <= 200, "is_guest": role == 600}
        user |= {name: value for name, value in news.items() if name in user}

    def _fill_in(self, user: dict[str, Any], news: dict[str, Any]) -> None:
        field_id = str(news.pop("id"))
        if news["value"] is None:
            user["profile_data"].pop(field_id, None)
        else:
            user["profile_data"][field_id] = news

    def _custom_profile_fields(self, event: dict[str, Any]) -> None:
        self.fields = event["fields"]
        known = {str(field["id"]) for field in self.fields}
        for user in self.users.values():
            if "profile_data" in user:
                kept = {i: value for i, value in user["profile_data"].items() if i in known}
                user["profile_data"] = kept

    def _user_settings_update(self, event: dict[str, Any]) -> None:
        self.settings[event["property"]] = event["value"]

    def _user_status(self, event: dict[str, Any]) -> None:
        news = {n: v for n, v in event.items() if n not in {"id", "type", "user_id"}}
        status = self.statuses.get(event["user_id"], {}) | news
        if not status.get("emoji_name"):
            status.pop("reaction_type", None)
        self.statuses[event["user_id"]] = {n: v for n, v in status.items() if v}
        if not self.statuses[event["user_id"]]:
            del self.statuses[event["user_id"]]

    def _realm_bot_add(self, event: dict[str, Any]) -> None:
        self.bots[event["bot"]["user_id"]] = event["bot"]

    def _realm_bot_delete(self, event: dict[str, Any]) -> None:
        self.bots.pop(event["bot"]["user_id"], None)

    def _realm_bot_update(self, event: dict[str, Any]) -> None:
        self.bots[event["bot"]["user_id"]] |= event["bot"]

    def _user_group_add(self, event: dict[str, Any]) -> None:
        self.groups[event["group"]["id"]] = event["group"]

    def _user_group_add_members(self, event: dict[str, Any]) -> None:
        group = self.groups[event["group_id"]]
        group["members"] = sorted({*group["members"], *event["user_ids"]})

    def _user_group_remove_members(self, event: dict[str, Any]) -> None:
        group = self.groups[event["group_id"]]
        group["members"] = sorted(set(group["members"]) - set(event["user_ids"]))

    def _user_group_add_subgroups(self, event: dict[str, Any]) -> None:
        group = self.groups[event["group_id"]]
        found = {*group["direct_subgroup_ids"], *event["direct_subgroup_ids"]}
        group["direct_subgroup_ids"] = sorted(found)

    def _user_group_remove_subgroups(self, event: dict[str, Any]) -> None:
        group = self.groups[event["group_id"]]
        found = set(group["direct_subgroup_ids"]) - set(event["direct_subgroup_ids"])
        group["direct_subgroup_ids"] = sorted(found)

    def _user_group_update(self, event: dict[str, Any]) -> None:
        self.groups[event["group_id"]] |= event["data"]

    def _user_group_remove(self, event: dict[str, Any]) -> None:
        del self.groups[event["group_id"]]

    # Organization

    def _realm_update(self, event: dict[str, Any]) -> None:
        self.realm[f"realm_{event['property']}"] = event["value"]

    def _realm_update_dict(self, event: dict[str, Any]) -> None:
        news = {f"realm_{name}": value for name, value in event["data"].items()}
        self.realm |= {name: value for name, value in news.items() if name in self.realm}

    def _realm_domains_add(self, event: dict[str, Any]) -> None:
        self.setup["domains"][event["realm_domain"]["domain"]] = event["realm_domain"]

    _realm_domains_change = _realm_domains_add

    def _realm_domains_remove(self, event: dict[str, Any]) -> None:
        del self.setup["domains"][event["domain"]]

    def _realm_linkifiers(self, event: dict[str, Any]) -> None:
        self.setup["linkifiers"] = event["realm_linkifiers"]

    def _realm_playgrounds(self, event: dict[str, Any]) -> None:
        self.setup["playgrounds"] = event["realm_playgrounds"]

    def _default_stream_groups(self, event: dict[str, Any]) -> None:
        self.setup["default groups"] = event["default_stream_groups"]

    def _realm_user_settings_defaults_update(self, event: dict[str, Any]) -> None:
        self.setup["default settings"][event["property"]] = event["value"]

    def _onboarding_steps(self, event: dict[str, Any]) -> None:
        self.setup["onboarding"] = event["onboarding_steps"]

    # Channels

    def _stream_create(self, event: dict[str, Any]) -> None:
        for channel in event["streams"]:
            channel_id = channel["stream_id"]
            self.channels[channel_id] = dict(channel)
            self.others[channel_id] = dict(channel)
            if self.parameters.get("include_subscribers"):
                self.others[channel_id]["subscribers"] = []

    def _stream_delete(self, event: dict[str, Any]) -> None:
        for channel_id in event["stream_ids"]:
            self.channels.pop(channel_id, None)
            self.others.pop(channel_id, None)
            self.subscriptions.pop(channel_id, None)
            self._forget_unread(channel_id)

    def _everywhere(self, channel_id: int) -> list[dict[str, Any]]:
        places = (self.channels, self.others, self.subscriptions)
        return [place[channel_id] for place in places if channel_id in place]

    def _stream_update(self, event: dict[str, Any]) -> None:
        brought = ("rendered_description", "history_public_to_subscribers", "is_web_public")
        news = {name: event[name] for name in brought if name in event}
        news[event["property"]] = event["value"]
        if event["property"] == "stream_post_policy":
            news["is_announcement_only"] = event["value"] == 2
        if event["property"] == "is_archived" and event["value"]:
            self._forget_unread(event["stream_id"])
        for channel in self._everywhere(event["stream_id"]):
            channel |= news

    def _channel_folder_add(self, event: dict[str, Any]) -> None:
        self.folders[event["channel_folder"]["id"]] = event["channel_folder"]

    def _channel_folder_update(self, event: dict[str, Any]) -> None:
        self.folders[event["channel_folder_id"]] |= event["data"]

    def _channel_folder_reorder(self, event: dict[str, Any]) -> None:
        for place, folder_id in enumerate(event["order"]):
            self.folders[folder_id]["order"] = place

    def _topic(self, topic: dict[str, Any]) -> tuple[int, str]:
        return topic["stream_id"], topic["topic_name"].casefold()

    def _user_topic(self, event: dict[str, Any]) -> None:
        told = {name: value for name, value in event.items() if name not in {"id", "type"}}
        self.topics[self._topic(event)] = told
        if not event["visibility_policy"]:
            del self.topics[self._topic(event)]

    def _subscription_add(self, event: dict[str, Any]) -> None:
        for subscription in event["subscriptions"]:
            channel_id = subscription["stream_id"]
            self.others.pop(channel_id, None)
            self.subscriptions[channel_id] = dict(subscription)
            for channel in self._everywhere(channel_id):
                channel["subscriber_count"] = subscription["subscriber_count"]

    def _subscription_remove(self, event: dict[str, Any]) -> None:
        for left in event["subscriptions"]:
            channel_id = left["stream_id"]
            channel = self.subscriptions.pop(channel_id, None)
            if channel is None:
                continue  # It became visible and hidden again while the client was away.
            self.others[channel_id] = channel
            self._forget_unread(channel_id)
            self._peers([channel_id], [self.user_id], added=False)

    def _subscription_update(self, event: dict[str, Any]) -> None:
        self.subscriptions[event["stream_id"]][event["property"]] = event["value"]

    def _subscription_peer_add(self, event: dict[str, Any]) -> None:
        self._peers(event["stream_ids"], event["user_ids"], added=True)

    def _subscription_peer_remove(self, event: dict[str, Any]) -> None:
        self._peers(event["stream_ids"], event["user_ids"], added=False)

    def _peers(self, channel_ids: list[int], user_ids: list[int], *, added: bool) -> None:
        for channel_id in channel_ids:
            for channel in self._everywhere(channel_id):
                channel["subscriber_count"] += len(user_ids) if added else -len(user_ids)
                if "subscribers" in channel:
                    before = set(channel["subscribers"])
                    after = before | set(user_ids) if added else before - set(user_ids)
                    channel["subscribers"] = sorted(after)

    # Alert words, muted users, and emoji

    def _alert_words(self, event: dict[str, Any]) -> None:
        self.alert_words = event["alert_words"]

    def _muted_users(self, event: dict[str, Any]) -> None:
        self.muted = event["muted_users"]

    def _realm_emoji_update(self, event: dict[str, Any]) -> None:
        self.emoji = event["realm_emoji"]

    def _realm_emoji_add(self, event: dict[str, Any]) -> None:
        self.emoji[event["emoji"]["id"]] = event["emoji"]

    def _realm_emoji_update_one(self, event: dict[str, Any]) -> None:
        self.emoji[event["emoji_id"]] |= event["data"]

    # Personal data

    def _drafts_add(self, event: dict[str, Any]) -> None:
        self.drafts |= {draft["id"]: draft for draft in event["drafts"]}

    def _drafts_update(self, event: dict[str, Any]) -> None:
        self.drafts[event["draft"]["id"]] = event["draft"]

    def _drafts_remove(self, event: dict[str, Any]) -> None:
        del self.drafts[event["draft_id"]]

    def _saved_snippets_add(self, event: dict[str, Any]) -> None:
        self.snippets[event["saved_snippet"]["id"]] = event["saved_snippet"]

    _saved_snippets_update = _saved_snippets_add

    def _saved_snippets_remove(self, event: dict[str, Any]) -> None:
        del self.snippets[event["saved_snippet_id"]]

    def _scheduled_messages_add(self, event: dict[str, Any]) -> None:
        for scheduled in event["scheduled_messages"]:
            self.scheduled[scheduled["scheduled_message_id"]] = scheduled

    def _scheduled_messages_update(self, event: dict[str, Any]) -> None:
        scheduled = event["scheduled_message"]
        assert scheduled["scheduled_message_id"] in self.scheduled
        self.scheduled[scheduled["scheduled_message_id"]] = scheduled

    def _scheduled_messages_remove(self, event: dict[str, Any]) -> None:
        del self.scheduled[event["scheduled_message_id"]]

    def _reminders_add(self, event: dict[str, Any]) -> None:
        self.reminders |= {one["reminder_id"]: one for one in event["reminders"]}

    def _reminders_remove(self, event: dict[str, Any]) -> None:
        del self.reminders[event["reminder_id"]]

    def _navigation_view_add(self, event: dict[str, Any]) -> None:
        self.views[event["navigation_view"]["fragment"]] = event["navigation_view"]

    def _navigation_view_update(self, event: dict[str, Any]) -> None:
        self.views[event["fragment"]] |= event["data"]

    def _navigation_view_remove(self, event: dict[str, Any]) -> None:
        del self.views[event["fragment"]]

    def _device_add(self, event: dict[str, Any]) -> None:
        fields = (
            *("push_key_id", "push_token_id", "pending_push_token_id"),
            *("push_token_last_updated_timestamp", "push_registration_error_code"),
        )
        self.devices[str(event["device_id"])] = dict.fromkeys(fields)

    def _device_update(self, event: dict[str, Any]) -> None:
        changed = {name: event[name] for name in event if name not in {"id", "type", "op"}}
        device = self.devices[str(changed.pop("device_id"))]
        assert changed.keys() <= device.keys()
        device |= changed

    def _device_remove(self, event: dict[str, Any]) -> None:
        del self.devices[str(event["device_id"])]

    # Messages

    def _message(self, event: dict[str, Any]) -> None:
        message, flags = event["message"], event["flags"]
        # The client knows the sender, or may not see them.
        assert message["sender_full_name"] == "Unknown user" or self._is_known(message["sender_id"])
        self.hanging[message["id"]] = {
            "channel": message.get("stream_id"),
            "reactions": [
                {name: reaction[name] for name in self._REACTION}
                for reaction in message["reactions"]
            ],
            "submessages": list(message["submessages"]),
        }
        where: tuple[Any, ...]
        if message["type"] == "stream":
            where = ("channel", message["stream_id"], message["subject"].casefold())
        else:
            people = [person["id"] for person in message["display_recipient"]]
            where = self._direct(people)
            others = tuple(sorted(set(people) - {self.user_id}))
            self.recent[others] = message["id"]
        if "read" not in flags:
            self.unread[message["id"]] = where
            if {"mentioned", "wildcard_mentioned"} & set(flags):
                self.mentions.add(message["id"])

    def _update_message(self, event: dict[str, Any]) -> None:
        if "content" in event:
            is_mention = {"mentioned", "wildcard_mentioned"} & set(event["flags"])
            (self.mentions.add if is_mention else self.mentions.discard)(event["message_id"])
        if "propagate_mode" not in event:
            return
        channel_id = event.get("new_stream_id", event["stream_id"])
        topic = event.get("subject", event["orig_subject"])
        for message_id in event["message_ids"]:
            if message_id not in self.unread:
                continue
            if channel_id in self.subscriptions:
                self.unread[message_id] = ("channel", channel_id, topic.casefold())
            else:
                del self.unread[message_id]

    def _delete_message(self, event: dict[str, Any]) -> None:
        for message_id in event.get("message_ids") or [event["message_id"]]:
            self.unread.pop(message_id, None)
            self.starred.discard(message_id)
            for people, newest in self.recent.items():
                if newest == message_id:
                    # Events don't say which message is now the newest, if any.
                    self.recent[people] = ANYTHING

    _REACTION = ("emoji_name", "emoji_code", "reaction_type", "user_id")

    def _reaction_add(self, event: dict[str, Any]) -> None:
        if event["message_id"] in self.hanging:
            reaction = {name: event[name] for name in self._REACTION}
            self.hanging[event["message_id"]]["reactions"].append(reaction)

    def _reaction_remove(self, event: dict[str, Any]) -> None:
        if event["message_id"] in self.hanging:
            reaction = {name: event[name] for name in self._REACTION}
            self.hanging[event["message_id"]]["reactions"].remove(reaction)

    def _submessage(self, event: dict[str, Any]) -> None:
        if event["message_id"] in self.hanging:
            names = ("message_id", "sender_id", "msg_type", "content")
            part = {"id": event["submessage_id"], **{name: event[name] for name in names}}
            self.hanging[event["message_id"]]["submessages"].append(part)

    def _update_message_flags_add(self, event: dict[str, Any]) -> None:
        if event["flag"] == "read":
            for message_id in list(self.unread) if event["all"] else event["messages"]:
                self.unread.pop(message_id, None)
        elif event["flag"] == "starred":
            self.starred |= set(event["messages"])

    def _update_message_flags_remove(self, event: dict[str, Any]) -> None:
        if event["flag"] == "starred":
            self.starred -= set(event["messages"])
        if event["flag"] != "read":
            return
        for message_id in event["messages"]:
            detail = event["message_details"][str(message_id)]
            if detail["type"] == "stream":
                where: tuple[Any, ...] = (
                    "channel",
                    detail["stream_id"],
                    detail["topic"].casefold(),
                )
            else:
                where = self._direct(detail["user_ids"])
            self.unread[message_id] = where
            if detail.get("mentioned"):
                self.mentions.add(message_id)

    # Attachments

    def _attachment_add(self, event: dict[str, Any]) -> None:
        self.attachments[event["attachment"]["id"]] = event["attachment"]

    def _attachment_update(self, event: dict[str, Any]) -> None:
        self.attachments[event["attachment"]["id"]] = event["attachment"]

    def _attachment_remove(self, event: dict[str, Any]) -> None:
        self.attachments.pop(event["attachment"]["id"], None)

    def _forget_unread(self, channel_id: int) -> None:
        # The client no longer gets events about its messages, or may not.
        self.hanging = {m: h for m, h in self.hanging.items() if h["channel"] != channel_id}
        self.unread = {m: w for m, w in self.unread.items() if w[:2] != ("channel", channel_id)}


class _Anything:
    """A value that can't be known. It equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # it is in no set


ANYTHING: Any = _Anything()


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """The differences between two states."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = []
        for key in [*one, *(key for key in other if key not in one)]:
            there, here = one.get(key, "nothing"), other.get(key, "nothing")
            found += differences(there, here, f"{path}/{key}")
        return found
    return [] if one == other else [f"{path}: {one!r} by events, {other!r} afresh"]
