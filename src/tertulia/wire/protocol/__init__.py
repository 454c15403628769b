"""HTTP/1.1 on connections: bounds, polls that wait below the application, and the node's load."""
