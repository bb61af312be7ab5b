"""Message: comparison and text of the dataclasses that every start creates.

`@dataclass` compiles these methods for each class, which is half of the 0.4 ms that a class takes to create. So the
classes of the most frequent messages inherit them: `@dataclass(slots=True, eq=False, repr=False)`.
"""

from __future__ import annotations

from dataclasses import fields


class Message:
    """Base of a dataclass: equal if of the same class with equal fields."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        compared = [each.name for each in fields(self) if each.compare]  # type: ignore[arg-type] # subclasses are
        return all(getattr(self, name) == getattr(other, name) for name in compared)

    __hash__ = None  # type: ignore[assignment] # fields may change

    def __repr__(self) -> str:
        shown = [each.name for each in fields(self) if each.repr]  # type: ignore[arg-type] # subclasses are
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"
