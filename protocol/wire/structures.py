"""The base classes of structures: Struct, StoredAnswer for one with records, and Request for what a client asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, dataclass_transform

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.wire.fields import LATEST, Array, Field, fields_of, note_of, since, tagged, until, unwired

if TYPE_CHECKING:
    from barnabas.protocol.messages.api_key import ApiKey
    from barnabas.protocol.wire.pieces import Pieces

MAX_ITEMS: Final = 50_000
"""Limit of array items in one request: each takes 5 to 17 us of the event loop, existing or not."""

MAX_ANSWER_ITEMS: Final = 2_000_000
"""Limit of those in an answer: Metadata has about eight for each partition of a cluster."""


def _construct(self: Struct, *values: Any, **fields: Any) -> None:
    _write_init(type(self))(self, *values, **fields)


def _compare(self: Struct, other: object) -> bool:
    return bool(_write_comparison(type(self))[0](self, other))


def _hash(self: Struct) -> int:
    return int(_write_comparison(type(self))[1](self))


@dataclass_transform(kw_only_default=True, field_specifiers=(since, until, tagged, unwired))
class StructType(type):
    """Makes slots of the annotations of a class body, and keeps what they and their defaults say.

    A class costs 9 us at import, a dataclass forty times as much: a start loads hundreds.
    """

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> Any:
        """Options: see __init__."""
        annotations: dict[str, str] = body.get("__annotations__", {})
        if not all(isinstance(each, str) for each in annotations.values()) or "__annotate_func__" in body:
            raise TypeError(f"the module of {name} lacks `from __future__ import annotations`")
        own = {each: text for each, text in annotations.items() if not text.startswith("ClassVar[")}
        methods = {"encode", "decode", "pieces", "replaced", "as_dict", "to_bytes", "from_bytes"}
        if reserved := sorted(methods & own.keys()):
            raise TypeError(f"{name} has a field {reserved[0]}, which is a method of structures")
        defaults = {each: body.pop(each) for each in own if each in body}
        base = bases[0] if bases else None
        body["__slots__"] = tuple(own)
        body["wire_annotations"] = getattr(base, "wire_annotations", {}) | own
        body["wire_defaults"] = getattr(base, "wire_defaults", {}) | defaults
        body.setdefault("__init__", _construct)  # not that of a base class, which may have been generated already
        if options.get("frozen"):
            body.setdefault("__eq__", _compare)
            body.setdefault("__hash__", _hash)
        return type.__new__(mcs, name, bases, body)

    def __init__(
        cls,
        name: str,
        bases: tuple[type, ...],
        body: dict[str, Any],
        flexible: int = LATEST,
        kw_only: bool = True,
        frozen: bool = False,
        api: int | None = None,
        number: int | None = None,
        newest: int = 0,
    ) -> None:
        """`flexible`: the first flexible version of a message; structures within it are as the message.

        `frozen`: values may be shared and are hashable, because nothing changes them, which mypy sees to.
        `api`: key of a request's API. `number`: the type of a record's key; `newest`: the last version of its value.
        """
        super().__init__(name, bases, body)
        cls.flexible_from = flexible
        if api is not None:
            cls.api_key = api
        if number is not None:
            cls.number = number
        cls.newest = newest
        for answer in getattr(body.get("__orig_bases__", (None,))[0], "__args__", ()):  # Request[Answer]
            cls.answer_type = answer
        cls.wire_fields: Any = None  # until they are asked for
        cls.is_keyword_only = kw_only
        cls._decoders: dict[int, Callable[[Any, int], Any]] = {}
        cls._readers: dict[int | bytes, Callable[[Any], Any]] = {}
        cls._encoders: dict[int, Callable[[Any], bytes]] = {}


class Struct(metaclass=StructType):
    """A structure. Equal to another of its class with the same on the wire."""

    flexible_from: ClassVar[int]
    wire_annotations: ClassVar[dict[str, str]]
    """The text of each field's type."""
    wire_defaults: ClassVar[dict[str, Any]]
    """Defaults of fields, and notes."""

    @classmethod
    def decode(cls, version: int, data: bytes | memoryview, max_items: int = MAX_ITEMS) -> Self:
        """Return the value of a message's bytes. Bytes after the last field are ignored, as in Kafka.

        Raises DecodeError, which names the field.
        """
        value: Self = cls._decoder(version)(data, max_items)
        return value

    @classmethod
    def decode_whole(cls, version: int, data: bytes | memoryview) -> Self:
        """Return the value of bytes that must end with the last field. Raises DecodeError."""
        value: Self = cls._reader(version)(data)
        return value

    def encode(self, version: int) -> bytes:
        """Return the bytes of a message. Raises ValueError, which names the field, for a value that has none."""
        encoders = type(self)._encoders
        encoder = encoders.get(version)
        if encoder is None:
            from barnabas.protocol.wire.encoding import write_encoder  # here: a start encodes nothing

            encoder = encoders[version] = write_encoder(type(self), version, version >= type(self).flexible_from)
        return encoder(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields' values by name, in wire order. Structures within it stay as they are."""
        return {name: getattr(self, name) for name in self.wire_annotations}

    def replaced(self, **fields: Any) -> Self:
        """Return a copy with other values of these fields."""
        return type(self)(**self.as_dict() | fields)

    @classmethod
    def wire_head(cls, version: int) -> int | None:
        """Return the int16 before the fields, None if there is none."""
        return None

    @classmethod
    def _reader(cls, version: int) -> Callable[[Any], Any]:
        reader = cls._readers.get(version)
        if reader is None:
            from barnabas.protocol.wire.decoding import write_reader  # as below

            reader = cls._readers[version] = write_reader(cls, version, version >= cls.flexible_from)
        return reader

    @classmethod
    def _decoder(cls, version: int) -> Callable[[Any, int], Any]:
        decoder = cls._decoders.get(version)
        if decoder is None:
            from barnabas.protocol.wire.decoding import write_decoder  # here: a start decodes nothing

            decoder = cls._decoders[version] = write_decoder(cls, version, version >= cls.flexible_from)
        return decoder

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _comparable(each, self) == _comparable(each, other)
            for each in fields_of(type(self))
            if each.kind is not None
        )

    __hash__ = None  # type: ignore[assignment] # fields may change

    def __repr__(self) -> str:
        fields = [
            f"{each.name}={'[hidden]' if getattr(each.kind, 'is_secret', False) else repr(getattr(self, each.name))}"
            for each in fields_of(type(self))
        ]
        return f"{type(self).__qualname__}({', '.join(fields)})"


class StoredAnswer(Struct):
    """An answer with records that stay where they are stored: see `types.StoredRecords`."""

    _pieces_encoders: ClassVar[dict[int, Callable[[Any], Pieces]]]

    def __init_subclass__(cls) -> None:
        cls._pieces_encoders = {}

    def pieces(self, version: int) -> Pieces:
        """Return the bytes of a message, with its records where they are. Raises ValueError as `encode`.

        `encode` is for records in memory.
        """
        encoders = self._pieces_encoders
        encoder = encoders.get(version)
        if encoder is None:
            from barnabas.protocol.wire.encoding import write_pieces_encoder  # here: as in `encode`

            encoder = encoders[version] = write_pieces_encoder(type(self), version, version >= self.flexible_from)
        return encoder(self)


Answer = TypeVar("Answer", bound=Struct)


class Request(Struct, Generic[Answer]):
    """The message of a request, and the type of its answer. What a version means is a property of its class."""

    api_key: ClassVar[ApiKey]
    answer_type: ClassVar[type[Struct]]

    version: int = unwired(default=LATEST)
    """The version in which it was received."""

    def refused(self, code: ErrorCode, message: str) -> Struct:
        """Return the answer that refuses the whole request, as Kafka's getErrorResponse."""
        raise NotImplementedError


def _comparable(field: Field, value: Struct) -> Any:
    """Return the value of a field; of an array a tuple, as its default is one."""
    found = getattr(value, field.name)
    return tuple(found) if isinstance(field.kind, Array) and found is not None else found


class Encoded:
    """An answer whose bytes are known: one that is the same for many requests is encoded once."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def encode(self, version: int) -> bytes:
        """Return the bytes, which are those of the version."""
        return self._data


def _write_init(structure: Any) -> Callable[..., None]:
    """Give a class a constructor with its fields as parameters, at the first use, and return it."""
    defaults = {name: note_of(declared).default for name, declared in structure.wire_defaults.items()}
    names = list(structure.wire_annotations)
    if not structure.is_keyword_only:
        names.sort(key=lambda name: name in defaults)
    space: dict[str, Any] = {f"default_{name}": value for name, value in defaults.items()}
    parameters = ["self", *(["*"] if structure.is_keyword_only and names else [])]
    parameters += [f"{name}=default_{name}" if name in defaults else name for name in names]
    body = "".join([f" self.{name} = {name}\n" for name in names]) or " pass"
    exec(f"def __init__({', '.join(parameters)}):\n{body}", space)
    init: Callable[..., None] = space["__init__"]
    init.__qualname__ = f"{structure.__qualname__}.__init__"  # for the TypeError of a missing field
    structure.__init__ = init
    return init


def _write_comparison(structure: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Give a frozen class `__eq__` and `__hash__` over its fields, at the first use, and return them."""
    fields = [f".{name}" for name in structure.wire_annotations]
    equal = "".join([f" and self{each} == other{each}" for each in fields])
    values = "".join([f"self{each}, " for each in fields])
    space: dict[str, Any] = {"structure": structure}
    exec(
        f"def __eq__(self, other):\n return type(other) is structure{equal}\n"
        f"def __hash__(self):\n return hash((structure, {values}))\n",
        space,
    )
    for name in ("__eq__", "__hash__"):
        setattr(structure, name, space[name])
    return space["__eq__"], space["__hash__"]
