"""Who is notified about a message, and when."""
