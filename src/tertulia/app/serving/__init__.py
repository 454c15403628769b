"""The processes of a server: one that serves alone, or a supervisor and its workers."""
