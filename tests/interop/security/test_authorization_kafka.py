"""Apache Kafka's answers to the authorization table, and the recorded ones that `make test` compares ours with.

BARNABAS_TEST_RECORD_AUTHORIZATION=1 make interop ARGS="-k authorization_kafka"    records them again
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.support.authorization.rows import ROWS
from tests.support.authorization.table import (
    PASSWORD,
    STANDARD_AUTHORIZER,
    SUPER_USER,
    TOKEN_SECRET,
    answers,
    jaas,
    prepare,
    start_coordinators,
)
from tests.support.kafka.apache_kafka import Kafka

VERSION = "4.3.0"
RECORDED = Path(__file__).parents[2] / "broker" / "authorization" / "data" / f"kafka-{VERSION}.json"


def test_the_recorded_answers_are_those_of_kafka(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    credentials = f'username="{SUPER_USER}" password="{PASSWORD}"'
    kafka = Kafka(
        VERSION,
        tmp_path / "data",
        tmp_path / "scratch",
        listener_security_protocol_map="PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name="PLAINTEXT",
        sasl_mechanism_inter_broker_protocol="PLAIN",
        sasl_enabled_mechanisms="PLAIN",
        listener_name_plaintext_plain_sasl_jaas_config=jaas().replace("required", f"required {credentials}"),
        authorizer_class_name=STANDARD_AUTHORIZER,
        super_users=f"User:{SUPER_USER};User:ANONYMOUS",
        delegation_token_secret_key=TOKEN_SECRET,
        unstable_api_versions_enable="true",
        transaction_two_phase_commit_enable="true",
    )
    kafka.format()
    with kafka.running() as broker:
        prepare(broker.port)
        start_coordinators(broker.port)
        found = {row.name: answers(broker.port, row) for row in ROWS}
    if os.environ.get("BARNABAS_TEST_RECORD_AUTHORIZATION"):
        RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(RECORDED.read_text())
