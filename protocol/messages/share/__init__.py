"""Neutral requests and responses of share partitions.

One module for each API, as in the folders of the same name in `protocol/kafka` and `broker/handlers`; the five APIs of
the states (`group_state`) share one.
"""
