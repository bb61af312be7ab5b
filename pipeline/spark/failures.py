"""One sentence out of what Spark raises.

What goes wrong in a source, a sink or a job is raised in some Python process, printed as a traceback into a Java
exception, and that again into a Python one: a page of text around one line that matters. That line is the last of a
Python traceback; where there is none, the first line of Spark's own message.
"""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from barnabas.pipeline.spark.worker_python import worker_python_sentence

_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*): (?P<message>.+)$|^(?P<bare>[A-Za-z_][\w.]*(?:Error|Exception))$")
_JAVA_CLASS = re.compile(r"^(?:java|javax|scala|org|py4j|net)\.[\w.$]+: ")
_OURS = "barnabas."
_SAYS_ENOUGH = frozenset({"OSError", "FileNotFoundError", "PermissionError", "NotADirectoryError", "ValueError"})

NO_JAVA = "Spark found no Java: install a Java 17 runtime, or let JAVA_HOME name one"


def sentence_of(error: BaseException) -> str:
    """What people need to read of `error`, on one line and without tracebacks."""
    text = str(error)
    if isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED":
        return NO_JAVA
    if isinstance(error, PySparkException) or hasattr(error, "java_exception"):
        worker = worker_python_sentence(_with_causes(error, text))
        if worker is not None:
            return worker
    raised = _last_raised(text)
    if raised is not None:
        kind, message = raised
        return message if kind.startswith(_OURS) or kind in _SAYS_ENOUGH else f"{kind}: {message}"
    if isinstance(error, PySparkException) or hasattr(error, "java_exception"):
        return _spark_message(error, text)
    message = " ".join(text.split())
    if type(error).__module__.startswith(_OURS) or type(error).__name__ in _SAYS_ENOUGH:
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _last_raised(text: str) -> tuple[str, str] | None:
    """Type and message at the end of the first Python traceback in `text`, or of the one that it led to."""
    start = text.find(_TRACEBACK)
    if start < 0:
        return None
    found = None
    for line in text[start:].splitlines():
        if line.startswith(("\tat ", "Caused by:", "JVM stacktrace", "Driver stacktrace", "=== ")):
            break
        if _JAVA_CLASS.match(line):
            continue
        match = _RAISED.match(line)
        if match is not None:
            found = (match["type"], match["message"]) if match["bare"] is None else (match["bare"], "(no message)")
    return found


def _with_causes(error: BaseException, text: str) -> str:
    """`text` and what Java's causes say: a Python that was not started is told there only."""
    cause = getattr(error, "java_exception", None)
    texts = [text]
    while cause is not None:
        texts.append(cause.getMessage() or "")
        cause = cause.getCause()
    return "\n".join(texts)


def _spark_message(error: BaseException, text: str) -> str:
    """Spark's own sentence where it has one; else what the deepest of Java's causes says."""
    message = text
    if not isinstance(error, PySparkException) or error.getCondition() is None:
        cause = getattr(error, "java_exception", None)
        while cause is not None:
            message = cause.getMessage() or message
            cause = cause.getCause()
    line = (message.strip() or type(error).__name__).splitlines()[0]
    return _JAVA_CLASS.sub("", line).strip()
