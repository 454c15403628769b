"""How a node is put together, configured and served."""
