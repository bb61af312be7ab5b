"""Compiled common cases of the log engine: appends and reads that need nothing unusual.

A kernel has no state of its own. It reads and writes the slots of the Python objects that have the state, under the
GIL and the log's lock, and does nothing before it knows that a case is common. Everything else is left to the Python
code, which is the reference and decides all errors.
"""
