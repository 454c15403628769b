"""Messages as HTML.

At present: paragraphs, line breaks, emphasis, code, quotations, bare links, mentions of people and
of everybody, and links to channels; everything else is shown as it is written.
"""
