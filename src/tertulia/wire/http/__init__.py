"""Handling one HTTP request: authentication, parameters, rate limits, and the response."""
