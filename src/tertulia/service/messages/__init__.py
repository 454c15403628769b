"""What is done with messages: each use reads first, and then submits its verb with what it read.

The way of a message that somebody sends:

    an endpoint, a job, …    says to whom, what, and by which program
    recipients               whom that means: IDs of people, or a topic of a channel
    sending.send_message     the use
    composing.compose        renders the content, and looks up what else the verb must know of it
    caller.submit            hands the finished draft to the log's writer
    domain.messages.sending.send
                             the verb: refuses it, or returns the change

What is read of the database is read at one entry of the log. Where that has changed before the verb
decides, it raises Conflict, and the use begins again (`tertulia.service.caller`).
"""
