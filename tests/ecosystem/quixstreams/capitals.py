"""A Quix Streams application that writes each value of a topic to another one, in capitals.

capitals.py BOOTSTRAP INPUT OUTPUT
"""

import sys

from quixstreams import Application

bootstrap, source, target = sys.argv[1:]
application = Application(
    broker_address=bootstrap,
    consumer_group="capitals",
    auto_offset_reset="earliest",
    commit_interval=0.5,
    # A member that was killed keeps its partitions until its session times out.
    consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
)
lines = application.dataframe(application.topic(source, value_deserializer="string"))
lines.apply(str.upper).to_topic(application.topic(target, value_serializer="string"))
application.run()
