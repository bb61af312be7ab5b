# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""What a request's kernel reads and writes of its client: the client id, and the decisions about its permissions."""

from cpython.dict cimport PyDict_Check, PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.string cimport memcmp

from barnabas.broker.storage.kernels._slots cimport get, is_exactly, offset_of, put

from barnabas.broker.network.session import Session
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.protocol.topic_partition import TopicPartition

cdef extern from "Python.h":
    PyObject* Py_True
    const char* PyUnicode_AsUTF8AndSize(PyObject* text, Py_ssize_t* size) except NULL
    bint PyUnicode_CheckExact(PyObject* value)
    object PyUnicode_DecodeUTF8(const char* text, Py_ssize_t size, const char* errors)
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)

cdef Py_ssize_t SESSION_CLIENT_ID = offset_of(Session, "client_id")
cdef Py_ssize_t LOG_TOPIC_PARTITION = offset_of(ReadableLog, "topic_partition")
cdef PyObject* TOPIC_PARTITION_CLASS = <PyObject*> TopicPartition


cdef bint set_client_id(PyObject* session, const char* client_id, Py_ssize_t size) except -1:
    """Set the client id of a Session to a request's, -1 bytes for null. Returns False if it is not UTF-8."""
    cdef PyObject* known = get(session, SESSION_CLIENT_ID)
    cdef const char* text
    cdef Py_ssize_t known_size
    if size < 0:
        if known != <PyObject*> None:
            put(session, SESSION_CLIENT_ID, <PyObject*> None)
        return True
    if known != NULL and PyUnicode_CheckExact(known):
        text = PyUnicode_AsUTF8AndSize(known, &known_size)
        if known_size == size and memcmp(text, client_id, size) == 0:
            return True
    try:
        decoded = PyUnicode_DecodeUTF8(client_id, size, NULL)
    except UnicodeDecodeError:
        return False
    put(session, SESSION_CLIENT_ID, <PyObject*> decoded)
    return True


cdef PyObject* topic_name(PyObject* log) noexcept:
    """Return the name of the topic of a ReadableLog, borrowed; NULL if its topic partition is of another class."""
    cdef PyObject* topic_partition = get(log, LOG_TOPIC_PARTITION)
    if not is_exactly(topic_partition, TOPIC_PARTITION_CLASS):
        return NULL
    return PyTuple_GET_ITEM(topic_partition, 0)


cdef bint is_granted(object decisions, PyObject* topic) except -1:
    """Return whether an earlier decision allows the access. The handler decides the rest, and records denials.

    `decisions` is `read_topic` or `write_topic` of the client's SessionAccess.
    """
    return PyDict_Check(decisions) and PyDict_GetItemWithError(decisions, <object> topic) == Py_True
