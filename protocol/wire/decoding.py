"""Writes the decoder of a structure in one version.

Structures within it are inlined, and fields of fixed size that follow each other are read by one call. A generated
function has the variables `data`, `at` (the position), `end` and `left` (array items that the message may still have);
a tagged field has its own first three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.protocol.wire.fields import Array, Field, fields_of, has_records, is_structure, least_size, present
from barnabas.protocol.wire.source import Run, Source
from barnabas.protocol.wire.types import Fixed, Sized

Pending = list[tuple[str, int, str, str]]
"""Fields of fixed size that are not read yet: code, size, variable, path."""


def write_decoder(structure: Any, version: int, flexible: bool) -> Callable[[Any, int], Any]:
    """Return a function of the data and the limit of array items, which returns the value. More bytes are ignored."""
    return _Decoder(version, flexible).function(structure)


def write_reader(structure: Any, version: int, flexible: bool) -> Callable[[Any], Any]:
    """Return a function from data, which must end with the last field, to the value."""
    return _Decoder(version, flexible).function(structure, whole=True)


class _Decoder:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source()
        self.keeps_view = False
        self.data, self.at, self.end = "data", "at", "end"

    def function(self, structure: Any, *, whole: bool = False) -> Callable[..., Any]:
        source = self.source
        with source.block(f"def run(data{'' if whole else ', limit'}):"):
            self.keeps_view = has_records(structure)
            if not self.keeps_view:
                source.add("if type(data) is not bytes: data = bytes(data)")  # slices of bytes are cheaper than views
            head = 0 if structure.wire_head(self.version) is None else 2  # which the caller has read
            source.add(f"at = {head}; end = len(data); {'left = limit = end' if whole else 'left = limit'}")
            with source.block("try:"):
                value = self._structure(structure, top=True)
                if not whole:
                    source.add(f"return {value}")
            with source.block("except (DecodeError, IndexError, struct_error, UnicodeDecodeError) as error:"):
                source.add("raise located(error, PLACES) from None")
            if whole:
                source.add("if at != end: raise left_over(end - at)")
                source.add(f"return {value}")
        return source.function(f"<{structure.__name__}.decode version {self.version}>")

    def _structure(self, structure: Any, top: bool = False) -> str:
        """Read a structure; return the name of its variable."""
        source = self.source
        pending: Pending = []
        values: dict[str, str] = {}
        tagged: list[Field] = []
        for each in present(structure, self.version):
            if each.tag is not None:
                tagged.append(each)
                continue
            with source.field(each.name):
                values[each.name] = self._value(each.kind, each.nullable_from <= self.version, pending, each.name)
        if self.flexible:
            with source.field("tagged fields"):
                self._tagged_fields(structure, tagged, values, pending)
        self._flush(pending)
        made = source.name("made")
        source.add(f"{made} = new({source.constant(structure.__name__, structure)})")
        for each in fields_of(structure):
            value = values.get(each.name) or self._default(structure, each)
            if top and each.name == "version" and each.kind is None:
                value = str(self.version)
            source.add(f"{made}.{each.name} = {value}")
        return made

    def _default(self, structure: Any, field: Field) -> str:
        return self.source.constant(f"{structure.__name__}_{field.name}", field.default)

    def _tagged_fields(self, structure: Any, tagged: list[Field], values: dict[str, str], pending: Pending) -> None:
        source, data, at, end = self.source, self.data, self.at, self.end
        for each in tagged:
            values[each.name] = source.name(each.name)
            source.add(f"{values[each.name]} = {self._default(structure, each)}")
        count = self._byte(pending, "tags")
        with source.block(f"if {count}:"):
            tag, size, last = source.name("tag"), source.name("size"), source.name("last")
            self._long(count)
            source.add(f"{last} = -1")
            with source.block(f"for _ in range({count}):"):  # ends at the first missing byte, however large the count
                for number in (tag, size):
                    source.add(f"{number} = {data}[{at}]; {at} += 1")
                    self._long(number)
                source.add(f"if {tag} <= {last}: raise unordered({tag}, {last})")
                source.add(f"{last} = {tag}")
                source.add(f"if {size} > {end} - {at}: raise cut_short({size}, {end} - {at})")
                for each in tagged:
                    with source.block(f"if {tag} == {each.tag}:"):
                        self._tagged_field(each, size, values[each.name])
                source.add(f"{at} += {size}")

    def _tagged_field(self, field: Field, size: str, variable: str) -> None:
        source, outer = self.source, (self.data, self.at, self.end)
        outside, source.path[-1] = source.path[-1], field.name
        data, at, _ = outer
        if isinstance(field.kind, Fixed):  # in place
            source.add(f"if {size} != {field.kind.size}: raise sized({size}, {field.kind.size})")
            source.add(f"{variable}, = {source.unpacker(field.kind.code)}({data}, {at})")
            if field.kind.read:
                source.add(f"{variable} = {field.kind.read}({variable})")
            source.path[-1] = outside
            return
        self.data, self.at, self.end = source.name("data"), source.name("at"), source.name("end")
        source.add(f"{self.data} = {data}[{at}:{at} + {size}]; {self.at} = 0; {self.end} = {size}")
        pending: Pending = []
        nullable = field.nullable_from <= self.version
        if is_structure(field.kind) and nullable:  # null is 0 here, not -1
            source.add(f"{variable} = {self._byte(pending, field.name)}")
            source.add(f"if {variable} > 1: raise unmarked({variable})")
            with source.block(f"if {variable}:"):
                source.add(f"{variable} = {self._structure(field.kind)}")
            source.add(f"else: {variable} = None")
            value = variable
        else:
            value = self._value(field.kind, nullable, pending, field.name)
        self._flush(pending)
        source.add(f"if {self.at} != {size}: raise left_over({size} - {self.at})")
        source.add(f"{variable} = {value}")
        self.data, self.at, self.end = outer
        source.path[-1] = outside

    def _flush(self, pending: Pending) -> None:
        """Read the fields that are pending in one call."""
        if not pending:
            return
        source = self.source
        code = "".join([code for code, _, _, _ in pending])
        if code == "B":
            ((_, _, variable, path),) = pending
            source.add(f"{variable} = {self.data}[{self.at}]; {self.at} += 1", path)
        else:
            variables = ", ".join([variable for _, _, variable, _ in pending])
            run = Run(self.at, self.end, tuple([(size, path) for _, size, _, path in pending]))
            comma = "," if len(pending) == 1 else ""
            total = sum([size for _, size, _, _ in pending])
            unpack = source.unpacker(code)
            source.add(f"{variables}{comma} = {unpack}({self.data}, {self.at}); {self.at} += {total}", run)
        pending.clear()

    def _byte(self, pending: Pending, stem: str) -> str:
        """Read a byte, together with what is pending."""
        variable = self.source.name(stem)
        pending.append(("B", 1, variable, self.source.place()))
        self._flush(pending)
        return variable

    def _long(self, variable: str) -> None:
        """Read the rest of a varint whose first byte has been read."""
        self.source.add(f"if {variable} > 127: {variable}, {self.at} = read_unsigned({self.data}, {self.at} - 1)")

    def _length(self, pending: Pending, code: str, size: int) -> str:
        """Read a length or a count; below 0 is null."""
        if not self.flexible:
            variable = self.source.name("size")
            pending.append((code, size, variable, self.source.place()))
            self._flush(pending)
            return variable
        variable = self._byte(pending, "size")
        self._long(variable)
        self.source.add(f"{variable} -= 1")
        return variable

    def _value(self, kind: Any, nullable: bool, pending: Pending, stem: str) -> str:
        """Read a value; return its expression."""
        source = self.source
        variable = source.name(stem)
        if isinstance(kind, Fixed):
            pending.append((kind.code, kind.size, variable, source.place()))
            return f"{kind.read}({variable})" if kind.read else variable
        if is_structure(kind):
            if not nullable:
                self._flush(pending)
                return self._structure(kind)
            pending.append(("b", 1, variable, source.place()))
            self._flush(pending)
            source.add(f"if {variable} < 0: {variable} = None")
            with source.block("else:"):
                source.add(f"{variable} = {self._structure(kind)}")
            return variable
        is_text = isinstance(kind, Sized) and kind.name == "string"
        size = self._length(pending, "h", 2) if is_text else self._length(pending, "i", 4)
        what = "an array" if isinstance(kind, Array) else "a string" if is_text else "bytes"
        if not nullable:
            source.add(f"if {size} < 0: raise null({what!r})")
            self._present(variable, size, kind)
            return variable
        source.add(f"if {size} < 0: {variable} = None")
        with source.block("else:"):
            self._present(variable, size, kind)
        return variable

    def _present(self, variable: str, size: str, kind: Array | Sized) -> None:
        """Read what is not null."""
        if isinstance(kind, Array):
            self._array(variable, size, kind)
            return
        source, data, at, end = self.source, self.data, self.at, self.end
        after = source.name("after")
        source.add(f"{after} = {at} + {size}")
        source.add(f"if {after} > {end}: raise cut_short({size}, {end} - {at})")
        found = f"{data}[{at}:{after}]"
        if kind.name == "string":
            found = f"str({found}, 'utf-8')" if self.keeps_view else f"{found}.decode()"
        elif kind.name == "bytes" and self.keeps_view:
            found = f"bytes({found})"
        source.add(f"{variable} = {found}; {at} = {after}")

    def _array(self, variable: str, count: str, kind: Array) -> None:
        source, data, at, end = self.source, self.data, self.at, self.end
        item = kind.item
        least = least_size(item, self.version, self.flexible)
        source.add(
            f"if {count}{f' * {least}' if least > 1 else ''} > {end} - {at}: raise too_long({count}, {end} - {at})"
        )
        source.add(f"left -= {count}")
        source.add("if left < 0: raise too_many(limit)")
        if isinstance(item, Fixed) and item.name != "uuid" and not item.read:
            one = source.unpacker(item.code)
            many = f"unpack_from(f'>{{{count}}}{item.code}', {data}, {at})"
            source.add(f"{variable} = {one}({data}, {at}) if {count} == 1 else {many}; {at} += {count} * {item.size}")
            if not kind.is_tuple:
                source.add(f"{variable} = list({variable})")
            return
        append = source.name("append")
        source.add(f"{variable} = []; {append} = {variable}.append")
        with source.block(f"for _ in range({count}):"):
            pending: Pending = []
            value = self._value(item, kind.item_nullable_from <= self.version, pending, "item")
            self._flush(pending)
            source.add(f"{append}({value})")
        if kind.is_tuple:
            source.add(f"{variable} = tuple({variable})")
