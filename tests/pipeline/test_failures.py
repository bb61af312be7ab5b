"""Error messages of failed jobs: the one relevant sentence of a long traceback."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkRuntimeError, PythonException

from barnabas.clients.errors import ClientConfigError
from barnabas.pipeline.spark.failures import NO_JAVA, sentence_of

_WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/pyspark/worker.py", line 6, in main
    raise OptionError("x")
{raised}

\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:1)
Caused by: java.lang.IllegalStateException: something else
java.lang.RuntimeError: not this one
"""


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        ("barnabas.pipeline.options.OptionError: subscribe: no topic", "subscribe: no topic"),
        ("ZeroDivisionError: division by zero", "ZeroDivisionError: division by zero"),
        ("NotADirectoryError: /data is no directory", "/data is no directory"),
    ],
)
def test_the_last_line_of_the_workers_traceback_is_the_sentence(raised: str, sentence: str) -> None:
    assert sentence_of(PythonException(_WORKER.format(raised=raised))) == sentence


def test_of_an_exception_that_led_to_another_the_last_one_is_told() -> None:
    text = (
        "Traceback (most recent call last):\nKeyError: 'a'\n\nDuring handling of the above exception, another "
        "exception occurred:\n\nTraceback (most recent call last):\nbarnabas.clients.errors.ClosedError: gone\n"
    )
    assert sentence_of(PythonException(text)) == "gone"


def test_of_a_streams_failure_what_its_query_was_is_no_sentence() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Error from python worker:\n"
        "Traceback (most recent call last):\n  File x\nbarnabas.pipeline.errors.OptionError: option topic is empty\n"
        "=== Streaming Query ===\nIdentifier: [id = 1, runId = 2]\nCurrent State: ACTIVE\n"
    )
    assert sentence_of(PythonException(text)) == "option topic is empty"


def test_sparks_own_sentence_is_kept_without_its_plan() -> None:
    error = AnalysisException("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03;\n'Project [*]\n+- x")
    assert sentence_of(error) == "[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03;"


def test_our_own_error_needs_no_name() -> None:
    assert sentence_of(ClientConfigError("bootstrap is empty")) == "bootstrap is empty"
    assert sentence_of(KeyError("a")) == "KeyError: 'a'"


def test_no_java_says_what_to_do() -> None:
    no_java = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    assert sentence_of(no_java) == NO_JAVA


@pytest.mark.parametrize("module", ["barnabas", "msgpack"])
def test_a_workers_python_that_lacks_a_module_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "./env/bin/python")
    planned = _WORKER.format(raised=f"ModuleNotFoundError: No module named '{module}'")
    ran = "Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): " + planned
    lacks = f"has no module {module}: install the wheel of barnabas"
    here = sentence_of(PythonException(planned))
    assert here.startswith(f"the Python ./env/bin/python on this machine, where Spark plans, {lacks}")
    assert sentence_of(PythonException(ran)).startswith(
        f"the Python ./env/bin/python on executor host 10.0.0.7 {lacks}"
    )


def test_a_workers_python_that_is_not_there_is_named() -> None:
    text = 'Cannot run program "./env/bin/python": error=2, No such file or directory'
    assert sentence_of(PythonException(text)).startswith(
        "the Python ./env/bin/python on this machine, where Spark plans, "
    )


def test_a_module_that_the_job_itself_lacks_is_no_fault_of_a_worker() -> None:
    assert sentence_of(ModuleNotFoundError("No module named 'numpy'")) == "ModuleNotFoundError: No module named 'numpy'"
