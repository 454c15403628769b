"""The organization: its settings, and what administrators set up for everyone."""
