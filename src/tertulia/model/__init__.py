"""The nouns: plain typed records, no I/O."""
