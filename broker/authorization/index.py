"""AclIndex: ACLs by resource type, pattern type and resource name. Immutable.

A decision needs the ACLs whose pattern matches one name. They are found with one look-up for the name, one for each
distinct length of a prefix, and one for the wildcard, however many ACLs there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.protocol.messages.security.resources import WILDCARD, PatternType

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import Acl

_Names = dict[str, tuple["Acl", ...]]


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
        """Return an index with other ACLs. It copies only the resource types that change."""
        changed: dict[int, _TypeIndex] = {}
        for acl in removed:
            names = self._names_of(acl, changed)
            left = tuple(each for each in names[acl.resource_name] if each != acl)
            if left:
                names[acl.resource_name] = left
            else:
                del names[acl.resource_name]
        for acl in added:
            names = self._names_of(acl, changed)
            present = names.get(acl.resource_name, ())
            if acl not in present:
                names[acl.resource_name] = tuple(sorted((*present, acl), key=_order))
        index = AclIndex.__new__(AclIndex)
        types = dict(self._types)
        types.update((kind, _TypeIndex(each.literal, each.prefixed)) for kind, each in changed.items())
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

    def _names_of(self, acl: Acl, changed: dict[int, _TypeIndex]) -> _Names:
        """Return the map that has, or will have, an ACL, as a copy that may be changed."""
        kind = acl.resource_type
        if kind not in changed:
            before = self._types.get(kind, _NOTHING)
            changed[kind] = _TypeIndex(dict(before.literal), dict(before.prefixed))
        return changed[kind].prefixed if acl.pattern_type == PatternType.PREFIXED else changed[kind].literal


def _order(acl: Acl) -> tuple[int, str, str, int]:
    """Sort the ACLs of one pattern as Kafka does; it decides only which of several rules is reported."""
    return acl.operation, acl.principal, acl.host, acl.permission
