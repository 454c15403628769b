"""Messages per second and latency, beside the machine's own limits. See README.md."""
