"""Numbers of things, in words."""


def counted(number: int, one: str, several: str = "") -> str:
    """`1 day`, `2 days`: the number, and what it counts. `several` is for what takes no `s`."""
    return f"{number} {one}" if number == 1 else f"{number} {several or one + 's'}"
