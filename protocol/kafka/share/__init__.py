"""Codecs of share partitions, one module for each API: ShareGroupHeartbeat and its kin are in `groups`."""
