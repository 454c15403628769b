"""QR codes, for authenticator apps and invitation links."""


def data_url(text: str) -> str:
    """Return the text's QR code as a `data:` URL of an SVG image."""
    import segno  # Imported with the first code.

    return segno.make(text, error="m").svg_data_uri(scale=4, border=4, light="#fff")


def svg_element(text: str) -> str:
    """Return the text's QR code as an SVG element."""
    import segno

    return segno.make(text, error="m").svg_inline(scale=4, border=4, light="#fff")
