"""Folds of drafts and snippets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.state.folds import Folds

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.DraftsCreated)
def _(state: State, change: changes.DraftsCreated) -> None:
    for draft in change.drafts:
        state.drafts.put(draft)


@FOLDS.of(changes.DraftChanged)
def _(state: State, change: changes.DraftChanged) -> None:
    state.drafts.put(change.draft)


@FOLDS.of(changes.DraftDeleted)
def _(state: State, change: changes.DraftDeleted) -> None:
    state.drafts.remove(change.draft_id)


@FOLDS.of(changes.SnippetCreated)
def _(state: State, change: changes.SnippetCreated) -> None:
    state.snippets.put(change.snippet)


@FOLDS.of(changes.SnippetChanged)
def _(state: State, change: changes.SnippetChanged) -> None:
    state.snippets.put(change.snippet)


@FOLDS.of(changes.SnippetDeleted)
def _(state: State, change: changes.SnippetDeleted) -> None:
    state.snippets.remove(change.snippet_id)
