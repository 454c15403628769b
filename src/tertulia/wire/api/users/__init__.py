"""User accounts: finding, creating, changing, and deactivating them."""
