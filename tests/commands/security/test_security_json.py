"""Records of users, ACLs, quotas and tokens as `barnabas log dump` prints them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.commands.log.metadata_json import metadata_json
from barnabas.protocol.metadata.frame import encode_frame
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.metadata.security_records import (
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
)
from tests.support.storage.security_records import SCRAM_SECRETS, acl_record, quota_record, scram_record, token_record


@pytest.mark.parametrize(
    ("record", "type_name", "data"),
    [
        (
            acl_record(),
            "ACCESS_CONTROL_ENTRY_RECORD",
            {
                "id": "AAAAAAAAAAAAAAAAAAAAAQ",
                "resourceType": 2,
                "resourceName": "orders",
                "patternType": 3,
                "principal": "User:alice",
                "host": "*",
                "operation": 3,
                "permissionType": 3,
            },
        ),
        (
            quota_record(user=None),
            "CLIENT_QUOTA_RECORD",
            {
                "entity": [{"entityType": "user", "entityName": None}],
                "key": "producer_byte_rate",
                "value": 1024.0,
                "remove": False,
            },
        ),
        (
            token_record(),
            "DELEGATION_TOKEN_RECORD",
            {
                "owner": "User:alice",
                "requester": "User:bob",
                "renewers": ["User:carol"],
                "issueTimestamp": 1000,
                "maxTimestamp": 9000,
                "expirationTimestamp": 2000,
                "tokenId": "token",
            },
        ),
        (
            RemoveAccessControlEntryRecord(bytes(16)),
            "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
            {"id": "AAAAAAAAAAAAAAAAAAAAAA"},
        ),
        (
            RemoveUserScramCredentialRecord("alice", 2),
            "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
            {"name": "alice", "mechanism": 2},
        ),
        (RemoveDelegationTokenRecord("t"), "REMOVE_DELEGATION_TOKEN_RECORD", {"tokenId": "t"}),
    ],
)
def test_a_record_has_kafkas_names(record: MetadataRecord, type_name: str, data: dict[str, Any]) -> None:
    assert metadata_json(encode_frame(record, 19)) == {"type": type_name, "version": 0, "data": data}


def test_salts_and_keys_are_hidden() -> None:
    found = metadata_json(encode_frame(scram_record(), 19))
    assert found["data"] == {
        "name": "alice",
        "mechanism": 1,
        "salt": "[hidden]",
        "storedKey": "[hidden]",
        "serverKey": "[hidden]",
        "iterations": 4096,
    }
    assert not any(secret.decode() in json.dumps(found) for secret in SCRAM_SECRETS)
