"""Tertulia, a team-chat server that Zulip's clients work with."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("tertulia")
except PackageNotFoundError:
    __version__ = "0.1.0"
