"""Inline markup by its signs: at a sign only the rules that begin with it are tried."""

import re
from collections.abc import Mapping, Sequence

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline, RuleFuncInlineType
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType


class InlineParser(ParserInline):
    """markdown-it's parser, whose own way is to try all rules at all signs. What comes after the
    rules (its `ruler2`) is done as there."""

    def __init__(self, rules: Mapping[str, Sequence[RuleFuncInlineType]], max_nesting: int) -> None:
        """`rules` by the character at which they begin, in the order in which they are tried."""
        super().__init__()
        self._rules = rules
        self._sign = re.compile(f"[{re.escape(''.join(rules))}]")
        self._max_nesting = max_nesting

    def tokenize(self, state: StateInline) -> None:
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
        if state.pending:
            state.pushPending()

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        if self._sign.search(src) is not None:
            return super().parse(src, md, env, tokens)
        if src:
            token = Token("text", "", 0)
            token.content = src
            tokens.append(token)
        return tokens
