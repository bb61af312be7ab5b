"""Environment variables of properties: BARNABAS_LOG_RETENTION_MS is log.retention.ms.

Some names are not properties: those of the commands and of tests, and those that Kubernetes and Docker links set for
every service named barnabas (BARNABAS_SERVICE_HOST, BARNABAS_PORT_9092_TCP).
"""

from __future__ import annotations

PREFIX = "BARNABAS_"
CONFIG_FILE = "BARNABAS_CONFIG"

# Read by the commands (bootstrap, command config, config, log level) and by protocol/records (kernel).
RESERVED = frozenset(
    {"BARNABAS_BOOTSTRAP", "BARNABAS_COMMAND_CONFIG", CONFIG_FILE, "BARNABAS_LOG_LEVEL", "BARNABAS_KERNEL"}
)
# Properties of clients, which the commands read. A broker that is started in the same shell must not take them for its
# own: an unprefixed sasl.jaas.config has no effect on it, and the others are not a broker's.
CLIENT_ONLY = frozenset(
    {
        "BARNABAS_SASL_JAAS_CONFIG",
        "BARNABAS_SASL_LOGIN_CALLBACK_HANDLER_CLASS",
        "BARNABAS_SASL_LOGIN_CONNECT_TIMEOUT_MS",
        "BARNABAS_SASL_LOGIN_READ_TIMEOUT_MS",
        "BARNABAS_SASL_MECHANISM",
        "BARNABAS_SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID",
        "BARNABAS_SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET",
        "BARNABAS_SASL_OAUTHBEARER_SCOPE",
        "BARNABAS_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL",
        "BARNABAS_SASL_PASSWORD",
        "BARNABAS_SASL_USERNAME",
        "BARNABAS_SECURITY_PROTOCOL",
        "BARNABAS_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM",
    }
)
# Set by our tests for the processes that they start; a broker among them inherits it.
RESERVED_PREFIX = "BARNABAS_TEST_"
_OF_TESTS = frozenset({"BARNABAS_INTEROP"})


def variable_of(property_name: str) -> str:
    """Return the environment variable of a property: log.retention.ms -> BARNABAS_LOG_RETENTION_MS."""
    return PREFIX + property_name.upper().replace(".", "_").replace("-", "_")


def is_reserved(variable: str) -> bool:
    """Return whether a BARNABAS_ variable is never a property."""
    return (
        variable in RESERVED or variable in CLIENT_ONLY or variable in _OF_TESTS or variable.startswith(RESERVED_PREFIX)
    )


def is_service_link(variable: str) -> bool:
    """Return whether Kubernetes or Docker set the variable for a service named barnabas or barnabas-something.

    Kafka's images had this bug: for a service named kafka, KAFKA_PORT became a setting. The forms are
    ..._SERVICE_HOST, ..._SERVICE_PORT[_NAME], ..._PORT and ..._PORT_<number>_TCP|UDP|SCTP[_PROTO|_PORT|_ADDR]. Call it
    only for variables that are not properties.
    """
    words = variable.split("_")[1:]
    if words[-1:] == ["PORT"] or words[-2:] == ["SERVICE", "HOST"]:
        return True
    for index, word in enumerate(words):
        if word == "PORT" and index and words[index - 1] == "SERVICE":
            return True
        if word == "PORT" and words[index + 1 : index + 2] and words[index + 1].isdigit():
            return words[index + 2 : index + 3] in (["TCP"], ["UDP"], ["SCTP"])
    return False
