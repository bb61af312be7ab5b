"""Which environment variable names which property: BARNABAS_LOG_RETENTION_MS is log.retention.ms.

Some names are not properties: those that the commands read themselves, those of tests, and those that Kubernetes and
Docker links set for every service that happens to be called barnabas (BARNABAS_SERVICE_HOST, BARNABAS_PORT_9092_TCP).
"""

from __future__ import annotations

PREFIX = "BARNABAS_"
CONFIG_FILE = "BARNABAS_CONFIG"

# Read by the commands (bootstrap, config, log level) and by protocol/records (kernel).
RESERVED = frozenset({"BARNABAS_BOOTSTRAP", CONFIG_FILE, "BARNABAS_LOG_LEVEL", "BARNABAS_KERNEL"})
# What our tests say to the processes that they start; a broker among them inherits it.
RESERVED_PREFIX = "BARNABAS_TEST_"
_OF_TESTS = frozenset({"BARNABAS_INTEROP"})


def variable_of(property_name: str) -> str:
    """The environment variable of a property: log.retention.ms -> BARNABAS_LOG_RETENTION_MS."""
    return PREFIX + property_name.upper().replace(".", "_").replace("-", "_")


def is_reserved(variable: str) -> bool:
    """True for a BARNABAS_ variable that is never a property."""
    return variable in RESERVED or variable in _OF_TESTS or variable.startswith(RESERVED_PREFIX)


def is_service_link(variable: str) -> bool:
    """True for what Kubernetes and Docker set on their own for a service named barnabas or barnabas-something.

    Kafka's images fell into this trap: a service called kafka made KAFKA_PORT a setting. The forms are
    ..._SERVICE_HOST, ..._SERVICE_PORT[_NAME], ..._PORT and ..._PORT_<number>_TCP|UDP|SCTP[_PROTO|_PORT|_ADDR]. Ask only
    about variables that name no property.
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
