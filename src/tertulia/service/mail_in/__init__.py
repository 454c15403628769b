"""Incoming email: replies to missed-message emails, and emails to a channel's address.

    an email program
      -> the operator's mail server
      -> tertulia.wire.mail      LMTP or SMTP: accepts the email, or says why not
      -> addresses               whose address it is, and where it leads
      -> receiving, mail_work    parses the email in a worker, and sends the message

An address carries its own proof. Nothing is stored for it, and it ends with the API key of the
person it was created for, with their account, and with their permission to send messages there.
"""
