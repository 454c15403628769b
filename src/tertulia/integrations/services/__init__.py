"""One module for each service or family of services."""
