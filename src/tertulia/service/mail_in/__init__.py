"""Mails that become messages: answers to the mails about missed messages, and what is written to a
channel's address.

    a mail program
      -> the operator's mail server
      -> tertulia.wire.mail      LMTP or SMTP: takes the mail, or says why not
      -> addresses               whose address it is, and what it opens
      -> reading, mail_work      what the mail says, found out in a worker
      -> receiving               a message of whoever the address belongs to

An address carries its own proof: nothing is stored for it, and it ends with the API key of whom it
was made for, with their account, and with their right to write there.
"""
