"""The client's side of ACLs, SCRAM users and client quotas in this dialect, for `barnabas acl`, `user` and `quota`.

`broker_config_requests` has more of these calls.

The versions are served by Barnabas and by Apache Kafka since 3.3. Source: Kafka's message definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client_requests import answer_body, request_frame
from barnabas.protocol.kafka.cluster import describe_client_quotas as quotas_codec
from barnabas.protocol.kafka.cluster import describe_user_scram_credentials as scram_codec
from barnabas.protocol.kafka.hot_fields import NO_TAGS
from barnabas.protocol.kafka.schema import FLOAT64, INT8, INT16, INT32, NULLABLE_STRING, STRING, Array, Message, rows
from barnabas.protocol.kafka.security import (
    alter_client_quotas,
    alter_user_scram_credentials,
    create_acls,
    delete_acls,
    describe_acls,
)
from barnabas.protocol.kafka.security.acl_fields import ACL, ENTRY, PATTERN, of_resource
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaEntry,
    QuotaFilter,
)
from barnabas.protocol.messages.cluster.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
    ScramCredentialInfo,
    ScramUserResult,
)
from barnabas.protocol.messages.security.acls import (
    Acl,
    AclFilter,
    AclFilterResult,
    AclResult,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsResponse,
)
from barnabas.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    AlteredQuota,
    EntityPart,
    QuotaAlteration,
    QuotaOp,
)
from barnabas.protocol.messages.security.scram_credentials import AlteredScramUser, AlterUserScramCredentialsRequest

VERSIONS: Final = {
    ApiKey.DESCRIBE_ACLS: 3,
    ApiKey.CREATE_ACLS: 3,
    ApiKey.DELETE_ACLS: 3,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 1,
    ApiKey.ALTER_CLIENT_QUOTAS: 1,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.DESCRIBE_CLUSTER: 0,
    ApiKey.DESCRIBE_CONFIGS: 4,
}
"""The version in which each request is sent. All of them are flexible."""


class SecurityCall(NamedTuple):
    """One request, and the reader of its answer: `connection.ask(call.frame, call.read)`."""

    api: ApiKey
    body: bytes
    answer: Message

    def frame(self, correlation_id: int, client_id: str) -> bytes:
        """Return the request as a whole frame."""
        return request_frame(self.api, VERSIONS[self.api], correlation_id, client_id, NO_TAGS + self.body)

    def read(self, correlation_id: int, answer: bytes) -> Any:
        """Return the value of a response without its size field. Raises DecodeError."""
        body = answer_body(correlation_id, answer)
        body.tagged_fields()
        return self.answer.read(VERSIONS[self.api], memoryview(answer)[body.position :])


class _AllUsers(NamedTuple):
    users: None = None


class _Limit(NamedTuple):
    key: str
    value: float


def _coded(build: Callable[..., Any]) -> Callable[..., Any]:
    """Return a builder that gets the error as an ErrorCode; a code of a newer Kafka is UNKNOWN_SERVER_ERROR."""

    def built(error: int, **fields: Any) -> Any:
        try:
            code = ErrorCode(error)
        except ValueError:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        return build(error=code, **fields)

    return built


def _answer(build: Callable[..., Any], **fields: Any) -> Message:
    """Return the table of an answer that begins with the throttle time. Every version here is flexible."""
    return Message(0, build, _throttle_ms=INT32, **fields)


def _results(results: list[Any]) -> list[Any]:
    return results


def _acls(resources: list[list[Acl]], **outcome: Any) -> DescribeAclsResponse:
    return DescribeAclsResponse([acl for acls in resources for acl in acls], **outcome)


def _quota_entry(entity: Sequence[EntityPart], values: Sequence[_Limit]) -> QuotaEntry:
    return QuotaEntry(dict(entity), dict(values))


def _quotas(entries: list[QuotaEntry] | None, **outcome: Any) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(entries or [], **outcome)


_ERROR: Final[dict[str, Any]] = {"error": INT16, "message": NULLABLE_STRING}
_ITEM_ERROR: Final[dict[str, Any]] = {"_error": INT16, "_message": NULLABLE_STRING}

_DESCRIBED_ACLS: Final = _answer(
    _coded(_acls), **_ERROR, resources=rows(of_resource, **PATTERN, acls=rows(dict, **ENTRY))
)
_CREATED_ACLS: Final = _answer(_results, results=rows(_coded(AclResult), **_ERROR))
_DELETED_ACLS: Final = _answer(
    _results, results=rows(_coded(AclFilterResult), **_ERROR, deleted=rows(Acl, **_ITEM_ERROR, **ACL))
)
_DESCRIBED_USERS: Final = _answer(
    _coded(DescribeUserScramCredentialsResponse),
    **_ERROR,
    results=rows(
        _coded(ScramUserResult),
        user=STRING,
        **_ERROR,
        credentials=rows(ScramCredentialInfo, mechanism=INT8, iterations=INT32),
    ),
)
_ALTERED_USERS: Final = _answer(_results, results=rows(_coded(AlteredScramUser), user=STRING, **_ERROR))
_DESCRIBED_QUOTAS: Final = _answer(
    _coded(_quotas),
    **_ERROR,
    entries=Array(
        rows(_quota_entry, entity=alter_client_quotas.ENTITY, values=rows(_Limit, key=STRING, value=FLOAT64)).item,
        nullable_from=0,
    ),
)
_ALTERED_QUOTAS: Final = _answer(
    _results, results=rows(_coded(AlteredQuota), **_ERROR, entity=alter_client_quotas.ENTITY)
)


def describe_acls_call(selected: AclFilter) -> SecurityCall:
    """Request the ACLs that a filter selects. The answer is a DescribeAclsResponse."""
    return _call(ApiKey.DESCRIBE_ACLS, describe_acls.REQUEST, selected, _DESCRIBED_ACLS)


def create_acls_call(acls: Sequence[Acl]) -> SecurityCall:
    """Request the creation of ACLs. The answer is a list of AclResult."""
    return _call(ApiKey.CREATE_ACLS, create_acls.REQUEST, CreateAclsRequest(list(acls)), _CREATED_ACLS)


def delete_acls_call(filters: Sequence[AclFilter]) -> SecurityCall:
    """Request the deletion of the ACLs that filters select. The answer is a list of AclFilterResult."""
    return _call(ApiKey.DELETE_ACLS, delete_acls.REQUEST, DeleteAclsRequest(list(filters)), _DELETED_ACLS)


def describe_users_call() -> SecurityCall:
    """Request all SCRAM users. The answer is a DescribeUserScramCredentialsResponse."""
    return _call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, scram_codec.REQUEST, _AllUsers(), _DESCRIBED_USERS)


def alter_users_call(request: AlterUserScramCredentialsRequest) -> SecurityCall:
    """Request changes of SCRAM users. The answer is a list of AlteredScramUser."""
    codec = alter_user_scram_credentials.REQUEST
    return _call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, codec, request, _ALTERED_USERS)


def describe_quotas_call(filters: Sequence[QuotaFilter], *, strict: bool = False) -> SecurityCall:
    """Request the quotas of the entities that all filters select. The answer is a DescribeClientQuotasResponse."""
    request = DescribeClientQuotasRequest(list(filters), strict)
    return _call(ApiKey.DESCRIBE_CLIENT_QUOTAS, quotas_codec.REQUEST, request, _DESCRIBED_QUOTAS)


def alter_quotas_call(entity: Sequence[EntityPart], ops: Sequence[QuotaOp]) -> SecurityCall:
    """Request changes of one entity's quotas. The answer is a list with one AlteredQuota."""
    request = AlterClientQuotasRequest([QuotaAlteration(tuple(entity), tuple(ops))])
    return _call(ApiKey.ALTER_CLIENT_QUOTAS, alter_client_quotas.REQUEST, request, _ALTERED_QUOTAS)


def _call(api: ApiKey, request: Message, value: object, answer: Message) -> SecurityCall:
    return SecurityCall(api, request.write(VERSIONS[api], value), answer)
