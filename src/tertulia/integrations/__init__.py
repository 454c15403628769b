"""What other services send, as messages: one pure function for each service, from what it sends to
a topic and a content. Nothing here knows of accounts, channels or HTTP servers.

`catalog` lists the services; `incoming` has the shapes that they share.
"""
