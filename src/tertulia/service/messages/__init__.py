"""Messages: each function reads what its verb needs, and submits the verb.

A message that someone sends goes through:

    an endpoint, a job, …      recipients, content, and client
    sending.send_message       renders the content and looks up what the verb needs (`compose`)
    caller.submit              passes the draft to the log's writer
    domain.channels.topics.send    the verb: refuses it, or returns the changes

Rows are read as of one entry of the log. If they have changed before the verb decides, it raises
Conflict, and the attempt is repeated (`retry_on_conflict`).
"""
