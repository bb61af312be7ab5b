"""The group coordinator: groups of both protocols, and the offsets that they commit to `__consumer_offsets`.

`coordinator` owns the parts. `registry` has the groups by id; `classic` and `consumer` serve them; `offsets` has the
committed offsets; `log` writes the topic. Everything runs in the event loop, except reading the topic at a start.
"""
