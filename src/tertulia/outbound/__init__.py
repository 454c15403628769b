"""What leaves the server by itself: mails."""
