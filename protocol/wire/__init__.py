"""Structures of Kafka's wire format, declared once: the value, the wire and both codecs.

    class OffsetCommitPartition(Struct):
        partition: Int32
        offset: Int64
        leader_epoch: Int32 = since(6, default=-1)
        metadata: NullableString = None


    class OffsetCommitTopic(Struct):
        name: String = until(9, default="")
        topic_id: Uuid = since(10, default=ZERO_UUID)
        partitions: Sequence[OffsetCommitPartition]


    class OffsetCommitRequest(Request, flexible=8):
        group_id: String
        ...
        topics: Sequence[OffsetCommitTopic]

    request = OffsetCommitRequest.decode(9, body)
    body = request.encode(9)

One line is one field, in wire order. A field that some version lacks is declared by `since`, `until` or `tagged`, with
the value that it has in such a version. Constructors take keywords. The classes have slots and may be changed.

    classic     string, bytes: int16, int32 length (-1 null)      array: int32 count (-1 null)
    flexible    both, and arrays: unsigned varint length + 1 (0 null); tagged fields end every structure
    nullable structure: one byte, -1 for null

A codec is source text, generated and compiled for a class, a version and a direction at its first use (about 0.5 ms).
Decoders trust nothing: a length is checked against the bytes left before anything is allocated, a message has a limit
of array items, and every fault is a DecodeError that names the field.

    types         types of fields
    fields        the fields of a structure: `since`, `until`, `tagged`, and what a declaration says
    source        generated functions, and the place of an error in them
    decoding      writes decoders
    encoding      writes encoders
    pieces        the body of an answer whose records are sent from where they are stored
    structures    Struct, StoredAnswer and Request, the base classes; Encoded, for an answer that is encoded once
    records       RecordKey and RecordValue, the base classes of records in the logs of coordinators

Structures that a broker keeps and shares, as it does those of records, are `frozen`: mypy refuses their change, and
they are hashable. They take positions, too, with `kw_only=False`.

Source: Kafka's message generator. docs/decisions has the reasons for this design.
"""
