"""Rendering messages as HTML.

`render.Renderer` parses a message with Tertulia's rules for markdown-it-py, in a module for each
kind of markup. `elements` makes all HTML and has only the elements and attributes of messages, so
content can't run scripts in a reader's browser. `context.RenderContext` describes the message being
rendered, with its author and the objects that it refers to. A worker renders code and formulas
(`worker_rendering`).
"""
