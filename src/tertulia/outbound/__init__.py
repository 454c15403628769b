"""What the server sends and fetches by itself: mails, and pages and pictures of other servers."""
