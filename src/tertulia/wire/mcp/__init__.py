"""What agents use: the Model Context Protocol over HTTP, at `/mcp`."""
