"""Per-record work: each kernel as a Cython module (`_kernel`, `_scan`, ...) and as its plain Python twin.

`kernel`, `scan`, `cleaning` and `columns` select the compiled module if it was built, otherwise the twin; callers
import from these four only. A change in one implementation needs the same change in the other; both pass the same
tests. C that several compiled kernels share (varints, the walk over records, CRC-32C) is inline in `_varint.pxd`,
`_walk.pxd` and `_crc32c.h`. setup.py builds every `_*.pyx` here.
"""
