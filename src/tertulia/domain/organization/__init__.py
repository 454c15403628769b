"""The organization's settings, and what administrators set up for everyone."""
