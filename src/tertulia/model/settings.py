"""Declarations of settings: marks on the fields of the records that keep them.

A setting's name, type, and default are its field's. The parameters of the interface, `register`,
events, the command line, the OpenAPI document, and the web client's form follow from the
declaration (decision 0044).
"""

import typing
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

FIRST_VERSION = "0.1.0"


class Setting(Struct, frozen=True):
    """Declares a field as a setting: `loud: Annotated[bool, Setting("display")] = False`."""

    section: str = ""
    """The heading under which the web client shows it, as a key of `groups` in `web/words`. Empty
    if the client doesn't show it, or shows it in its own form."""
    about: str = ""
    """The meaning of its values, for the OpenAPI document and the command line."""
    owners_only: bool = False
    """Whether only owners can change it. Other settings of the organization are for administrators,
    and personal settings for their person."""
    read_only: bool = False
    """Whether clients can read but not change it."""
    extension: bool = False
    """Whether the specification doesn't have it: only clients that ask for extensions get it."""
    since: str = FIRST_VERSION
    """The first version of Tertulia that has it."""


class Permission(Setting, frozen=True):
    """Declares a field as a permission, whose value is a group or set of people, and the groups
    that it accepts."""

    everyone: bool = False
    nobody: bool = True
    only: tuple[str, ...] = ()
    """The only groups that it accepts, without `role:`; empty to accept all."""


class DeclaredSetting(Struct, frozen=True):
    """A setting and its declaration."""

    type: Any
    """The type of its values, including their limits."""
    default: Any
    setting: Setting

    @property
    def description(self) -> str:
        """The setting's description in sentences."""
        setting = self.setting
        sentences = (
            setting.about,
            "Owners only." if setting.owners_only else "",
            "An extension of this server." if setting.extension else "",
            f"New in version {setting.since}." if setting.since != FIRST_VERSION else "",
        )
        return " ".join(filter(None, sentences))

    @property
    def options(self) -> tuple[Any, ...]:
        """The types that a value can have: two or more if the field's type is a union."""
        bare = self.type.__origin__ if get_origin(self.type) is Annotated else self.type
        return get_args(bare) if get_origin(bare) in {typing.Union, UnionType} else (self.type,)

    @property
    def is_nullable(self) -> bool:
        """Whether None is among its values."""
        return type(None) in self.options


@cache
def declared_settings(record: type[Struct]) -> Mapping[str, DeclaredSetting]:
    """Return the settings among a record's fields, by name."""
    hints = typing.get_type_hints(record, include_extras=True)
    settings = {}
    for field in msgspec.structs.fields(record):
        marks = getattr(hints[field.name], "__metadata__", ())
        setting = next((mark for mark in marks if isinstance(mark, Setting)), None)
        if setting is not None:
            limits = [mark for mark in marks if isinstance(mark, Meta)]
            bare = hints[field.name].__origin__
            kind = Annotated[(bare, *limits)] if limits else bare
            settings[field.name] = DeclaredSetting(kind, field.default, setting)
    return settings
