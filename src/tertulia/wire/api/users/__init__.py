"""User accounts: creating, changing, and deactivating them."""
