"""The base of all changes."""

from msgspec import Struct


class Change(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass
