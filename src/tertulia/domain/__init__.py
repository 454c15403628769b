"""The verbs, one module for each resource: first all that can be refused, then the changes."""
