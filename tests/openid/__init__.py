"""A real OpenID provider for tests."""
