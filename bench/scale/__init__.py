"""A simulation of nodes from the cost of each step of a message, compared with measurements."""
