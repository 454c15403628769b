"""One organization in memory."""
