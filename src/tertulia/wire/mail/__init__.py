"""Mails come in by LMTP or SMTP, from the operator's mail server."""
