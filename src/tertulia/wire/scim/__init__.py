"""SCIM 2, with which a company's directory creates, changes, and deactivates accounts and
groups."""
