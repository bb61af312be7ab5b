# cython: language_level=3
"""New ints and named tuples. A function that returns a PyObject* returns a reference that the caller owns."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* (*tp_alloc)(PyTypeObject*, Py_ssize_t)
    void PyTuple_SET_ITEM(PyObject* target, Py_ssize_t index, PyObject* item)
    PyObject* PyLong_FromLongLong(long long value)
    void Py_INCREF(PyObject* object)


cdef inline PyObject* new_tuple(object named_tuple, Py_ssize_t size) except NULL:
    """Return an empty named tuple. Each item must be set before other code sees it. Raises MemoryError."""
    return (<PyTypeObject*> named_tuple).tp_alloc(<PyTypeObject*> named_tuple, size)


cdef inline PyObject* new_number(int64_t value) except NULL:
    """Return an int. Raises MemoryError."""
    cdef PyObject* number = PyLong_FromLongLong(value)
    if number == NULL:
        raise MemoryError
    return number


cdef inline int set_number(PyObject* target, Py_ssize_t index, int64_t value) except -1:
    """Set an item of a new tuple to an int. Raises MemoryError."""
    PyTuple_SET_ITEM(target, index, new_number(value))
    return 0


cdef inline void set_shared(PyObject* target, Py_ssize_t index, PyObject* item) noexcept:
    """Set an item of a new tuple to an object whose reference the caller keeps."""
    Py_INCREF(item)
    PyTuple_SET_ITEM(target, index, item)
