"""The interface: its table of endpoints, their parameters and answers, and the JSON shape of every
noun and event."""
