"""Rendering messages as HTML.

`render.Renderer` parses a message with Tertulia's rules for markdown-it-py, in a module for each
kind of markup. `elements` makes all HTML and knows only the elements and attributes of messages, so
nothing that is typed can run in a reader's browser. `context.RenderContext` is the message being
rendered, with its author and what it refers to. A worker renders code and formulas
(`worker_rendering`).
"""
