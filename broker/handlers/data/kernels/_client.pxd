# cython: language_level=3
"""What a request's kernel reads and writes of its client: see _client.pyx."""

from cpython.object cimport PyObject


cdef bint set_client_id(PyObject* session, const char* client_id, Py_ssize_t size) except -1
cdef PyObject* topic_name(PyObject* log) noexcept
cdef bint is_granted(object decisions, PyObject* topic) except -1
