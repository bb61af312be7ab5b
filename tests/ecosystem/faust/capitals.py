"""A Faust application that writes each value of a topic to another one, in capitals.

capitals.py BOOTSTRAP INPUT OUTPUT
"""

import sys

import faust

bootstrap, source, target = sys.argv[1:]
app = faust.App(
    "capitals",
    broker=f"kafka://{bootstrap}",
    value_serializer="raw",
    key_serializer="raw",
    web_enabled=False,
    topic_replication_factor=1,
    topic_disable_leader=True,
    broker_commit_interval=0.5,
    # A member that was killed keeps its partitions until its session times out.
    broker_session_timeout=6.0,
    broker_heartbeat_interval=0.5,
)
capitals = app.topic(target)


@app.agent(app.topic(source))
async def write_capitals(lines):
    async for line in lines:
        # Awaited twice: for its place in the batch, and for the acknowledgement.
        await (await capitals.send(value=line.upper()))


sys.argv[1:] = ["worker", "--loglevel", "info"]
app.main()
