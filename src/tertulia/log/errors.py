"""What the log answers when it cannot do what was asked, and how errors look in a server's log."""

from tertulia.model.errors import Unavailable


def not_done_error() -> Unavailable:
    """For a change that was certainly not made."""
    return Unavailable("The change couldn't be saved. Nothing was changed. Try again.")


def stale_error() -> Unavailable:
    """For any request to a node that cannot see whether its state is up to date."""
    return Unavailable("This node can't tell right now whether its data is up to date. Try again.")


def described(error: BaseException) -> str:
    """The error in one line, for people who operate a server."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
