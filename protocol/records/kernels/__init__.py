"""The per-record work: each kernel as a Cython module (`_kernel`, `_scan`, ...) and as its plain Python twin.

`kernel`, `scan`, `cleaning` and `columns` pick the compiled module where it was built and the twin elsewhere; callers
import from these four only. Both implementations pass the same tests.
"""
