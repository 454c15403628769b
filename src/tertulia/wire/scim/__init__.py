"""SCIM 2, by which a company's directory creates, changes, and deactivates accounts and groups."""
