"""HTTP/1.1 on connections: its bounds, the polls that wait there, and how busy the node is."""
