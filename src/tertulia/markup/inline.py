"""Inline parsing and rules: escapes, code, strikethrough, and formulas."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline, RuleFuncInlineType
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token
from markdown_it.utils import EnvType

from tertulia.markup.context import Steps, add_html, context_of, delimiters_of, run_steps
from tertulia.markup.elements import element, escaped
from tertulia.markup.worker_rendering import ExpensiveParts


class InlineParser(ParserInline):
    """markdown-it's parser, except that at each character only the rules that begin with it are
    tried."""

    def __init__(self, rules: Mapping[str, Sequence[RuleFuncInlineType]], max_nesting: int) -> None:
        """`rules` are by their first character, in the order in which they're tried."""
        super().__init__()
        self._rules = rules
        self._sign = re.compile(f"[{re.escape(''.join(rules))}]")
        self._max_nesting = max_nesting

    def tokenize(self, state: StateInline) -> None:
        run_steps(self._tokenize(state))

    def _tokenize(self, state: StateInline) -> Steps[None]:
        text, end = state.src, state.posMax
        while state.pos < end:
            begin = state.pos
            sign = self._sign.search(text, begin, end) if state.level < self._max_nesting else None
            at = end if sign is None else sign.start()
            if at > begin:
                state.append_pending(text[begin:at])
                state.pos = at
            if sign is None:
                break
            for rule in self._rules[text[at]]:
                if rule(state, False):
                    if state.pos <= at:
                        raise RuntimeError(f"the rule did not go on: {rule}")
                    break
            else:
                state.append_pending(text[at])
                state.pos = at + 1
            yield None
        if state.pending:
            state.pushPending()

    def steps(self, text: str, md: MarkdownIt, env: EnvType) -> Steps[list[Token]]:
        """Parse like `parse`, with a pause after each text and rule."""
        if not text:
            return []
        if self._sign.search(text) is None:
            return [text_token(text)]
        state = StateInline(text, md, env, [])
        yield from self._tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
            yield None
        return state.tokens


def text_token(content: str) -> Token:
    token = Token("text", "", 0)
    token.content = content
    return token


_ESCAPED: Final = re.compile(r"\\([\\`*_{}\[\]()>#+\-.!])")
_BOTH: Final = frozenset({"em_open", "em_close", "strong_open", "strong_close"})
_BACKTICKS: Final = re.compile(r"`+")


def escape(state: StateInline, silent: bool) -> bool:
    """Parse a backslash, which turns the following markup character into text."""
    if state.src[state.pos] != "\\":
        return False
    match = _ESCAPED.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.append_pending(match[1])
    state.pos = match.end()
    return True


def code_span(state: StateInline, silent: bool) -> bool:
    """Parse code between runs of equally many backticks."""
    if state.src[state.pos] != "`":
        return False
    begin = _BACKTICKS.match(state.src, state.pos, state.posMax)
    if begin is None:
        return False
    length = len(begin[0])
    end = delimiters_of(state).next_backticks(length, begin.end())
    if end is None or end + length > state.posMax:
        if not silent:
            state.append_pending(begin[0])
        state.pos = begin.end()
        return True
    if not silent:
        add_html(state, element("code", {}, escaped(state.src[begin.end() : end])))
    state.pos = end + length
    return True


def strikethrough(state: StateInline, silent: bool) -> bool:
    """Parse `~~text~~`, which may have spaces inside. More or fewer tildes are text."""
    if silent or state.src[state.pos] != "~":
        return False
    length = state.scanDelims(state.pos, True).length
    token = state.push("text", "", 0)
    token.content = "~" * length
    if length != len("~~"):
        state.pos += length
        return True
    sign = Delimiter(
        marker=ord("~"), length=0, token=len(state.tokens) - 1, end=-1, open=True, close=True
    )
    state.delimiters.append(sign)
    state.pos += len("~~")
    return True


def strong_outside(state: StateInline) -> None:
    """Put the strong element outside in text that is both strong and emphasized."""
    tokens = [token for token in state.tokens if token.type != "text" or token.content]
    if len(tokens) != len(state.tokens):
        state.tokens[:] = tokens
    pending: list[int] = []
    begins: dict[int, int] = {}
    for index, token in enumerate(tokens):
        if token.nesting > 0:
            pending.append(index)
        elif token.nesting < 0 and pending:
            begin = begins[index] = pending.pop()
            if token.type == "em_close" and begins.get(index - 1) == begin + 1:
                _exchange(state.tokens, begin, begin + 1)
                _exchange(state.tokens, index - 1, index)


def _exchange(tokens: list[Token], token_id: int, other: int) -> None:
    if {tokens[token_id].type, tokens[other].type} <= _BOTH:
        tokens[token_id], tokens[other] = tokens[other], tokens[token_id]


MAX_FORMULA: Final = 4000
"""The longest formula, in characters. Longer ones are shown as text."""
_FORMULA: Final = re.compile(r"\$\$(?P<tex>[^\n_$](?:\\\$|[^\n$])*)\$\$(?!\$)")


def formula(state: StateInline, silent: bool) -> bool:
    """Parse `$$formula$$`."""
    if not state.src.startswith("$$", state.pos):
        return False
    if state.pos and state.src[state.pos - 1] == "$":
        return False
    match = _FORMULA.match(state.src, state.pos, state.posMax)
    if match is None or context_of(state).is_plain:
        return False
    if not silent:
        state.push("formula", "", 0).content = match["tex"]
    state.pos = match.end()
    return True


def formula_in_text(tex: str, expensive: ExpensiveParts) -> str:
    shown = _formula(tex, expensive, display=False)
    return _formula_error(f"$${tex}$$") if shown is None else shown


def formula_block(source: str, expensive: ExpensiveParts) -> str:
    """Return a block of formulas separated by empty lines."""
    shown: list[str] = []
    for tex in _parts(source):
        result = _formula(tex, expensive, display=True)
        shown.append(
            _formula_error(tex)
            if result is None
            else element("span", {"class": "katex-display"}, result)
        )
    return element("p", {}, "\n".join(shown))


def _parts(source: str) -> list[str]:
    parts = re.split(r"\n\s*\n", source.strip("\n"))
    return [part.strip() for part in parts if part.strip()]


def _formula(tex: str, expensive: ExpensiveParts, *, display: bool) -> str | None:
    return None if len(tex) > MAX_FORMULA else expensive.formula(tex, display=display)


def _formula_error(text: str) -> str:
    return element("span", {"class": "tex-error"}, escaped(text))
