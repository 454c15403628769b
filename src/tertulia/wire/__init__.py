"""The HTTP interface: the only place that knows how things are called on the wire."""
