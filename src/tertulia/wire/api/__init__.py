"""The API: its table of endpoints, their parameters and responses, and the JSON objects and events
of every noun."""
