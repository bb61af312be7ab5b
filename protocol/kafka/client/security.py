"""ACLs (29-31), client quotas (48, 49) and SCRAM users (50, 51): what a cluster lets its users do.

The versions are served by Barnabas and by Apache Kafka since 3.3.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from barnabas.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from barnabas.protocol.messages.security.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

DESCRIBE_ACLS: Final = ClientApi(ApiKey.DESCRIBE_ACLS, 3, 3, DescribeAclsRequest, DescribeAclsResponse)
CREATE_ACLS: Final = ClientApi(ApiKey.CREATE_ACLS, 3, 3, CreateAclsRequest, CreateAclsResponse)
DELETE_ACLS: Final = ClientApi(ApiKey.DELETE_ACLS, 3, 3, DeleteAclsRequest, DeleteAclsResponse)
DESCRIBE_CLIENT_QUOTAS: Final = ClientApi(
    ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, 1, DescribeClientQuotasRequest, DescribeClientQuotasResponse
)
ALTER_CLIENT_QUOTAS: Final = ClientApi(
    ApiKey.ALTER_CLIENT_QUOTAS, 1, 1, AlterClientQuotasRequest, AlterClientQuotasResponse
)
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = ClientApi(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    0,
    0,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
ALTER_USER_SCRAM_CREDENTIALS: Final = ClientApi(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
)
