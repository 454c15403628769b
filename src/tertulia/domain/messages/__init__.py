"""Messages: sending, editing, moving, reading, and what people write before and after."""
