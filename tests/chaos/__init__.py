"""Chaos: nodes, their database and the ways between them fail, and what clients were told must
still be true. `python -m tests.chaos` (`make chaos`) runs it."""
