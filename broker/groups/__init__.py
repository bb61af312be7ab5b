"""The group coordinator: consumer groups, and the offsets that they commit to `__consumer_offsets`.

`group_log` is the one door to that topic, `offsets_loader` reads it at start, `committed_offsets` is what it says of
offsets. All of it runs in the event loop but the reading.
"""
