"""What mails and pushes say, in each language."""
