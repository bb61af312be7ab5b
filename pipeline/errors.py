"""The pipeline's errors, and how they reach the user through Spark.

Spark sends the traceback of a Python source to the driver as text. An expected error should be one sentence there:
`in_one_sentence` removes the frames inside this package; the error's type and message stay.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.clients.errors import ClientError
from barnabas.protocol.errors import DecodeError


class PipelineError(Exception):
    """Base class; the message is one sentence that names the option, topic or file."""


class OptionError(PipelineError, ValueError):
    """An option is missing, contradicts another one, or has an invalid value; the message names it."""


class SchemaError(PipelineError, ValueError):
    """A column does not exist in the source, or has another type there."""


class DataLossError(PipelineError):
    """Records in the requested range are gone, and `failOnDataLoss` is true."""


class CorruptLogError(PipelineError):
    """A damaged batch in mode strict; the message names file (or partition) and position."""


class RecordTypeError(PipelineError):
    """A record that a column's type cannot hold; the message names it."""


class SourceError(PipelineError):
    """The broker or the file system refused a request; the message names both."""


class WriteNotBegunError(PipelineError, pickle.PickleError):
    """A write that fails on the driver before its first task.

    Raised while Spark pickles the writer, which reports errors as "Could not serialize object" unless they are
    PickleErrors.
    """


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Raise errors of options, broker and file system as a PipelineError without the frames inside this package."""
    try:
        yield
    except PipelineError as error:
        sentence = copy.copy(error)  # contextlib restores the traceback of an error that is raised again
    except (ClientError, DecodeError) as error:
        sentence = SourceError(str(error) or type(error).__name__)
    except OSError as error:
        sentence = SourceError(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    else:
        return
    raise sentence.with_traceback(None) from None
