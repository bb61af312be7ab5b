"""The fields of a structure: how they are declared, and what a declaration says."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeVar, cast, get_args, get_origin

from barnabas.protocol.wire.types import NEVER, SHARED, Fixed, Named, Nullable, Sized

T = TypeVar("T")

LATEST: Final = 0x7FFF
"""The last version: a field that is still there, and the version of a request that was not received."""

ABSENT: Final[Any] = object()
"""The default of a field without one."""


class Note(NamedTuple):
    """What stands for a field's default in a class body."""

    default: Any
    since: int
    until: int
    tag: int | None


def since(version: int, *, default: T, until: int = LATEST) -> T:
    """Declare a field of `version` and later, up to `until`."""
    return cast(T, Note(default, version, until, None))


def until(version: int, *, default: T) -> T:
    """Declare a field of `version` and earlier."""
    return cast(T, Note(default, 0, version, None))


def tagged(tag: int, *, default: T, since: int = 0) -> T:
    """Declare a tagged field. It is not written with its default."""
    return cast(T, Note(default, since, LATEST, tag))


def unwired(*, default: T) -> T:
    """Declare an attribute that is not on the wire."""
    return cast(T, Note(default, LATEST, -1, None))


class Array(NamedTuple):
    """Items of one kind, read into a list or a tuple."""

    item: Any
    item_nullable_from: int
    is_tuple: bool
    is_shared: bool


class Field(NamedTuple):
    """A field of a structure. `kind`: Fixed, Sized, Array or another structure's class; None: not on the wire.

    `kafka_name`: as Kafka's JSON has it.
    """

    name: str
    kind: Any
    nullable_from: int
    default: Any
    since: int
    until: int
    tag: int | None
    kafka_name: str = ""


def note_of(declared: Any) -> Note:
    """Return what a class body says of a field besides its type."""
    return declared if isinstance(declared, Note) else Note(declared, 0, LATEST, None)


def is_structure(kind: Any) -> bool:
    """Return whether the kind of a field is a structure's class."""
    return isinstance(kind, type) and hasattr(kind, "wire_annotations")


def fields_of(structure: Any) -> tuple[Field, ...]:
    """Return the fields of a structure's class, in wire order. Its annotations are evaluated at the first call."""
    found: tuple[Field, ...] | None = structure.wire_fields
    if found is None:
        found = tuple([_field(structure, name, text) for name, text in structure.wire_annotations.items()])
        structure.wire_fields = found
    return found


def present(structure: Any, version: int) -> Iterator[Field]:
    """Iterate over the fields that a version has on the wire."""
    return (each for each in fields_of(structure) if each.since <= version <= each.until)


def least_size(kind: Any, version: int, flexible: bool) -> int:
    """Return the fewest bytes of a value, by which an array's count is checked before anything is allocated."""
    if isinstance(kind, Fixed):
        return kind.size
    if is_structure(kind):
        sizes = [
            1 if is_structure(each.kind) and each.nullable_from <= version else least_size(each.kind, version, flexible)
            for each in present(kind, version)
            if each.tag is None
        ]
        return sum(sizes) + flexible or 1
    if flexible:
        return 1
    return 2 if isinstance(kind, Sized) and kind.name == "string" else 4


def has_records(structure: Any) -> bool:
    """Return whether a structure, or one within it, has records."""
    for each in fields_of(structure):
        kind = each.kind.item if isinstance(each.kind, Array) else each.kind
        if (isinstance(kind, Sized) and kind.name == "records") or (is_structure(kind) and has_records(kind)):
            return True
    return False


def has_message(structure: Any, version: int) -> bool:
    """Return whether a version of an answer, or of a structure within it, has the message of an error."""
    for each in present(structure, version):
        kind = each.kind.item if isinstance(each.kind, Array) else each.kind
        if (isinstance(kind, Sized) and kind.longest is not None) or (
            is_structure(kind) and has_message(kind, version)
        ):
            return True
    return False


def _field(structure: Any, name: str, annotation: str) -> Field:
    note = note_of(structure.wire_defaults.get(name, ABSENT))
    if note.until < 0:
        return Field(name, None, NEVER, *note)
    try:
        declaring = next(each for each in structure.__mro__ if name in vars(each).get("__slots__", ()))
        found = eval(annotation, vars(sys.modules[declaring.__module__]))
        kind, nullable_from = _kind(found)
    except (NameError, TypeError) as error:
        raise TypeError(f"{structure.__qualname__}.{name}: {error}") from error
    first, *words = name.split("_")
    names = [each.name for each in getattr(found, "__metadata__", ()) if isinstance(each, Named)]
    return Field(name, kind, nullable_from, *note, *names or [first + "".join([word.capitalize() for word in words])])


def _kind(annotation: Any) -> tuple[Any, int]:
    """Return the kind of a field's type, and the version from which on it may be null."""
    nullable_from = NEVER
    is_shared = False
    if get_origin(annotation) is Annotated:
        annotation, *notes = get_args(annotation)
        for note in notes:
            if isinstance(note, Nullable):
                nullable_from = note.since
            elif note is SHARED:
                is_shared = True
            elif isinstance(note, Fixed):
                return note, NEVER
            elif isinstance(note, Sized):
                return note, min(nullable_from, note.nullable_from)
    if is_structure(annotation):
        return annotation, nullable_from
    origin = get_origin(annotation)
    inner = [each for each in get_args(annotation) if each not in (type(None), ...)]
    if len(inner) == 1:
        kind, inner_nullable_from = _kind(inner[0])
        if origin in (Sequence, tuple):
            return Array(kind, inner_nullable_from, origin is tuple, is_shared), nullable_from
        return kind, min(nullable_from, inner_nullable_from)  # X | None
    raise TypeError(f"{annotation!r} is no type of a field")
