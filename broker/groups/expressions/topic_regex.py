r"""Regular expressions over topic names, in time that grows with the name alone, whatever the expression.

Clients send expressions of RE2's syntax, as Kafka's brokers take them. Python's `re` tries one way after another, so
that a hostile expression would hold the event loop for hours; this one follows all ways at once (Thompson's
construction, its subsets made as they are met). An expression matches a whole name. What it is read as:

    a  \.  \x41  \t  \Q...\E           a character          .  [a-z]  [^a]  [[:digit:]]  \d \w \s \D \W \S   one of some
    (x)  (?:x)  (?P<n>x)  (?i:x)  (?i) a group              x|y                                              either
    x*  x+  x?  {n}  {n,}  {n,m}       repeated; a ? behind it changes nothing of a whole match
    ^  \A  $  \z                       where the name begins and ends

Refused: what RE2 refuses (look-around, references back), \b and classes of Unicode (\pL), and what becomes too large.
Source: RE2's syntax page; Kafka's TopicRegexResolver.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from barnabas.broker.groups.expressions.topic_regex_syntax import (
    Chars,
    Edge,
    Either,
    Node,
    Repeat,
    Sequence,
    invalid_regex,
    parse_topic_regex,
)

MAX_LENGTH: Final = 1_000
"""Characters of an expression."""
MAX_NODES: Final = 2_000
"""Of one expression, its repetitions written out."""
MAX_STATES: Final = 2_000
"""That are remembered; then they are made anew."""
MAX_VISITS: Final = 500_000
"""Of nodes, for one expression as long as it is remembered: a fifth of a second. Usual ones need some thousands."""

_MATCH: Final = 0
_State: TypeAlias = frozenset[int]


@lru_cache(maxsize=256)
def topic_regex(expression: str) -> TopicRegex:
    """The expression, ready to match. Raises BrokerError INVALID_REGULAR_EXPRESSION."""
    if len(expression) > MAX_LENGTH:
        raise invalid_regex(expression[:40] + "...", f"it is longer than {MAX_LENGTH} characters")
    return TopicRegex(parse_topic_regex(expression), expression)


class TopicRegex:
    """One expression, as nodes by number: characters to read, jumps, and edges of the name. 0 is the end of a match."""

    def __init__(self, tree: Node, expression: str) -> None:
        self._expression = expression
        self._chars: dict[int, tuple[frozenset[str], int]] = {}
        self._jumps: dict[int, tuple[int, ...]] = {}
        self._edges: dict[int, tuple[bool, int]] = {}
        self._size = 1
        self._visits = 0
        start = self._build(tree, _MATCH)
        self._steps: dict[tuple[_State, str], _State] = {}
        self._states: dict[_State, _State] = {}
        """Each state as the one object that it is known by: equal sets are compared node by node, one object is not."""
        self._accepts: dict[_State, bool] = {}
        self._start = self._known(self._closure({start}, at_start=True))

    def matches(self, name: str) -> bool:
        """Whether the whole name matches. Raises BrokerError INVALID_REGULAR_EXPRESSION above MAX_VISITS."""
        state, steps = self._start, self._steps
        for character in name:
            after = steps.get((state, character))
            if after is None:
                after = self._step(state, character)
            if not after:
                return False
            state = after
        accepts = self._accepts.get(state)
        if accepts is None:
            accepts = self._accepts[state] = _MATCH in self._closure(state, at_end=True)
        return accepts

    def _step(self, state: _State, character: str) -> _State:
        self._visits += len(state)
        if self._visits > MAX_VISITS:
            raise invalid_regex(self._expression, "it takes too many steps")
        if len(self._steps) >= MAX_STATES:
            self._steps.clear()
            self._states.clear()
            self._accepts.clear()
            state = self._known(state)
        found = (self._chars[node] for node in state if node in self._chars)
        after = self._known(self._closure({target for accepted, target in found if character in accepted}))
        self._steps[state, character] = after
        return after

    def _known(self, state: _State) -> _State:
        return self._states.setdefault(state, state)

    def _closure(self, nodes: set[int] | _State, *, at_start: bool = False, at_end: bool = False) -> _State:
        """All nodes that are reached without a character."""
        seen = set(nodes)
        open_nodes = list(nodes)
        while open_nodes:
            node = open_nodes.pop()
            targets = self._jumps.get(node, ())
            edge = self._edges.get(node)
            if edge is not None and (at_end if edge[0] else at_start):
                targets = (edge[1],)
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    open_nodes.append(target)
        return frozenset(seen)

    def _new(self) -> int:
        if self._size >= MAX_NODES:
            raise invalid_regex(self._expression, "its repetitions are too large")
        self._size += 1
        return self._size - 1

    def _build(self, tree: Node, then: int) -> int:
        """The node where `tree` begins, if `then` follows it."""
        match tree:
            case Chars(accepted):
                node = self._new()
                self._chars[node] = (accepted, then)
                return node
            case Edge(at_end):
                node = self._new()
                self._edges[node] = (at_end, then)
                return node
            case Sequence(parts):
                for part in reversed(parts):
                    then = self._build(part, then)
                return then
            case Either(options):
                node = self._new()
                self._jumps[node] = tuple([self._build(option, then) for option in options])
                return node
            case Repeat(what, least, most):
                return self._build_repeat(what, least, most, then)

    def _build_repeat(self, what: Node, least: int, most: int | None, then: int) -> int:
        if most is None:
            loop = self._new()
            self._jumps[loop] = (self._build(what, loop), then)
            then = loop
        else:
            end = then
            for _ in range(most - least):
                node = self._new()
                self._jumps[node] = (self._build(what, then), end)
                then = node
        for _ in range(least):
            then = self._build(what, then)
        return then
