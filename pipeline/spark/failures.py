"""Extracts one sentence from an exception that Spark raises.

An error in a source, a sink or a job is raised in a Python process, printed as a traceback into a Java exception, and
that into a Python one: a page of text around one useful line. This is the last line of the Python traceback or, without
a traceback, the first line of Spark's own message.
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

NO_JAVA = "Spark found no Java: install a Java 17 runtime, or set JAVA_HOME"


def sentence_of(error: BaseException) -> str:
    """Return the message of `error` on one line, without tracebacks."""
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
    """Return type and message at the end of the first Python traceback in `text`, or of the one that it caused."""
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
    """Append the messages of Java's causes, which alone report a Python that could not be started."""
    cause = getattr(error, "java_exception", None)
    texts = [text]
    while cause is not None:
        texts.append(cause.getMessage() or "")
        cause = cause.getCause()
    return "\n".join(texts)


def _spark_message(error: BaseException, text: str) -> str:
    """Return Spark's own message, or else that of the innermost Java cause."""
    message = text
    if not isinstance(error, PySparkException) or error.getCondition() is None:
        cause = getattr(error, "java_exception", None)
        while cause is not None:
            message = cause.getMessage() or message
            cause = cause.getCause()
    line = (message.strip() or type(error).__name__).splitlines()[0]
    return _JAVA_CLASS.sub("", line).strip()
