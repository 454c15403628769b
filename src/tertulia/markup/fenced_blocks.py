"""Blocks between fences: code, quotations, spoilers, formulas."""

import re
from dataclasses import dataclass
from typing import Final

from markdown_it.rules_block import StateBlock

from tertulia.markup import code
from tertulia.markup.blocks import line
from tertulia.markup.render_context import MAX_NESTING

_FENCE: Final = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>.*)$")
_LANGUAGE: Final = re.compile(r"\{?\.?([\w+#./-]*)\}?")
_WITH_BLOCKS: Final = frozenset({"quote", "spoiler"})
_KINDS: Final = _WITH_BLOCKS | {"math"}


@dataclass(frozen=True)
class Fence:
    """An opening fence."""

    sign: str
    word: str
    """The language, or the kind of block: `quote`, `spoiler`, `math`."""
    rest: str

    def closes(self, text: str) -> bool:
        """Whether the line is the closing fence."""
        text = text.rstrip()
        return len(text) >= len(self.sign) and not text.strip(self.sign[0])


def fence_in(text: str) -> Fence | None:
    """The opening fence that the line is, or None."""
    match = _FENCE.match(text)
    if match is None or match["fence"][0] in match["info"]:
        return None
    info = match["info"].strip()
    first, _, rest = info.partition(" ")
    word = _LANGUAGE.fullmatch(first)
    if word is None:
        return Fence(match["fence"], first, rest.strip())
    return Fence(match["fence"], word[1], rest.strip())


def fence_rule(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """A block between fences; without a closing one, to the end of the block around it."""
    if state.is_code_block(begin):
        return False
    fence = fence_in(line(state, begin))
    if fence is None:
        return False
    if silent:
        return True
    fence = _with_words_kept(fence)
    word = fence.word.lower()
    holds_blocks = word in _WITH_BLOCKS and state.level < MAX_NESTING
    last, following = _end(state, fence, begin + 1, end, holds_blocks=holds_blocks)
    if holds_blocks:
        _blocks(state, begin, last, word, fence.rest)
    else:
        token = state.push("formula" if word == "math" else "fence", "", 0)
        token.info = "" if word in _WITH_BLOCKS else fence.word
        content = state.getLines(begin + 1, last, state.sCount[begin], True)
        # The last line of a message has no newline.
        token.content = content if not content or content.endswith("\n") else content + "\n"
        if fence.rest:
            token.content = f"{fence.rest}\n{token.content}"
    state.line = following
    return True


def _with_words_kept(fence: Fence) -> Fence:
    """The fence, where more than a language stands in its line: what is no language is text. (It
    becomes the first line within.)"""
    is_kind = fence.word.lower() in _KINDS
    if not fence.rest or is_kind or code.is_language(fence.word):
        return fence
    return Fence(fence.sign, "", f"{fence.word} {fence.rest}")


def _end(
    state: StateBlock, fence: Fence, begin: int, end: int, *, holds_blocks: bool
) -> tuple[int, int]:
    """The line at which the content ends, and the one at which parsing goes on: the line after the
    closing fence, or the first that is not in the block around the fence. In a fence that holds
    blocks, inner fences are skipped."""
    inner: list[Fence] = []
    for number in range(begin, end):
        if not state.isEmpty(number) and state.sCount[number] < state.blkIndent:
            return number, number
        text = line(state, number)
        if not text.startswith(("```", "~~~")):
            continue
        if inner and inner[-1].closes(text):
            inner.pop()
        elif not inner and fence.closes(text):
            return number, number + 1
        elif holds_blocks and (not inner or inner[-1].word.lower() in _WITH_BLOCKS):
            other = fence_in(text)
            if other is not None and other.word:
                inner.append(other)
    return end, end


def _blocks(state: StateBlock, begin: int, end: int, word: str, header: str) -> None:
    if word == "quote":
        state.push("blockquote_open", "blockquote", 1)
        _paragraph(state, header)
    else:
        state.push("spoiler_open", "", 1)
        _paragraph(state, header)
        state.push("spoiler_content", "", 0)
    outer, maximum, tight = state.parentType, state.lineMax, state.tight
    state.parentType, state.lineMax = "blockquote", end
    state.md.block.tokenize(state, begin + 1, end)
    state.parentType, state.lineMax, state.tight = outer, maximum, tight
    if word == "quote":
        state.push("blockquote_close", "blockquote", -1)
    else:
        state.push("spoiler_close", "", -1)


def _paragraph(state: StateBlock, text: str) -> None:
    if text:
        state.push("paragraph_open", "p", 1)
        token = state.push("inline", "", 0)
        token.content, token.children = text, []
        state.push("paragraph_close", "p", -1)
