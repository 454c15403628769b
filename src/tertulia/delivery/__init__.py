"""Who gets which entry of the log, and when."""
