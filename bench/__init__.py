"""Benchmarks: messages per second and latency, compared with the machine's own limits. See
README.md."""
