# cython: language_level=3
"""Deferred without Python frames: four of a request's calls, if it waits. Twin of broker/network/deferred.py."""

from barnabas.protocol.errors import BrokerError, without_frames


cdef class Deferred:
    """A value that arrives once, or never (`cancel`). At most one callback, set before or after the value arrives."""

    cdef object _callback
    cdef object _on_cancel
    cdef object _value
    cdef bint _resolved
    cdef bint _cancelled

    def __init__(self, on_cancel=None):
        """`on_cancel` is called when the value is no longer needed (the client has disconnected)."""
        self._on_cancel = on_cancel

    def __class_getitem__(cls, _):
        return cls

    @property
    def done(self):
        """Whether the value has arrived or is no longer needed."""
        return self._resolved or self._cancelled

    @property
    def value(self):
        """The value, which has arrived before a callback was set."""
        if not self._resolved:
            raise RuntimeError("a deferred answer has no value yet")
        return self._value

    def resolve(self, value):
        """Pass the value to the callback. After `cancel` it is dropped."""
        if self._cancelled:
            return
        if self._resolved:
            raise RuntimeError("a deferred answer was resolved twice")
        self._resolved = True
        if isinstance(value, BrokerError):
            without_frames(value)
        self._on_cancel = None
        callback = self._callback
        if callback is not None:
            self._callback = None
            callback(value)
        else:
            self._value = value

    def then(self, callback):
        """Call `callback` with the value, now or when it arrives."""
        if self._resolved:
            callback(self._value)
        else:
            self._callback = callback

    def cancel(self):
        """Drop the callback and call `on_cancel`. Does nothing once the value has arrived."""
        if not (self._resolved or self._cancelled):
            self._cancelled = True
            self._callback = None
            on_cancel = self._on_cancel
            self._on_cancel = None
            if on_cancel is not None:
                on_cancel()
