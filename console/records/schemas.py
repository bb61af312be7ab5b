"""SchemaRegistry: schemas by their id, from a registry with Confluent's HTTP API (Karapace, Apicurio and others too).

A record that was written with one begins with a zero byte and the id in four bytes.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import struct
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.error import URLError
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

import fastavro
from fastavro.schema import SchemaParseException
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.console.records.protobuf_schemas import SCHEMA_ERRORS, ProtobufSchema

logger = logging.getLogger(__name__)

MAGIC: Final = 0
PREFIX_BYTES: Final = 5
AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"

AVRO_ERRORS: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RecursionError,
    StopIteration,
    struct.error,
    SchemaParseException,
)
"""What fastavro raises for schemas and bytes that are not as they should be."""

_KEPT: Final = 1000
_TIMEOUT_S: Final = 5.0
_ANSWER_BYTES_MAX: Final = 4 << 20
_NOT_FOUND: Final = 404
_IMPORTS_MAX: Final = 50


class Schema(NamedTuple):
    """A schema. `type`: AVRO, PROTOBUF, JSON or "" for one that cannot be used; `avro` is parsed.

    `protobuf` None: the registry does not give the file descriptor, so fields are known by their numbers only.
    """

    type: str
    avro: Any = None
    protobuf: ProtobufSchema | None = None
    problem: str = ""


class SchemaRegistry:
    """Ids that were asked for are kept. `url` may contain a user and a password."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if parts.username is not None:
            login = f"{parts.username}:{parts.password or ''}".encode()
            self._headers["Authorization"] = "Basic " + base64.b64encode(login).decode()
        self._url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        self._schemas: dict[int, Schema] = {}

    async def load(self, contents: Iterable[bytes | None]) -> None:
        """Ask for the schemas that keys and values name, so that `schema_of` has them. Raises nothing."""
        wanted = {found for each in contents if (found := id_of(each)) is not None} - self._schemas.keys()
        for each in sorted(wanted)[:_KEPT]:
            schema = await asyncio.to_thread(self._ask, each)
            if schema is None:
                return  # the registry cannot be reached: the next page tries again
            if len(self._schemas) >= _KEPT:
                self._schemas.clear()
            self._schemas[each] = schema

    def schema_of(self, content: bytes) -> Schema | None:
        """Return the schema that a key or value names, None without one."""
        found = id_of(content)
        return None if found is None else self._schemas.get(found)

    def _ask(self, schema_id: int) -> Schema | None:
        path = f"/schemas/ids/{schema_id}"
        try:
            found = self._get(path)
            kind = found.get("schemaType") or AVRO
            return self._protobuf(path) if kind == PROTOBUF else parse_schema(kind, found["schema"])
        except URLError as error:
            if getattr(error, "code", None) == _NOT_FOUND:
                return Schema("", problem=f"the registry has no schema {schema_id}")
            logger.warning("the schema registry does not answer: %s", error)
            return None
        except (OSError, ValueError, KeyError, AttributeError) as error:
            logger.warning("the schema registry's answer about schema %d cannot be used: %s", schema_id, error)
            return None

    def _get(self, path: str) -> Any:
        """Return the answer's JSON. Raises OSError, ValueError."""
        with urlopen(Request(self._url + path, headers=self._headers), timeout=_TIMEOUT_S) as answer:
            return json.loads(answer.read(_ANSWER_BYTES_MAX))

    def _protobuf(self, path: str) -> Schema:
        """Return the schema with the files that it imports, by their descriptors."""
        imports: list[FileDescriptorProto] = []
        try:
            file = self._file(path, imports, set())
            return Schema(PROTOBUF, protobuf=ProtobufSchema(file, imports))
        except (OSError, AttributeError, *SCHEMA_ERRORS) as error:
            logger.info("the registry's Protobuf schema %s has no usable descriptor: %s", path, error)
            return Schema(PROTOBUF)

    def _file(self, path: str, imports: list[FileDescriptorProto], asked: set[str]) -> FileDescriptorProto:
        """Return a file, and append those that it imports and nobody `asked` for. Raises OSError, SCHEMA_ERRORS."""
        found = self._get(f"{path}?format=serialized")
        file = FileDescriptorProto.FromString(base64.b64decode(found["schema"], validate=True))
        file.name = file.name or "schema.proto"
        for each in found.get("references") or ():
            name = each["name"]
            if name in asked:
                continue
            asked.add(name)
            if len(asked) > _IMPORTS_MAX:
                raise ValueError(f"more than {_IMPORTS_MAX} files are imported")
            version = f"/subjects/{quote(each['subject'], safe='')}/versions/{int(each['version'])}"
            imported = self._file(version, imports, asked)
            imported.name = name  # as the importing file calls it
            imports.append(imported)
        return file


def id_of(content: bytes | None) -> int | None:
    """Return the id of the schema that a key or value may have been written with."""
    if content is None or len(content) < PREFIX_BYTES or content[0] != MAGIC:
        return None
    return int.from_bytes(content[1:PREFIX_BYTES])


def parse_schema(kind: str, text: str) -> Schema:
    """Return a schema as the registry stores it; one that cannot be used has a `problem`."""
    if kind != AVRO:
        return Schema(kind)
    try:
        parsed = fastavro.parse_schema(json.loads(text))
    except AVRO_ERRORS as error:
        return Schema("", problem=f"the Avro schema cannot be used: {error}")
    if _has_empty_items(parsed):
        return Schema("", problem="the Avro schema has items without bytes: a few bytes could mean billions of them")
    return Schema(AVRO, parsed)


def _has_empty_items(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(map(_has_empty_items, schema))
    if not isinstance(schema, dict):
        return False
    items = schema.get("items") if schema.get("type") == "array" else None
    if items is not None and _is_empty(items):
        return True
    inner = [schema.get("items"), schema.get("values"), *(each.get("type") for each in schema.get("fields", ()))]
    kind = schema.get("type")
    return any(map(_has_empty_items, inner)) or (isinstance(kind, dict | list) and _has_empty_items(kind))


def _is_empty(schema: Any) -> bool:
    """Whether a value of a schema may have no bytes. A named type, which may be any, counts as one that has some."""
    if not isinstance(schema, dict):
        return bool(schema == "null")
    if schema.get("type") == "record":
        return all(_is_empty(each.get("type")) for each in schema.get("fields", ()))
    return schema.get("type") == "null" or (schema.get("type") == "fixed" and schema.get("size") == 0)
