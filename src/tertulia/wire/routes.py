"""The whole interface on one page."""

from tertulia.wire.resources import events, messages, presence, server
from tertulia.wire.routing import Access, Route

ROUTES: tuple[Route, ...] = (
    # Before signing in
    Route("GET", "/server_settings", server.get_server_settings, Access.ANYONE),
    Route("POST", "/fetch_api_key", server.fetch_api_key, Access.ANYONE),
    Route("POST", "/dev_fetch_api_key", server.dev_fetch_api_key, Access.ANYONE, dev=True),
    Route("GET", "/dev_list_users", server.dev_list_users, Access.ANYONE, dev=True),
    # Messages
    Route("POST", "/messages", messages.send_message, webhooks=True),
    Route("GET", "/messages", messages.get_messages, Access.SPECTATOR),
    Route("GET", "/messages/{message_id:int}", messages.get_message, Access.SPECTATOR),
    Route("POST", "/messages/flags", messages.update_flags),
    Route("GET", "/users/me/{stream_id:int}/topics", messages.get_topics, Access.SPECTATOR),
    # Events
    Route("POST", "/register", events.register, Access.SPECTATOR),
    Route("GET", "/events", events.get_events),
    Route("DELETE", "/events", events.delete_queue),
    Route("POST", "/typing", events.set_typing),
    Route("POST", "/users/me/presence", presence.report_presence),
)
