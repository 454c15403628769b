"""The web client in a real browser, with one shared server."""
