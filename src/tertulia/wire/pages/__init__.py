"""Pages for people: signing in, joining, the web client, and other files that browsers fetch."""
