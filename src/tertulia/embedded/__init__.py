"""Embedded bots: bots of the package `zulip_bots`, each run by a node in a separate process.

A bot's process has no key and no connection to the server. It asks its node over a pipe to do the
operations that bots may do. `catalog` lists the bots, `hosting` is the node's side, and `process`
runs in the bot's process.
"""
