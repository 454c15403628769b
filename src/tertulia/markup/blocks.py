"""Block rules: quotations, headings, tables, lists, and fences."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from markdown_it.common.utils import mdTrim
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.rules_block import StateBlock, blockquote, heading, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from tertulia.markup import code
from tertulia.markup.context import MAX_NESTING, Steps, context_of, run_steps

_BEGINS_BLOCK: Final = re.compile(r"```|~~~|>")
_LONE: Final = re.compile(r"[ \t>]*>[ \t]*$")
_MARKER: Final = re.compile(r"(?:[*+-]|(?P<number>[0-9]{1,9})\.)(?:[ \t]+|$)")
MAX_CELLS: Final = 10_000
"""The most table cells in a message. Short rows are padded to the width of the head."""
MAX_QUOTATION_CHECKS: Final = 20_000
"""The most attempts to parse a quotation in one message. Lines that may continue a quotation are
tried again for each line before them, which is quadratic."""
_INDENT: Final = 2
"""The columns that the content of a list item is indented by."""
_LINE: Final = r"[^\s\d#>`~*+\-_|:=][^\n]*+"
_ITEM: Final = re.compile(_LINE)
_PROSE: Final = re.compile(rf"{_LINE}(?:\n++{_LINE})*+")
_BETWEEN: Final = re.compile(r"\n{2,}")


def is_prose(text: str) -> bool:
    """Return whether the text has only paragraphs: no line can begin another block."""
    return _PROSE.fullmatch(text) is not None


def parse(state: StateCore) -> Steps[None]:
    """Parse a message's blocks, with a shortcut for plain paragraphs."""
    if not is_prose(state.src):
        if state.src:
            blocks = StateBlock(state.src, state.md, state.env, state.tokens)
            yield from _tokenize(blocks, blocks.line, blocks.lineMax)
        return
    for paragraph in _BETWEEN.split(state.src):
        text = Token("inline", "", 0, content=mdTrim(paragraph), children=[])
        state.tokens += (Token("paragraph_open", "p", 1), text, Token("paragraph_close", "p", -1))


def _tokenize(state: StateBlock, begin: int, end: int) -> Steps[None]:
    """Parse the lines like markdown-it's `ParserBlock.tokenize`, with a pause after each block."""
    rules = state.md.block.ruler.getRules("")
    has_empty_lines = False
    while begin < end:
        state.line = begin = state.skipEmptyLines(begin)
        if begin >= end or state.sCount[begin] < state.blkIndent:
            return
        for rule in rules:
            steps = _IN_STEPS.get(rule)
            if steps is None:
                matches = rule(state, begin, end, False)
            else:
                matches = yield from steps(state, begin, end)
            if matches:
                break
        if state.line <= begin:
            raise RuntimeError("no rule went on")
        # An empty line after the last block doesn't count.
        state.tight = not has_empty_lines
        begin = state.line
        # A paragraph in a list may have consumed the empty line after it.
        has_empty_lines |= state.isEmpty(begin - 1)
        if begin < end and state.isEmpty(begin):
            has_empty_lines = True
            begin += 1
            state.line = begin
        yield None


def line(state: StateBlock, number: int) -> str:
    """Return a line without indentation and markers of the blocks around it."""
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def quotation_rule(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse a quotation: lines that begin with `>`. Lines with nothing else are text."""
    context = context_of(state)
    context.quotation_checks += 1
    if not state.src.startswith(">", state.bMarks[begin] + state.tShift[begin]):
        return False
    if context.quotation_checks > MAX_QUOTATION_CHECKS and not silent:
        return False
    if state.level >= MAX_NESTING or _is_lone(state, begin, end):
        return False
    if not blockquote(state, begin, end, silent):
        return False
    if not silent:
        _continue_lazily(state, end)
    return True


def _continue_lazily(state: StateBlock, end: int) -> None:
    """Include the text below a quotation whose last line is only `>`, since it still belongs to the
    quotation."""
    number = state.line
    if number >= end or state.isEmpty(number) or state.sCount[number] < state.blkIndent:
        return
    if line(state, number - 1).strip("> \t") or _BEGINS_BLOCK.match(line(state, number)):
        return
    close = state.tokens.pop()
    state.level += 1
    outer, maximum = state.parentType, state.lineMax
    state.parentType, state.lineMax = "blockquote", _next_empty(state, number, end)
    state.md.block.tokenize(state, number, state.lineMax)
    state.parentType, state.lineMax = outer, maximum
    state.level -= 1
    state.tokens.append(close)


def _is_lone(state: StateBlock, begin: int, end: int) -> bool:
    """Return whether only quotation markers (`>`) follow until the next empty line."""
    known = context_of(state).lone_markers
    seen: list[tuple[int, int]] = []
    result = True
    for number in range(begin, end):
        place = number, state.bMarks[number] + state.tShift[number]
        if place in known:
            result = known[place]
            break
        text = line(state, number)
        if not text:
            break
        if not _LONE.match(text):
            result = False
            break
        seen.append(place)
    known.update(dict.fromkeys(seen, result))
    return result and bool(_LONE.match(line(state, begin)))


def heading_rule(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse `# Heading`. Markers alone are text."""
    return bool(line(state, begin).strip("# \t")) and heading(state, begin, end, silent)


def table_rule(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse a table, or leave it as text if the message would have more than `MAX_CELLS`."""
    if silent or begin + 2 > end:
        return table(state, begin, end, silent)
    second = line(state, begin + 1)
    if "-" not in second or second.strip("|:- \t"):
        return False
    cells = (second.count("|") + 1) * (_next_empty(state, begin, end) - begin)
    context = context_of(state)
    if context.table_cells + cells > MAX_CELLS or not table(state, begin, end, silent):
        return False
    context.table_cells += cells
    return True


def _next_empty(state: StateBlock, begin: int, end: int) -> int:
    """Return the next empty line, or `end`."""
    known = context_of(state).next_empty
    number = begin
    while number < end and number not in known and not state.isEmpty(number):
        number += 1
    result = known.get(number, number)
    known.update(dict.fromkeys(range(begin, number), result))
    return min(result, end)


def list_rule(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Parse a list. Items may have different markers. Their content is indented by two columns."""
    marker = _list_marker(state, begin)
    if marker is None:
        return False
    number = marker["number"]
    if silent:
        interrupts = state.parentType == "paragraph" and state.sCount[begin] >= state.blkIndent
        empty = marker.end() == len(line(state, begin))
        return not interrupts or not (empty or len(number or "") > 1)
    run_steps(_list(state, begin, end, number))
    return True


def _list_steps(state: StateBlock, begin: int, end: int) -> Steps[bool]:
    """Parse a list like `list_rule`, in steps."""
    marker = _list_marker(state, begin)
    if marker is not None:
        yield from _list(state, begin, end, marker["number"])
    return marker is not None


def _list_marker(state: StateBlock, begin: int) -> re.Match[str] | None:
    """Return the marker if a list may begin in the line."""
    if state.is_code_block(begin) or state.level + 2 > MAX_NESTING:
        return None
    return _MARKER.match(line(state, begin))


def _list(state: StateBlock, begin: int, end: int, number: str | None) -> Steps[None]:
    kind, tag = ("bullet_list", "ul") if number is None else ("ordered_list", "ol")
    first = len(state.tokens)
    token = state.push(f"{kind}_open", tag, 1)
    if number is not None and int(number) != 1:
        token.attrs = {"start": int(number)}
    outer = state.parentType
    state.parentType = "list"
    current, tight, gap = begin, True, False
    while current < end:
        marker = _item(state, current, ordered=number is not None)
        if marker is None:
            break
        if gap:
            tight = False
        state.push("list_item_open", "li", 1)
        loose = yield from _contents(state, current, end, marker.end())
        state.push("list_item_close", "li", -1)
        tight = tight and not loose
        gap = state.line - current > 1 and state.isEmpty(state.line - 1)
        current = state.line
        yield None
        if current < end and _ends(state, current, end):
            break
    state.push(f"{kind}_close", tag, -1)
    state.line = current
    state.parentType = outer
    if tight:
        _hide_paragraphs(state.tokens, first, state.level + 2)


def _item(state: StateBlock, number: int, *, ordered: bool) -> re.Match[str] | None:
    """Return the marker if an item of this kind of list begins in the line."""
    marker = _MARKER.match(line(state, number))
    return None if marker is None or (marker["number"] is None) is ordered else marker


def _ends(state: StateBlock, number: int, end: int) -> bool:
    """Return whether the list ends before this line."""
    if state.sCount[number] < state.blkIndent or state.is_code_block(number):
        return True
    rules = state.md.block.ruler.getRules("list")
    return any(rule(state, number, end, True) for rule in rules)


def _contents(state: StateBlock, begin: int, end: int, offset: int) -> Steps[bool]:
    """Parse an item's content, which starts `offset` characters into its first line. Return whether
    it has empty lines."""
    kept = state.bMarks[begin], state.tShift[begin], state.sCount[begin]
    outside = state.blkIndent, state.tight
    state.blkIndent = state.sCount[begin] + _INDENT
    state.bMarks[begin] += state.tShift[begin] + offset
    state.tShift[begin] = 0
    state.sCount[begin] = state.blkIndent
    state.tight = True
    if not line(state, begin) and state.isEmpty(begin + 1):
        state.line = min(begin + 2, end)
    elif _is_one_line(state, begin, end):
        _paragraph(state, mdTrim(line(state, begin)))
        state.line = begin + 1
    else:
        yield from _tokenize(state, begin, end)
    loose = not state.tight
    state.bMarks[begin], state.tShift[begin], state.sCount[begin] = kept
    state.blkIndent, state.tight = outside
    return loose


def _is_one_line(state: StateBlock, begin: int, end: int) -> bool:
    """Return whether an item is a line of prose right before another item, which has a shortcut."""
    return (
        begin + 1 < end
        # A negative number marks a line that continues a quotation.
        and 0 <= state.sCount[begin + 1] < state.blkIndent
        and _MARKER.match(line(state, begin + 1)) is not None
        and _ITEM.fullmatch(line(state, begin)) is not None
    )


def _hide_paragraphs(tokens: list[Token], first: int, level: int) -> None:
    """Hide paragraphs in the items of a list without empty lines."""
    for token in tokens[first:]:
        if token.level == level and token.type in {"paragraph_open", "paragraph_close"}:
            token.hidden = True


_FENCE: Final = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>.*)$")
_LANGUAGE: Final = re.compile(r"\{?\.?([\w+#./-]*)\}?")
_WITH_BLOCKS: Final = frozenset({"quote", "spoiler"})
_KINDS: Final = _WITH_BLOCKS | {"math"}


@dataclass(frozen=True)
class Fence:
    """An opening fence."""

    sign: str
    word: str
    """The language, or a kind of block: `quote`, `spoiler`, `math`."""
    rest: str

    def closes(self, text: str) -> bool:
        """Return whether the line closes the fence: it must have the same number of fence
        characters."""
        return text.rstrip() == self.sign


def fence_in(text: str) -> Fence | None:
    """Parse an opening fence."""
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
    """Parse a fenced block. Without a closing fence, it ends with the block around it."""
    return run_steps(_fence_steps(state, begin, end, silent))


def _fence_steps(state: StateBlock, begin: int, end: int, silent: bool = False) -> Steps[bool]:
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
        yield from _blocks(state, begin, last, word, fence.rest)
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


_IN_STEPS: Final[Mapping[RuleFuncBlockType, Callable[[StateBlock, int, int], Steps[bool]]]] = {
    list_rule: _list_steps,
    fence_rule: _fence_steps,
}
"""Rules that pause between the blocks inside them."""


def _with_words_kept(fence: Fence) -> Fence:
    """Treat the text after the fence as the first line inside if it isn't just a language."""
    is_kind = fence.word.lower() in _KINDS
    if not fence.rest or is_kind or code.is_language(fence.word):
        return fence
    return Fence(fence.sign, "", f"{fence.word} {fence.rest}")


def _end(
    state: StateBlock, fence: Fence, begin: int, end: int, *, holds_blocks: bool
) -> tuple[int, int]:
    """Return the line where the content ends, and the line where parsing continues. In a fence that
    contains blocks, inner fences are skipped."""
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


def _blocks(state: StateBlock, begin: int, end: int, word: str, header: str) -> Steps[None]:
    if word == "quote":
        state.push("blockquote_open", "blockquote", 1)
        _paragraph(state, header)
    else:
        state.push("spoiler_open", "", 1)
        _paragraph(state, header)
        state.push("spoiler_content", "", 0)
    outer, maximum, tight = state.parentType, state.lineMax, state.tight
    state.parentType, state.lineMax = "blockquote", end
    yield from _tokenize(state, begin + 1, end)
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
