"""Users, ACLs, quotas and tokens in the image: replay, sharing of unchanged maps, and Kafka's order in a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.metadata.errors import ReplayError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.snapshot_file import snapshot_records
from barnabas.broker.metadata.security.builder import SecurityBuilder
from barnabas.broker.metadata.security.image import SecurityImage
from barnabas.protocol.metadata.records import ConfigRecord, MetadataRecord, ProducerIdsRecord
from barnabas.protocol.metadata.security_records import (
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    SecurityRecord,
)
from tests.support.storage.security_records import acl_record, quota_record, scram_record, token_record

ImageOf = Callable[[Sequence[MetadataRecord]], MetadataImage]


def image_of(*records: SecurityRecord) -> SecurityImage:
    builder = SecurityBuilder(SecurityImage())
    for record in records:
        builder.apply(record)
    return builder.build()


def test_the_last_record_of_an_object_counts() -> None:
    image = image_of(
        acl_record(1, name="a"),
        acl_record(2, name="b"),
        acl_record(1, name="c"),
        scram_record(iterations=4096),
        scram_record(mechanism=2),
        scram_record(iterations=8192),
        quota_record(value=1.0, client_id="c", user="u"),
        quota_record(value=2.0, user="u", client_id="c"),
        token_record(expires_ms=2_000),
        token_record(expires_ms=3_000),
    )
    assert [acl.resource_name for acl in image.acls.values()] == ["c", "b"]
    assert [(*key, value.iterations) for key, value in image.scram.items()] == [("alice", 1, 8192), ("alice", 2, 4096)]
    assert image.quotas == {(("client-id", "c"), ("user", "u")): {"producer_byte_rate": 2.0}}
    assert [(token.token_id, token.expires_ms) for token in image.tokens.values()] == [("token", 3_000)]


def test_removals_leave_nothing() -> None:
    image = image_of(
        acl_record(1),
        scram_record(),
        quota_record(),
        token_record(),
        RemoveAccessControlEntryRecord((1).to_bytes(16, "big")),
        RemoveUserScramCredentialRecord("alice", 1),
        quota_record(remove=True),
        RemoveDelegationTokenRecord("token"),
    )
    assert image == SecurityImage()


@pytest.mark.parametrize(
    "record", [RemoveAccessControlEntryRecord(bytes(16)), RemoveUserScramCredentialRecord("alice", 2)]
)
def test_the_removal_of_an_unknown_acl_or_credential_stops_the_replay(record: SecurityRecord) -> None:
    with pytest.raises(ReplayError, match="which does not exist"):
        image_of(acl_record(1), scram_record(mechanism=1), record)


def test_the_removal_of_an_unknown_token_or_quota_is_ignored() -> None:
    assert image_of(RemoveDelegationTokenRecord("t"), quota_record(remove=True)) == SecurityImage()


def test_an_image_shares_the_maps_that_did_not_change() -> None:
    before = image_of(acl_record(1), scram_record(), quota_record(), token_record())
    builder = SecurityBuilder(before)
    builder.apply(acl_record(2))
    after = builder.build()
    assert (len(before.acls), len(after.acls)) == (1, 2)
    assert after.scram is before.scram
    assert after.quotas is before.quotas
    assert after.tokens is before.tokens
    assert SecurityBuilder(before).build() is before


def test_a_snapshot_has_kafkas_order(image_of: ImageOf) -> None:
    history: list[MetadataRecord] = [token_record(), scram_record(), acl_record(), quota_record()]
    image = image_of([*history, ProducerIdsRecord(1, 1, 1000), ConfigRecord(4, "", "log.retention.ms", "5")])
    assert [type(record).__name__ for record in snapshot_records(image)] == [
        "ConfigRecord",
        "ClientQuotaRecord",
        "ProducerIdsRecord",
        "AccessControlEntryRecord",
        "UserScramCredentialRecord",
        "DelegationTokenRecord",
    ]


NAMES = st.sampled_from(["a", "b"])
RECORDS = st.one_of(
    st.builds(lambda number, name: acl_record(number, name=name), st.integers(1, 3), NAMES),
    st.builds(lambda number: RemoveAccessControlEntryRecord(number.to_bytes(16, "big")), st.integers(1, 3)),
    st.builds(scram_record, NAMES, st.integers(1, 2), st.integers(4096, 4098)),
    st.builds(RemoveUserScramCredentialRecord, NAMES, st.integers(1, 2)),
    st.builds(
        lambda user, value, remove: quota_record(value=value, user=user, remove=remove),
        st.none() | NAMES,
        st.sampled_from([1.0, 2.0]),
        st.booleans(),
    ),
    st.builds(token_record, NAMES, st.integers(1, 3)),
    st.builds(RemoveDelegationTokenRecord, NAMES),
)


@given(st.lists(RECORDS, max_size=20))
def test_a_snapshot_rebuilds_the_image_after_any_history(history: list[SecurityRecord]) -> None:
    builder = ImageBuilder(MetadataImage())
    for record in history:
        try:
            builder.apply(record)
        except ReplayError:
            continue
    image = builder.build()
    again = ImageBuilder(MetadataImage())
    for rebuilding in snapshot_records(image):
        again.apply(rebuilding)
    assert again.build() == image
