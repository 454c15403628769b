"""Background jobs of a node, under one supervisor."""
