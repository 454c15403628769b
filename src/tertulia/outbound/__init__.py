"""Everything that is sent to other servers: email, push notifications, and requests for feeds and
linked pages."""
