"""Loading a log from its directory, recovering it after a crash, and rebuilding its producer state.

`log/opening.py` and the read-only loader come in here; truncation and the follower's append use `producer_rebuild`.
"""
