"""Embedded bots: those of the package `zulip_bots`, each run by a node in a process of its own.

A bot's process has no key and no connection to the server. It asks its node by a pipe for what
bots may do, and the node does that as the bot. `catalog` is what can be run, `hosting` the node's
side, `process` what runs in the other.
"""
