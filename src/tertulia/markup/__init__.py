"""Messages as HTML.

`render.Renderer` parses a message by rules of our own on markdown-it-py: each module has those of
one noun (`mentions`, `channels`, `links`, `emoji`, `code`, `fences`, ...). What a rule makes is
made by `elements`, which knows no other elements and attributes than those of messages; so nothing
that is typed can run in a reader's browser. `page.Page` is one message on its way: who writes it,
and what it refers to.
"""
