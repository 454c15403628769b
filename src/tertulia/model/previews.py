"""Previews of pages that messages link."""

from msgspec import Struct


class LinkPreview(Struct, frozen=True, kw_only=True):
    """What a page says about itself; empty where it says nothing."""

    title: str = ""
    description: str = ""
    image: str = ""
    """The address of a picture, somewhere on the web."""


class PendingPreview(Struct, frozen=True, kw_only=True):
    """A message that links pages whose previews are still to be fetched."""

    message_id: int
    seq: int
    """The log's entry by which it says what it says."""
