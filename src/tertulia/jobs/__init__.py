"""What a node does by itself, beside answering: jobs under one supervisor."""
