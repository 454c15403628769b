"""Where the pictures of emoji are."""


def custom_address(realm_id: int, file: str) -> str:
    """The address of the picture of a custom emoji."""
    return f"/user_avatars/{realm_id}/emoji/images/{file}"


def extra_address(name: str) -> str:
    """The address of the picture of an emoji that the server adds to Unicode's."""
    return f"/static/generated/emoji/images/emoji/unicode/{name}.png"
