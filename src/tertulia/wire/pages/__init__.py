"""Pages for people: signing in, joining, the web client, and what browsers fetch beside them."""
