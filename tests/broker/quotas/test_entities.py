"""Which quota applies to a user and a client id, in Kafka's order."""

from __future__ import annotations

from barnabas.broker.metadata.security.image import quota_entity
from barnabas.broker.quotas.entities import CLIENT_ID_CHARACTERS_MAX, QuotaKind, QuotaTable, Sharing

ORDER: list[tuple[list[tuple[str, str | None]], Sharing]] = [
    ([("user", "alice"), ("client-id", "app")], Sharing("alice", "app")),
    ([("user", "alice"), ("client-id", None)], Sharing("alice", "app")),
    ([("user", "alice")], Sharing("alice", "")),
    ([("user", None), ("client-id", "app")], Sharing("alice", "app")),
    ([("user", None), ("client-id", None)], Sharing("alice", "app")),
    ([("user", None)], Sharing("alice", "")),
    ([("client-id", "app")], Sharing("", "app")),
    ([("client-id", None)], Sharing("", "app")),
]
OTHERS = {
    quota_entity([("user", "bob")]): {"producer_byte_rate": 1.0},
    quota_entity([("user", "alice"), ("client-id", "other")]): {"producer_byte_rate": 2.0},
    quota_entity([("ip", "127.0.0.1")]): {"connection_creation_rate": 3.0},
    quota_entity([("ip", None)]): {"producer_byte_rate": 4.0},
}


def test_the_most_specific_entity_counts() -> None:
    for first in range(len(ORDER)):
        quotas = {
            quota_entity(entity): {"producer_byte_rate": float(n)} for n, (entity, _) in enumerate(ORDER) if n >= first
        }
        table = QuotaTable(QuotaKind.PRODUCE, OTHERS | quotas)
        assert table.find("alice", "app") == (ORDER[first][1], float(first))


def test_an_entity_without_a_value_of_the_kind_does_not_hide_another() -> None:
    quotas = {
        quota_entity([("user", "alice")]): {"consumer_byte_rate": 1.0},
        quota_entity([("client-id", None)]): {"producer_byte_rate": 2.0},
    }
    assert QuotaTable(QuotaKind.PRODUCE, quotas).find("alice", "app") == (Sharing("", "app"), 2.0)
    assert QuotaTable(QuotaKind.REQUEST, quotas).find("alice", "app") is None
    assert not QuotaTable(QuotaKind.REQUEST, quotas)


def test_an_empty_client_id_has_only_quotas_of_users() -> None:
    quotas = {quota_entity(entity): {"producer_byte_rate": float(n)} for n, (entity, _) in enumerate(ORDER)}
    assert QuotaTable(QuotaKind.PRODUCE, quotas).find("alice", "") == (Sharing("alice", ""), 2.0)
    without_users = {quota_entity([("client-id", None)]): {"producer_byte_rate": 1.0}}
    assert QuotaTable(QuotaKind.PRODUCE, without_users).find("alice", "") is None


def test_long_client_ids_share_a_quota_by_a_digest() -> None:
    table = QuotaTable(QuotaKind.PRODUCE, {quota_entity([("client-id", None)]): {QuotaKind.PRODUCE: 5.0}})

    def sharing(client_id: str) -> Sharing:
        found = table.find("alice", client_id)
        assert found is not None
        return found[0]

    exact = "x" * CLIENT_ID_CHARACTERS_MAX
    assert sharing(exact) == Sharing("", exact)
    first, second = sharing(exact + "1"), sharing(exact + "2")
    assert first != second
    assert first == sharing(exact + "1")
    assert {len(first.client_id), len(second.client_id)} == {64}
