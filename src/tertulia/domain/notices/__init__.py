"""Who is told of a message, and by which way."""
