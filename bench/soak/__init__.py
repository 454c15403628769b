"""The soak test: an organization in use for a long time, with checks at the end."""
