"""The JSON shape of every noun."""
