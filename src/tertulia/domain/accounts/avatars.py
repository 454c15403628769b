"""URLs of avatars on this server."""

import hashlib
import re
import unicodedata
from typing import Final

from tertulia.model.users import User

AVATARS_PATH: Final = "/user_avatars/1"
"""The path of uploaded avatars."""
DRAWN_PATH: Final = "/user_avatars/1/drawn"
"""The path of generated avatars, for accounts without an uploaded one."""


def full_avatar_url(user: User, *, sees_address: bool, medium: bool = False) -> str:
    """Return the URL of the avatar, in the usual size or, if `medium`, with 500 pixels. Viewers who
    can't see the email address get the generated avatar instead of a Gravatar URL, whose hash would
    let them guess the address."""
    version = f"version={user.avatar_version}"
    end = f"{'-medium' if medium else ''}.png?{version}"
    match user.avatar_source:
        case "U":
            return f"{AVATARS_PATH}/{user.avatar_file}{end}"
        case "G" if sees_address:
            digest = hashlib.sha256(user.address.strip().lower().encode()).hexdigest()
            size = "&s=500" if medium else ""
            return f"https://secure.gravatar.com/avatar/{digest}?d=identicon{size}&{version}"
        case _:
            return generated_avatar_url(user, end)


def generated_avatar_url(user: User, end: str = ".png") -> str:
    """Return the URL of the generated avatar, whether or not the account uses it."""
    letters = initials(user.full_name)
    return f"{DRAWN_PATH}/{user.id}{letters and '-'}{letters}{end}"


def initials(full_name: str) -> str:
    """Return the initials of the first and last name, or an empty string if they aren't all in A to
    Z or 0 to 9."""
    words = full_name.split()
    ends = [words[0], words[-1]] if len(words) > 1 else words
    letters = "".join(unicodedata.normalize("NFKD", word)[0].upper() for word in ends)
    return letters if re.fullmatch(r"[A-Z0-9]{1,2}", letters) else ""
