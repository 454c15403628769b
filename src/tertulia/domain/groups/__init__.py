"""User groups, and the permission settings that name them."""
