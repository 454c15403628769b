"""Whether a node takes on work, or is about to leave."""

from collections.abc import Callable


class Lifecycle:
    """One node's way from serving to its end. Used on the event loop alone."""

    def __init__(self) -> None:
        self.is_draining = False
        """Whether the node is about to leave: it goes on answering, but is not ready any more, so
        that whoever distributes requests sends it none."""
        self._callbacks: list[Callable[[], None]] = []

    def drain(self) -> None:
        """Begin to leave, if that has not begun."""
        if self.is_draining:
            return
        self.is_draining = True
        for callback in self._callbacks:
            callback()

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call when the node begins to leave; at once if it has begun."""
        if self.is_draining:
            callback()
        else:
            self._callbacks.append(callback)
