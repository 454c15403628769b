"""The whole interface on one page."""

from tertulia.wire.resources import (
    bots,
    channels,
    events,
    fetching,
    flags,
    groups,
    invitations,
    messages,
    presence,
    server,
    subscriptions,
    topics,
    users,
)
from tertulia.wire.routing import Access, Route

ROUTES: tuple[Route, ...] = (
    # Before signing in
    Route("GET", "/server_settings", server.get_server_settings, Access.ANYONE),
    Route("POST", "/fetch_api_key", server.fetch_api_key, Access.ANYONE),
    Route("POST", "/dev_fetch_api_key", server.dev_fetch_api_key, Access.ANYONE, dev=True),
    Route("GET", "/dev_list_users", server.dev_list_users, Access.ANYONE, dev=True),
    # Messages
    Route("POST", "/messages", messages.send_message, webhooks=True),
    Route("GET", "/messages", fetching.get_messages, Access.SPECTATOR),
    Route("GET", "/messages/{message_id:int}", fetching.get_message, Access.SPECTATOR),
    Route("POST", "/messages/flags", flags.update_flags),
    Route("GET", "/users/me/{stream_id:int}/topics", topics.get_topics, Access.SPECTATOR),
    # Users
    Route("GET", "/users", users.get_users, Access.SPECTATOR),
    Route("POST", "/users", users.create_user),
    Route("GET", "/users/me", users.get_own_user),
    Route("DELETE", "/users/me", users.deactivate_own_user),
    Route("POST", "/users/me/api_key/regenerate", users.regenerate_own_key),
    Route("GET", "/users/{user_id:int}", users.get_user),
    Route("PATCH", "/users/{user_id:int}", users.update_user),
    Route("DELETE", "/users/{user_id:int}", users.deactivate_user),
    Route("POST", "/users/{user_id:int}/reactivate", users.reactivate_user),
    Route("GET", "/users/{email}", users.get_user_by_email),
    Route("PATCH", "/users/{email}", users.update_user_by_email),
    Route("GET", "/user_groups", groups.get_user_groups),
    # Invitations
    Route("GET", "/invites", invitations.get_invites),
    Route("POST", "/invites", invitations.send_invites),
    Route("POST", "/invites/multiuse", invitations.create_invite_link),
    Route("DELETE", "/invites/{invite_id:int}", invitations.revoke_email_invite),
    Route("POST", "/invites/{invite_id:int}/resend", invitations.resend_email_invite),
    Route("DELETE", "/invites/multiuse/{invite_id:int}", invitations.revoke_invite_link),
    # Bots
    Route("GET", "/bots", bots.get_bots),
    Route("POST", "/bots", bots.create_bot),
    Route("PATCH", "/bots/{bot_id:int}", bots.update_bot),
    Route("DELETE", "/bots/{bot_id:int}", bots.deactivate_bot),
    Route("GET", "/bots/{bot_id:int}/api_key", bots.get_bot_key),
    Route("POST", "/bots/{bot_id:int}/api_key/regenerate", bots.regenerate_bot_key),
    # Channels
    Route("GET", "/streams", channels.get_streams),
    Route("GET", "/get_stream_id", channels.get_stream_id),
    Route("POST", "/channels/create", channels.create_channel),
    Route("GET", "/streams/{stream_id:int}", channels.get_stream),
    Route("PATCH", "/streams/{stream_id:int}", channels.update_stream),
    Route("DELETE", "/streams/{stream_id:int}", channels.archive_stream),
    Route("GET", "/streams/{stream_id:int}/members", channels.get_subscribers),
    Route("POST", "/default_streams", channels.add_default_stream),
    Route("DELETE", "/default_streams", channels.remove_default_stream),
    # Subscriptions
    Route("GET", "/users/me/subscriptions", subscriptions.get_subscriptions),
    Route("POST", "/users/me/subscriptions", subscriptions.subscribe),
    Route("PATCH", "/users/me/subscriptions", subscriptions.update_subscriptions),
    Route("DELETE", "/users/me/subscriptions", subscriptions.unsubscribe),
    Route("GET", "/users/{user_id:int}/channels", subscriptions.get_user_channels),
    Route(
        "POST",
        "/users/me/subscriptions/properties",
        subscriptions.update_subscription_properties,
    ),
    Route(
        "PATCH",
        "/users/me/subscriptions/{stream_id:int}",
        subscriptions.update_subscription_property,
    ),
    Route(
        "GET",
        "/users/{user_id:int}/subscriptions/{stream_id:int}",
        subscriptions.get_subscription_status,
    ),
    # Events
    Route("POST", "/register", events.register, Access.SPECTATOR),
    Route("GET", "/events", events.get_events),
    Route("DELETE", "/events", events.delete_queue),
    Route("POST", "/typing", events.set_typing),
    Route("POST", "/users/me/presence", presence.report_presence),
)
