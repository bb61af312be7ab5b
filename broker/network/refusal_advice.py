"""What to do about a request of Kafka's protocol for an API or a version that is not served: the end of a log line.

Kafka's protocol has no answer to such a request: its client cannot decode one, so the connection is closed, here as in
Kafka, and many clients show nothing but "EOF". The broker's log is the only place where the reason can be read.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS
from barnabas.protocol.messages.api_key import OWN_KEYS

_BETWEEN_BROKERS: Final = "it is sent between the nodes of a Kafka cluster; Barnabas joins no cluster: see standby.md"

_UNSERVED: Final = {
    **dict.fromkeys((4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82), _BETWEEN_BROKERS),
    64: "UnregisterBroker: there is one broker, which cannot be unregistered",
    80: "AddRaftVoter: this node is the only voter",
    81: "RemoveRaftVoter: this node is the only voter",
    **dict.fromkeys((76, 77, 78, 79, 90, 91, 92), "share groups (KIP-932): use a consumer group"),
    **dict.fromkeys((83, 84, 85, 86, 87), "share groups (KIP-932) keep their state by it"),
    **dict.fromkeys((88, 89), "streams groups (KIP-1071): set group.protocol=classic in the Streams application"),
}
"""By API key; a row of an API that is served since does not matter."""


def refusal_advice(api: int, version: int) -> str:
    """Return why Kafka's API or version is not served, and what to do."""
    for served in (*KAFKA_APIS, *OWN_APIS):
        if served.key == api:
            highest = served.highest_for(unstable=False)
            if version < served.lowest:
                what = "update the client"
            elif version == highest + served.is_unstable:
                what = "Kafka holds the next one back as unstable; unstable.api.versions.enable=true serves it"
            else:
                what = "the client has to ask ApiVersions for them first"
            return f"{served.key.label} is served in versions {served.lowest} to {highest}: {what}"
    if api in OWN_KEYS:
        return "it is an API of Barnabas' own that this version does not have: update the broker"
    advice = _UNSERVED.get(api, "it is no API of Kafka 4.3")
    return advice if 0 <= api < 256 else f"{advice}: does the client speak Kafka's protocol?"
