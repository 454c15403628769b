"""The soak: an organization under way for a long time, and whether all still holds at its end."""
