"""One module for each service, or for a family of services that send alike."""
