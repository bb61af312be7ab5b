"""Every version of every API that is served, with its messages loaded."""

from __future__ import annotations

from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS, Route, route_of


def _route(key: int, version: int) -> Route:
    found = route_of(key, version)
    assert found is not None
    return found


ROUTES = {
    (int(api.key), version): _route(api.key, version)
    for api in (*KAFKA_APIS, *OWN_APIS)
    for version in range(api.lowest, api.highest + 1)
}
"""By key and version."""
