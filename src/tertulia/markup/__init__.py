"""Messages as HTML.

At present: paragraphs, line breaks, links and mentions; everything else is shown as it is written.
"""
