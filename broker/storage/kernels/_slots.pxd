# cython: language_level=3
"""The `__slots__` of Python objects, read and written by their offset in memory.

An offset comes from the member descriptor that `__slots__` creates in the class, so it holds for objects of this class
and its subclasses. The caller checks the class of an object before it uses an offset: `is_exactly`.

    cdef Py_ssize_t LOG_END_OFFSET = offset_of(LogCore, "log_end_offset")      once, when the module is imported
    if is_exactly(core, LogCore): end = get_int64(core, LOG_END_OFFSET)        about 4 ns
    set_int64(core, LOG_END_OFFSET, end + 1)                                    about 8 ns

A read gives a borrowed reference that the next assignment to the slot may free. All functions need the GIL, and none
runs Python code except the destructor of a replaced object.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <structmember.h>

    #define BARNABAS_SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

    /* The offset of a slot; -1 where the descriptor is not that of a slot. */
    static inline Py_ssize_t barnabas_slot_offset(PyObject *descriptor) {
        PyMemberDef *member;
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return -1;
        member = ((PyMemberDescrObject *)descriptor)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : -1;
    }

    /* Steals the reference to `value`. */
    static inline void barnabas_slot_replace(PyObject *object, Py_ssize_t offset, PyObject *value) {
        PyObject *old = BARNABAS_SLOT(object, offset);
        BARNABAS_SLOT(object, offset) = value;
        Py_XDECREF(old);
    }

    static inline int barnabas_is_exactly(PyObject *object, PyObject *type) {
        return Py_IS_TYPE(object, (PyTypeObject *)type);
    }
    """
    Py_ssize_t barnabas_slot_offset(PyObject* descriptor)
    void barnabas_slot_replace(PyObject* object, Py_ssize_t offset, PyObject* value)
    PyObject* BARNABAS_SLOT(PyObject* object, Py_ssize_t offset)
    bint barnabas_is_exactly(PyObject* object, PyObject* type)
    PyObject* PyLong_FromLongLong(long long value)
    long long PyLong_AsLongLongAndOverflow(PyObject* value, int* overflow)
    void Py_INCREF(PyObject* object)


cdef inline Py_ssize_t offset_of(object owner, str name) except -1:
    """Return the offset of a slot of a class. Raises TypeError where that has no slot of this name."""
    cdef object descriptor = getattr(owner, name, None)
    cdef Py_ssize_t offset = barnabas_slot_offset(<PyObject*> descriptor)
    if offset < 0:
        raise TypeError(f"{owner.__name__} has no slot {name}")
    return offset


cdef inline bint is_exactly(PyObject* value, PyObject* owner) noexcept:
    """Return whether `value` is an object of the class `owner` itself; NULL is not."""
    return value != NULL and barnabas_is_exactly(value, owner)


cdef inline PyObject* get(PyObject* owner, Py_ssize_t offset) noexcept:
    """Return the slot's object, borrowed; NULL where it is not set."""
    return BARNABAS_SLOT(owner, offset)


cdef inline void put(PyObject* owner, Py_ssize_t offset, PyObject* value) noexcept:
    """Set a slot to `value`, whose reference the caller keeps."""
    Py_INCREF(value)
    barnabas_slot_replace(owner, offset, value)


cdef inline bint get_int64(PyObject* owner, Py_ssize_t offset, int64_t* value) except -1:
    """Store a slot's number in `value`. Returns False where the slot is not set or does not fit.

    Raises TypeError where it is no number.
    """
    cdef PyObject* found = BARNABAS_SLOT(owner, offset)
    cdef int overflow = 0
    cdef long long number
    if found == NULL:
        return False
    number = PyLong_AsLongLongAndOverflow(found, &overflow)
    if number == -1 and overflow == 0:
        _raise_error()
    value[0] = number
    return overflow == 0


cdef inline int set_int64(PyObject* owner, Py_ssize_t offset, int64_t value) except -1:
    """Set a slot to a number. Raises MemoryError."""
    cdef PyObject* number = PyLong_FromLongLong(value)
    if number == NULL:
        raise MemoryError
    barnabas_slot_replace(owner, offset, number)
    return 0


cdef inline int _raise_error() except -1:
    """Raise the pending exception, if any."""
    if PyErr_Occurred() != NULL:
        return -1
    return 0


cdef extern from "Python.h":
    PyObject* PyErr_Occurred()
