"""AclIndex: ACLs by resource type, pattern type and resource name. Immutable.

A decision needs the ACLs whose pattern matches one name. They are found with one look-up for the name, one for each
distinct length of a prefix, and one for the wildcard, however many ACLs there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.protocol.messages.security.resources import WILDCARD, PatternType

if TYPE_CHECKING:
    from barnabas.protocol.messages.security.acls import Acl

_Names = dict[str, tuple["Acl", ...]]
_Pattern = tuple[int, bool, str]
"""Resource type, whether it is a prefix, and name."""


class _TypeIndex:
    """ACLs of one resource type."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self, literal: _Names, prefixed: _Names) -> None:
        self.literal = literal
        self.prefixed = prefixed
        self.lengths: tuple[int, ...] = tuple(sorted({len(name) for name in prefixed}, reverse=True))


_NOTHING: Final = _TypeIndex({}, {})


class AclIndex:
    """ACLs, found by the resource that they are about."""

    __slots__ = ("_types",)

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._types: Mapping[int, _TypeIndex] = {}
        self._types = self.with_changes(acls, ())._types

    def with_changes(self, added: Iterable[Acl], removed: Iterable[Acl]) -> AclIndex:
        """Return an index with other ACLs. It copies only the resource types that change.

        Each pattern is sorted once: 10,000 ACLs of one topic must not cost 10,000 times as much as one.
        """
        changes: dict[_Pattern, tuple[set[Acl], set[Acl]]] = {}
        for acl in added:
            changes.setdefault(_pattern(acl), (set(), set()))[0].add(acl)
        for acl in removed:
            changes.setdefault(_pattern(acl), (set(), set()))[1].add(acl)
        types = dict(self._types)
        copied: set[int] = set()
        for (kind, is_prefixed, name), (new, gone) in changes.items():
            if kind not in copied:
                copied.add(kind)
                before = types.get(kind, _NOTHING)
                types[kind] = _TypeIndex(dict(before.literal), dict(before.prefixed))
            names = types[kind].prefixed if is_prefixed else types[kind].literal
            after = new.union(names.get(name, ())) - (gone - new)
            if after:
                names[name] = tuple(sorted(after, key=_order))
            else:
                names.pop(name, None)
        for kind in copied:
            types[kind] = _TypeIndex(types[kind].literal, types[kind].prefixed)
        index = AclIndex.__new__(AclIndex)
        index._types = types
        return index

    def matching(self, resource_type: int, name: str) -> Iterator[Acl]:
        """Yield the ACLs whose pattern matches a name, in Kafka's order: longer names first, the wildcard last."""
        acls = self._types.get(resource_type, _NOTHING)
        if name != WILDCARD:
            yield from acls.literal.get(name, ())
        size = len(name)
        for length in acls.lengths:
            if length <= size:
                yield from acls.prefixed.get(name[:length], ())
        yield from acls.literal.get(WILDCARD, ())

    def of_type(self, resource_type: int) -> Iterator[Acl]:
        """Yield all ACLs of a resource type."""
        acls = self._types.get(resource_type, _NOTHING)
        for names in (acls.literal, acls.prefixed):
            for each in names.values():
                yield from each

    def __iter__(self) -> Iterator[Acl]:
        for resource_type in self._types:
            yield from self.of_type(resource_type)


def _pattern(acl: Acl) -> _Pattern:
    return acl.resource_type, acl.pattern_type == PatternType.PREFIXED, acl.resource_name


def _order(acl: Acl) -> tuple[int, str, str, int]:
    """Sort the ACLs of one pattern as Kafka does; it decides only which of several rules is reported."""
    return acl.operation, acl.principal, acl.host, acl.permission
