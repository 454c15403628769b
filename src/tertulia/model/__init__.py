"""The nouns: plain typed records without I/O."""
