"""Writes the encoder of a structure in one version.

Structures within it are inlined. Fields of fixed size that follow each other, with the length of what comes after
them, are packed by one call; where the length decides how it is written, each branch packs them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from barnabas.protocol.wire.fields import ABSENT, Array, Field, is_structure, present
from barnabas.protocol.wire.pieces import Pieces
from barnabas.protocol.wire.source import Source
from barnabas.protocol.wire.types import Fixed, Sized

_FIRST_LINE: Final = 1

Pending = list[tuple[str, str, str]]
"""Values of fixed size that are not written yet: code, expression, path."""


def write_encoder(structure: Any, version: int, flexible: bool) -> Callable[[Any], bytes]:
    """Return a function from a value to its bytes."""
    return _Encoder(version, flexible).function(structure)


def write_pieces_encoder(structure: Any, version: int, flexible: bool) -> Callable[[Any], Pieces]:
    """Return a function from a value to its bytes, with its records where they are."""
    return _Encoder(version, flexible, in_pieces=True).function(structure)


class _Encoder:
    def __init__(self, version: int, flexible: bool, *, in_pieces: bool = False) -> None:
        self.version = version
        self.flexible = flexible
        self.in_pieces = in_pieces
        self.source = Source()
        self.out = "out"
        self.has_memo = False

    def function(self, structure: Any) -> Callable[[Any], Any]:
        source = self.source
        with source.block("def run(value):"):
            source.add("out = bytearray()" + ("; parts = []; size = 0" if self.in_pieces else ""))
            with source.block("try:"):
                pending: Pending = []
                head = structure.wire_head(self.version)
                if head is not None:
                    self._add(pending, "h", str(head))
                self._structure(structure, "value", pending)
                self._flush(pending)
                source.add("return pieces_of(parts, out, size)" if self.in_pieces else "return bytes(out)")
            with source.block("except (struct_error, TypeError, AttributeError) as error:"):
                source.add("raise unwritable(error, PLACES) from error")
        return source.function(f"<{structure.__name__}.encode version {self.version}>")

    def _structure(self, structure: Any, value: str, pending: Pending) -> None:
        """Write a structure. A tail of fields that have their defaults, as they mostly do, is written in one piece."""
        source = self.source
        fields = [each for each in present(structure, self.version) if each.tag is None]
        tagged = [each for each in present(structure, self.version) if each.tag is not None] if self.flexible else []
        tagged.sort(key=lambda field: field.tag or 0)
        tail, usual = self._tail_of(fields)
        for each in fields[: len(fields) - len(tail)]:
            with source.field(each.name):
                self._value(each.kind, each.nullable_from <= self.version, f"{value}.{each.name}", pending)
        end = b"\0" if self.flexible else b""  # no tagged fields
        if not tail and not tagged:
            for byte in end:
                self._add(pending, "B", str(byte))
            return
        variables = {each.name: source.name(each.name) for each in (*tail, *tagged)}
        for name, variable in variables.items():
            with source.field(name):
                source.add(f"{variable} = {value}.{name}")
        are_defaults = [f"{variables[each.name]} is {self._default(structure, each)}" for each in (*tail, *tagged)]
        before = list(pending)
        with source.block(f"if {' and '.join(are_defaults)}:"):
            for byte in usual + end:
                self._add(pending, "B", str(byte))
            self._flush(pending)
        with source.block("else:"):
            for each in tail:
                with source.field(each.name):
                    self._value(each.kind, each.nullable_from <= self.version, variables[each.name], before)
            if len(tagged) == 1 and isinstance(tagged[0].kind, Fixed):
                self._only_tagged_field(structure, tagged[0], variables[tagged[0].name], before)
            elif tagged and tail:
                self._flush(before)
                with source.block(f"if {' and '.join(are_defaults[len(tail) :])}:"):
                    source.add(f"{self.out} += {end!r}")
                with source.block("else:"):
                    self._tagged_fields(structure, tagged, variables)
            elif tagged:
                self._flush(before)
                self._tagged_fields(structure, tagged, variables)
            elif self.flexible:
                self._add(before, "B", "0")
            self._flush(before)

    def _tail_of(self, fields: list[Field]) -> tuple[list[Field], bytes]:
        """Return the last fields that have empty defaults, from one of variable size on, and the bytes of these."""
        tail: list[Field] = []
        usual = b""
        for each in reversed(fields):
            data = self._bytes_of_default(each)
            if data is None:
                break
            tail.insert(0, each)
            usual = data + usual
        while tail and isinstance(tail[0].kind, Fixed):
            usual = usual[tail.pop(0).kind.size :]
        return tail, usual

    def _bytes_of_default(self, field: Field) -> bytes | None:
        """Return the bytes of a field's default; None without one, or if it is not empty."""
        kind, default = field.kind, field.default
        if default is ABSENT or (isinstance(kind, Array) and kind.is_shared):
            return None
        if isinstance(kind, Fixed):
            return struct.pack(f">{kind.code}", default)
        if is_structure(kind):
            return b"\xff" if default is None else None
        size = -1 if default is None else len(default)
        if size > 0:
            return None
        if self.flexible:
            return bytes([size + 1])
        return struct.pack(">h" if isinstance(kind, Sized) and kind.name == "string" else ">i", size)

    def _default(self, structure: Any, field: Field) -> str:
        return self.source.constant(f"{structure.__name__}_{field.name}", field.default)

    def _tagged_fields(self, structure: Any, tagged: list[Field], variables: dict[str, str]) -> None:
        source = self.source
        count, fields = source.name("count"), source.name("fields")
        source.add(f"{count} = 0; {fields} = b''")
        outer, self.out = self.out, source.name("out")
        for each in tagged:
            variable = variables[each.name]
            differs = f"{variable} != {self._default(structure, each)}"
            if each.default == ():  # a list may be as empty
                differs = f"{variable} is None or len({variable})"
            with source.field(each.name), source.block(f"if {differs}:"):
                if isinstance(each.kind, Fixed):
                    packed = f"{source.packer('BB' + each.kind.code)}({each.tag}, {each.kind.size}, {variable})"
                    source.add(f"{count} += 1; {fields} += {packed}")
                    continue
                source.add(f"{count} += 1; {self.out} = bytearray()")
                inner: Pending = []
                nullable = each.nullable_from <= self.version
                if is_structure(each.kind) and nullable:  # null is 0 here, not -1
                    source.add(f"if {variable} is None: {self.out}.append(0)")
                    with source.block("else:"):
                        self._present(each.kind, variable, inner)
                        self._flush(inner)
                else:
                    self._value(each.kind, nullable, variable, inner)
                self._flush(inner)
                source.add(f"{fields} += unsigned({each.tag}) + unsigned(len({self.out})) + {self.out}")
        self.out = outer
        source.add(f"{self.out} += unsigned({count}) + {fields}")

    def _only_tagged_field(self, structure: Any, field: Field, variable: str, pending: Pending) -> None:
        """Write the one tagged field of a structure with what is pending, in one call."""
        default = list(pending)
        with self.source.field(field.name), self.source.block(f"if {variable} != {self._default(structure, field)}:"):
            for number in (1, field.tag, field.kind.size):
                self._add(pending, "B", str(number))
            self._add(pending, field.kind.code, variable)
            self._flush(pending)
        with self.source.block("else:"):
            self._add(default, "B", "0")
            self._flush(default)

    def _add(self, pending: Pending, code: str, expression: str) -> None:
        pending.append((code, expression, self.source.place()))

    def _flush(self, pending: Pending, more: str = "") -> None:
        """Write what is pending, and then `more`, an expression of bytes."""
        source = self.source
        if not pending:
            if more:
                source.add(f"{self.out} += {more}")
            return
        code = "".join([code for code, _, _ in pending])
        values = [expression for _, expression, _ in pending]
        place = " or ".join(dict.fromkeys([path for _, _, path in pending]))
        if all(each.lstrip("-").isdecimal() for each in values):
            packed = repr(struct.pack(f">{code}", *map(int, values)))
        else:
            packed = f"{source.packer(code)}({', '.join(values)})"
        source.add(f"{self.out} += {packed}{more and f' + {more}'}", place)
        pending.clear()

    def _value(self, kind: Any, nullable: bool, value: str, pending: Pending) -> None:
        source = self.source
        if isinstance(kind, Fixed):
            self._add(pending, kind.code, value)
            return
        variable = source.name("value")
        if is_structure(kind) and not nullable:
            self._flush(pending)
            source.add(f"{variable} = {value}")
            self._structure(kind, variable, pending)
            return
        source.add(f"{variable} = {value}")
        if not nullable:
            self._present(kind, variable, pending)
            return
        before = list(pending)
        with source.block(f"if {variable} is None:"):
            is_text = isinstance(kind, Sized) and kind.name == "string"
            code, null = (
                ("b", "-1") if is_structure(kind) else ("B", "0") if self.flexible else ("h" if is_text else "i", "-1")
            )
            self._add(pending, code, null)
            self._flush(pending)
        with source.block("else:"):
            self._present(kind, variable, before)
            self._flush(before)

    def _present(self, kind: Any, variable: str, pending: Pending) -> None:
        """Write a variable that is not null: its length, or the mark of a structure, and its contents."""
        source = self.source
        if is_structure(kind):
            self._add(pending, "b", "1")
            self._structure(kind, variable, pending)
            return
        data = variable
        if isinstance(kind, Array):
            data = self._numbers(kind, variable)
            if kind.is_shared:
                once = self._packed_once(variable, data) if data else self._written_once(kind, variable)
                self._flush(pending, once)
                return
        elif kind.name == "string":
            source.add(f"{variable} = {variable}{f'[:{kind.longest}]' if kind.longest else ''}.encode()")
        elif kind.name == "records" and self.in_pieces:
            self._records(variable, pending)
            return
        if self.flexible:
            size = source.name("size")
            source.add(f"{size} = len({variable}) + 1")
            before = list(pending)
            with source.block(f"if {size} < 128:"):
                self._add(pending, "B", size)
                self._flush(pending, data)
            with source.block("else:"):
                self._flush(before, f"unsigned({size})" + (data and f" + {data}"))
        else:
            self._add(pending, "h" if isinstance(kind, Sized) and kind.name == "string" else "i", f"len({variable})")
            self._flush(pending, data)
        if isinstance(kind, Array) and not data:
            each = source.name("each")
            with source.block(f"for {each} in {variable}:"):
                inner: Pending = []
                self._value(kind.item, kind.item_nullable_from <= self.version, each, inner)
                self._flush(inner)

    def _records(self, variable: str, pending: Pending) -> None:
        """Write the length of records, and keep them as a piece."""
        source = self.source
        size = source.name("size")
        source.add(f"{size} = {variable}.size")
        if self.flexible:
            before = list(pending)
            with source.block(f"if {size} < 127:"):
                self._add(pending, "B", f"{size} + 1")
                self._flush(pending)
            with source.block("else:"):
                self._flush(before, f"unsigned({size} + 1)")
        else:
            self._add(pending, "i", size)
            self._flush(pending)
        with source.block(f"if {size}:"):
            source.add(f"parts.append(bytes(out)); parts.append({variable}); size += len(out) + {size}; out.clear()")

    def _keep_memo(self) -> None:
        if not self.has_memo:
            self.has_memo = True
            self.source.lines[_FIRST_LINE] += "; memo = {}"

    def _written_once(self, kind: Array, variable: str) -> str:
        """Return the name of the bytes of an array, the same object each time that it occurs, with their count."""
        source = self.source
        self._keep_memo()
        packed, outer = source.name("packed"), self.out
        source.add(f"{packed} = memo.get(id({variable}))")
        with source.block(f"if {packed} is None:"):
            source.add(f"{packed} = memo[id({variable})] = bytearray()")
            self.out = packed
            self._present(kind._replace(is_shared=False), variable, [])
            self.out = outer
        return packed

    def _packed_once(self, variable: str, data: str) -> str:
        """Return the name of the bytes of a tuple of numbers, with their count."""
        source = self.source
        self._keep_memo()
        packed = source.name("packed")
        count = f"unsigned(len({variable}) + 1)" if self.flexible else f"{source.packer('i')}(len({variable}))"
        source.add(f"{packed} = memo.get({variable})")
        source.add(f"if {packed} is None: {packed} = memo[{variable}] = {count} + {data}")
        return packed

    def _numbers(self, kind: Array, variable: str) -> str:
        """Return the expression of an array of numbers in one piece, "" for other items."""
        item = kind.item
        if not isinstance(item, Fixed) or item.name == "uuid":
            return ""
        one, many = self.source.packer(item.code), f"pack(f'>{{len({variable})}}{item.code}', *{variable})"
        return f"({one}({variable}[0]) if len({variable}) == 1 else {many})"
