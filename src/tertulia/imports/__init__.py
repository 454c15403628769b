"""Moving an organization in from another chat server, or from an export of one."""
