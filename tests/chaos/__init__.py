"""Chaos test: nodes, their database, and the network between them fail, and every response that
clients got must still be true. Run it with `python -m tests.chaos` (`make chaos`)."""
