"""Prometheus metrics of a node and the other processes of its server, at `/metrics`."""
