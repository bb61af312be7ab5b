"""Generated functions. Each line knows its field, so naming the field of an error costs a good message nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final, NamedTuple

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.varint import read_unsigned, unsigned
from barnabas.protocol.wire.pieces import pieces_of


class Run(NamedTuple):
    """Fields that one line reads: the names of its variables for position and end, and each field's size and path."""

    position: str
    end: str
    fields: tuple[tuple[int, str], ...]

    def cut(self, variables: dict[str, Any]) -> str:
        """Return the path of the field within which the message ends."""
        left = variables[self.end] - variables[self.position]
        ends = accumulate([size for size, _ in self.fields])
        return next(path for end, (_, path) in zip(ends, self.fields, strict=True) if end > left)


class Source:
    """The lines of a function. `path`: the field of the lines that follow."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: list[str | Run] = [""]
        self.path: list[str] = []
        self.space: dict[str, Any] = dict(_RUNTIME)
        self._depth = 0
        self._names = 0

    def add(self, text: str, place: str | Run | None = None) -> None:
        """Add a line; `place`: its field, when that is not the current one."""
        self.lines.append(" " * self._depth + text)
        self.places.append(self.place() if place is None else place)

    def place(self) -> str:
        """The path of the current field."""
        return ": ".join(self.path)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add the head of a block; the lines within the context are its body."""
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def field(self, name: str) -> Iterator[None]:
        """Lines within the context are of this field of the current structure."""
        self.path.append(name)
        yield
        self.path.pop()

    def name(self, stem: str) -> str:
        """Return a new name of a variable."""
        self._names += 1
        return f"{stem}_{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        """Return the name of a value in the function's namespace."""
        while self.space.setdefault(stem, value) is not value:
            stem += "_"  # two structures of one name
        return stem

    def packer(self, code: str) -> str:
        """Return the name of a function that packs numbers."""
        return self._function("pack", code)

    def unpacker(self, code: str) -> str:
        """Return the name of a function that unpacks numbers at a position."""
        return self._function("unpack", code)

    def _function(self, direction: str, code: str) -> str:
        name = f"{direction}_{code.replace('?', 'T')}_{len(code)}"
        if name not in self.space:
            layout = struct.Struct(f">{code}")
            self.space[name] = layout.pack if direction == "pack" else layout.unpack_from
        return name

    def function(self, label: str) -> Callable[..., Any]:
        """Compile the function, whose name is `run`."""
        self.space["PLACES"] = self.places
        exec(compile("\n".join(self.lines), label, "exec", dont_inherit=True), self.space)
        function: Callable[..., Any] = self.space["run"]
        return function


def known_error(code: int) -> ErrorCode:
    """Return an error code, UNKNOWN_SERVER_ERROR for one that Barnabas does not know."""
    return _ERRORS.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


_ERRORS: Final = {int(each): each for each in ErrorCode}


def cut_short(asked: int, left: int) -> DecodeError:
    """A length that is greater than the rest of the message."""
    return DecodeError(f"{asked} bytes asked, but {left} bytes are left")


def sized(found: int, size: int) -> DecodeError:
    """A tagged field of another size than its type has."""
    return DecodeError(f"a tagged field of {found} bytes, not {size}")


def left_over(size: int) -> DecodeError:
    """A tagged field that is longer than its value."""
    return DecodeError(f"{size} bytes are left over")


def unmarked(mark: int) -> DecodeError:
    """A tagged structure that begins with neither 0 nor 1."""
    return DecodeError(f"a structure that is neither null nor present, but {mark}")


def too_long(count: int, left: int) -> DecodeError:
    """An array that cannot be in the rest of the message."""
    return DecodeError(f"an array of {count} items, but {left} bytes are left")


def too_many(limit: int) -> DecodeError:
    """More array items than a message may have."""
    return DecodeError(f"more than {limit} array items in one message")


def null(what: str) -> DecodeError:
    """A null that the version does not allow."""
    return DecodeError(f"{what} that is null where it must not be")


def unordered(tag: int, last: int) -> DecodeError:
    """A tag that is repeated or out of order."""
    return DecodeError(f"tag {tag} does not come after tag {last}")


def located(error: BaseException, places: list[str | Run]) -> DecodeError:
    """Return the DecodeError for an error within generated code, with the path of the field of its line."""
    traceback = error.__traceback__
    assert traceback is not None
    place = places[traceback.tb_lineno]
    if isinstance(place, Run):
        place = place.cut(traceback.tb_frame.f_locals)
    if isinstance(error, UnicodeDecodeError):
        return DecodeError(f"{place}: a string that is not UTF-8: {error}")
    if isinstance(error, IndexError | struct.error):
        return DecodeError(f"{place}: the message ends within this field")
    return DecodeError(f"{place}: {error}")


def unwritable(error: BaseException, places: list[str | Run]) -> ValueError:
    """Return the ValueError for a value that cannot be written, with the path of its field."""
    assert error.__traceback__ is not None
    return ValueError(f"{places[error.__traceback__.tb_lineno]}: {error}")


_RUNTIME: Final[dict[str, Any]] = {
    "DecodeError": DecodeError,
    "cut_short": cut_short,
    "known_error": known_error,
    "left_over": left_over,
    "located": located,
    "new": object.__new__,
    "null": null,
    "pack": struct.pack,
    "pieces_of": pieces_of,
    "read_unsigned": read_unsigned,
    "sized": sized,
    "struct_error": struct.error,
    "too_long": too_long,
    "too_many": too_many,
    "unmarked": unmarked,
    "unordered": unordered,
    "unpack_from": struct.unpack_from,
    "unsigned": unsigned,
    "unwritable": unwritable,
}
