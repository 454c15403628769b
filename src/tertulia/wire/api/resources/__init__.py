"""What each endpoint does with a call, one module for each resource."""
