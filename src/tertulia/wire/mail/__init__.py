"""Incoming email over LMTP or SMTP, from the operator's mail server."""
