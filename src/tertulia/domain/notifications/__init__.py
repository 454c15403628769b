"""Who is notified of a message, and when."""
