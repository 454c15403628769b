"""What `/metrics` tells of a node, and of the other processes of its server."""
