"""Frames of the client's side: read by the broker's side, and answers as brokers send them."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka import codec
from barnabas.protocol.kafka.client_codec import read_answer, request_frame
from barnabas.protocol.messages.cluster.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.wire.structures import Request, Struct

ID = -7
METADATA = MetadataResponse(cluster_id="a cluster")
VERSIONS = ApiVersionsResponse(apis=[ApiVersionRange(api=18, min_version=0, max_version=4)])


@pytest.mark.parametrize(
    ("version", "request_", "answer"),
    [
        *((version, MetadataRequest.of_names(["é"]), METADATA) for version in (4, 9)),
        *((version, ApiVersionsRequest(client="me", client_version="1"), VERSIONS) for version in (0, 3)),
    ],
)
def test_the_broker_reads_a_request_and_the_client_its_answer(
    version: int, request_: Request[Struct], answer: Struct
) -> None:
    frame = request_frame(version, ID, "cliént".encode(), request_)

    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header = codec.read_request(memoryview(frame)[4:])
    assert (header.api, header.version, header.correlation_id, header.client_id) == (
        request_.api_key,
        version,
        ID,
        "cliént",
    )
    assert codec.decode_body(header).encode(version) == request_.encode(version)
    data, _ = codec.encode_response(header, answer)
    assert read_answer(type(request_), version, ID, memoryview(data)[4:]) == answer


def test_tagged_fields_of_an_answers_header_are_skipped() -> None:
    answer = ID.to_bytes(4, "big", signed=True) + b"\x01\x05\x02xy" + METADATA.encode(9)

    assert read_answer(MetadataRequest, 9, ID, memoryview(answer)) == METADATA


def test_an_older_broker_refuses_api_versions_in_version_0() -> None:
    refusal = ApiVersionsResponse(error=ErrorCode.UNSUPPORTED_VERSION, apis=VERSIONS.apis)
    answer = ID.to_bytes(4, "big", signed=True) + refusal.encode(0)

    assert read_answer(ApiVersionsRequest, 4, ID, memoryview(answer)) == refusal


def test_a_cut_or_foreign_answer_is_a_decode_error() -> None:
    answer = ID.to_bytes(4, "big", signed=True) + b"\x01\x05\x02xy" + METADATA.encode(9)

    for size in range(len(answer)):
        with pytest.raises(DecodeError):
            read_answer(MetadataRequest, 9, ID, memoryview(answer)[:size])
    with pytest.raises(DecodeError, match="correlation id -7, not 8"):
        read_answer(MetadataRequest, 9, 8, memoryview(answer))
