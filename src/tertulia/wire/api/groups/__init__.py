"""User groups, their members, and their permissions."""
