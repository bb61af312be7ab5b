"""ProtobufSchema: messages in Protobuf with the names of a schema, by Google's library.

Confluent's serializer writes the indexes of the message's type before the message: its place in the file, then that of
the type nested in it, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from google.protobuf.json_format import SerializeToJsonError as NotJsonError
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas.console.records.protobuf import read_varint

_WELL_KNOWN: Final = re.compile(r"google/protobuf/([a-z_]+)\.proto")

READ_ERRORS: Final = (ValueError, LookupError, TypeError, RecursionError, DecodeError, NotJsonError)
"""What `ProtobufSchema.read` raises for bytes that are not of the schema."""

SCHEMA_ERRORS: Final = (ValueError, LookupError, TypeError, ImportError, DecodeError)
"""What `ProtobufSchema` raises for files that do not fit together."""


class ProtobufSchema:
    """The message types of one file."""

    def __init__(self, file: FileDescriptorProto, imports: Sequence[FileDescriptorProto]) -> None:
        """`imports`: all files that this one needs, each after those that it needs; Google's own may be left out."""
        self._pool = DescriptorPool()
        self._known: set[str] = set()
        for each in (*imports, file):
            for name in each.dependency:
                self._add_well_known(name)
            if each.name not in self._known:
                self._known.add(each.name)
                self._pool.Add(each)
        self._file = self._pool.FindFileByName(file.name)
        self._types = [f"{file.package}.{each.name}" if file.package else each.name for each in file.message_type]

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the fields by name of a message behind its indexes, as in Protobuf's JSON. Raises READ_ERRORS."""
        count, position = read_varint(data, 0)
        indexes = []
        for _ in range(count >> 1):  # numbers are in zigzag
            index, position = read_varint(data, position)
            indexes.append(index >> 1)
        first, *nested = indexes or [0]
        kind = self._pool.FindMessageTypeByName(self._types[first])
        for index in nested:
            kind = kind.nested_types[index]
        message = GetMessageClass(kind).FromString(data[position:])
        found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=self._pool)
        return found

    def _add_well_known(self, name: str) -> None:
        found = _WELL_KNOWN.fullmatch(name)
        if found is None or name in self._known:
            return
        self._known.add(name)
        descriptor = import_module(f"google.protobuf.{found[1]}_pb2").DESCRIPTOR
        for each in descriptor.dependencies:
            self._add_well_known(each.name)
        self._pool.AddSerializedFile(descriptor.serialized_pb)
