"""The processes of a server: one, or a supervisor with several workers.

The supervisor (`supervisor`, `process`) loads next to nothing. Each worker is a whole node, started
as the server itself was, and finds in its environment which one it is (`worker`).
"""
