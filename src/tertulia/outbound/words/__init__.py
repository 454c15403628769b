"""What mails, pushes and pages say, in each language."""
