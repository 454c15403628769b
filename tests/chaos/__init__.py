"""Chaos test: nodes, their database, and the network between them fail, and everything that clients
were told must still be true. Run it with `python -m tests.chaos` (`make chaos`)."""
