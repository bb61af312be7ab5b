"""A member of a share group on librdkafka: `python -m tests.interop.clients.python.confluent_share`.

Arguments and behaviour as `tests/interop/clients/go/franzshare` describes them.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import AcknowledgeType, ShareConsumer

LIMIT_S = 60.0


def run(bootstrap: str, group: str, topic: str, count: int) -> None:
    consumer = ShareConsumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    )
    consumer.subscribe([topic])
    end = time.monotonic() + LIMIT_S
    while count > 0:
        if time.monotonic() > end:
            raise TimeoutError(f"{count} more records were expected")
        messages = consumer.poll(timeout=1)
        for message in messages:
            if message.error() is not None:
                print(message.error(), file=sys.stderr)
                continue
            value, deliveries = (message.value() or b"").decode(), message.delivery_count()
            print(value, deliveries, flush=True)
            if int(value) % 10 == 1 and deliveries == 1:
                consumer.acknowledge(message, AcknowledgeType.RELEASE)
            elif int(value) % 10 == 2:
                consumer.acknowledge(message, AcknowledgeType.REJECT)
            else:
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            count -= 1
        consumer.commit_sync(30)
    consumer.close()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
