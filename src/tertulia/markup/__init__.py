"""Messages as HTML.

`render.Renderer` parses a message with rules of our own on markdown-it-py: a module for each noun
(`mentions`, `channels`, `links`, `emoji`, `code`, `fenced_blocks`, ...). All HTML is made by
`elements`, which knows only the elements and attributes of messages, so nothing that is typed can
run in a reader's browser. `render_context.RenderContext` is one message while it is rendered: its
author, and what it refers to. Code and formulas are computed by a worker (`worker_rendering`).
"""
