"""How each change alters the state: one function per change, by noun."""
