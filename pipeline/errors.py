"""What the pipeline raises on purpose, and how little of it Spark shows.

Spark sends the traceback of a Python source to the driver as text. What is somebody's mistake should be a sentence
there: `in_one_sentence` takes the frames inside of this package away, and the error's type and sentence stay.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.clients.errors import ClientError
from barnabas.protocol.errors import DecodeError


class PipelineError(Exception):
    """The base: one sentence that names the option, topic or file."""


class OptionError(PipelineError, ValueError):
    """An option that is missing, contradicts another one, or has a value that cannot be; the sentence names it."""


class SchemaError(PipelineError, ValueError):
    """A column that the source does not have, or has with another type."""


class DataLossError(PipelineError):
    """Records that should have been read are gone, and `failOnDataLoss` is true."""


class CorruptLogError(PipelineError):
    """A batch that is not what was written, in mode strict; the sentence names file (or partition) and position."""


class SourceError(PipelineError):
    """The broker or the disk refused; the sentence names it and what was asked."""


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Let what is somebody's mistake, or the broker's or disk's word, leave without the frames that it came through."""
    try:
        yield
    except PipelineError as error:
        sentence = copy.copy(error)  # contextlib gives an error that comes out again its old traceback back
    except (ClientError, DecodeError) as error:
        sentence = SourceError(str(error) or type(error).__name__)
    except OSError as error:
        sentence = SourceError(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    else:
        return
    raise sentence.with_traceback(None) from None
