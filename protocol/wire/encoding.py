"""Writes the encoder of a structure in one version.

Structures within it are inlined. Fields of fixed size that follow each other, with the length of what comes after
them, are packed by one call; where the length decides how it is written, each branch packs them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from barnabas.protocol.wire.fields import Array, Field, is_structure, present
from barnabas.protocol.wire.source import Source
from barnabas.protocol.wire.types import Fixed, Sized

_FIRST_LINE: Final = 1

Pending = list[tuple[str, str, str]]
"""Values of fixed size that are not written yet: code, expression, path."""


def write_encoder(structure: Any, version: int, flexible: bool) -> Callable[[Any], bytes]:
    """Return a function from a value to its bytes."""
    return _Encoder(version, flexible).function(structure)


class _Encoder:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source()
        self.out = "out"
        self.has_memo = False

    def function(self, structure: Any) -> Callable[[Any], bytes]:
        source = self.source
        with source.block("def run(value):"):
            source.add("out = bytearray()")
            with source.block("try:"):
                pending: Pending = []
                self._structure(structure, "value", pending)
                self._flush(pending)
                source.add("return bytes(out)")
            with source.block("except (struct_error, TypeError, AttributeError) as error:"):
                source.add("raise unwritable(error, PLACES) from error")
        return source.function(f"<{structure.__name__}.encode version {self.version}>")

    def _structure(self, structure: Any, value: str, pending: Pending) -> None:
        tagged: list[Field] = []
        for each in present(structure, self.version):
            if each.tag is not None:
                tagged.append(each)
                continue
            with self.source.field(each.name):
                self._value(each.kind, each.nullable_from <= self.version, f"{value}.{each.name}", pending)
        if not self.flexible:
            return
        if tagged:
            tagged.sort(key=lambda field: field.tag or 0)
            self._tagged_fields(structure, value, tagged, pending)
        else:
            self._add(pending, "B", "0")

    def _tagged_fields(self, structure: Any, value: str, tagged: list[Field], pending: Pending) -> None:
        source = self.source
        defaults = [source.constant(f"{structure.__name__}_{each.name}", each.default) for each in tagged]
        variables = [source.name(each.name) for each in tagged]
        for each, variable in zip(tagged, variables, strict=True):
            with source.field(each.name):
                source.add(f"{variable} = {value}.{each.name}")
        before = list(pending)
        are_defaults = " and ".join([f"{found} is {usual}" for found, usual in zip(variables, defaults, strict=True)])
        with source.block(f"if {are_defaults}:"):  # as nearly always: one byte, in the call of the fields before it
            self._add(pending, "B", "0")
            self._flush(pending)
        with source.block("else:"):
            self._flush(before)
            count, fields = source.name("count"), source.name("fields")
            source.add(f"{count} = 0; {fields} = b''")
            outer, self.out = self.out, source.name("out")
            for each, variable, default in zip(tagged, variables, defaults, strict=True):
                with source.field(each.name), source.block(f"if {variable} != {default}:"):
                    source.add(f"{count} += 1; {self.out} = bytearray()")
                    inner: Pending = []
                    self._value(each.kind, each.nullable_from <= self.version, variable, inner)
                    self._flush(inner)
                    source.add(f"{fields} += unsigned({each.tag}) + unsigned(len({self.out})) + {self.out}")
            self.out = outer
            source.add(f"{self.out} += unsigned({count}) + {fields}")

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
                self._flush(pending, self._packed_once(variable, data))
                return
        elif kind.name == "string":
            source.add(f"{variable} = {variable}{f'[:{kind.longest}]' if kind.longest else ''}.encode()")
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

    def _packed_once(self, variable: str, data: str) -> str:
        """Return the name of the bytes of a tuple of numbers, with their count."""
        source = self.source
        if not self.has_memo:
            self.has_memo = True
            source.lines[_FIRST_LINE] += "; memo = {}"
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
