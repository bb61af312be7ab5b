"""Every text of every property is read as Kafka's ConfigDef reads it, or refused for a documented reason."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from barnabas.config import BROKER_PROPERTIES, TOPIC_PROPERTIES, Property, PropertyType
from barnabas.config.client_metrics_configs import CLIENT_METRICS_CONFIGS
from barnabas.config.document import DIFFERENCES, TOPIC_DIFFERENCES
from barnabas.config.group_configs import GROUP_CONFIGS
from barnabas.config.property import BadValueError, show
from barnabas.config.security.secret import Secret
from barnabas.config.tables.kafka_properties import unserved_broker_properties, unserved_topic_properties
from tests.support.kafka.apache_kafka import need_kafka

ORACLE: Final = Path(__file__).parents[1] / "java" / "ConfigTexts.java"
ANY: Final = ("", " ", "a", "x", "\xa0", "\u2003", "\x00", ",")
WHOLE: Final = (
    *(
        "0",
        "1",
        "-1",
        "-2",
        "-3",
        "+7",
        " 42 ",
        "\t9\n",
        "\x1f5\x00",
        "\xa05",
        "007",
        "-0",
        "+0",
        "-",
        "+",
        "+-1",
        "--1",
    ),
    *(
        "\u0663",
        "\uff11\uff12",
        "\U0001d7d9",
        "\u0663 \u0663",
        "1_000",
        "1.0",
        "0x10",
        "1e3",
        "1L",
        "9" * 60,
        "0" * 60 + "5",
    ),
    *("32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483648", "-2147483649"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "3", "4", "23", "24", "1023", "1048576"),
)
DOUBLE: Final = (
    *("0.5", "0.5f", "0.5D", "0.5L", "0x1p-1", "0X.8P0", "0x1.8p-1f", "0x1p", "0x1", "0x.p1", "0x1.p1", "0x1p99999"),
    *("NaN", "+NaN", "-NaN", "NaNf", "nan", "Infinity", "-Infinity", "inf", "INFINITY", "1e400", "-1e400", "1e-400"),
    *(
        "1e",
        "1e+",
        "1e5d",
        ".5",
        "5.",
        ".",
        "1.e2",
        ".e1",
        "1_0.5",
        "0.5 f",
        "1.1",
        "-0.0",
        "\u0660.\u0665",
        "4.9E-324",
    ),
)
BOOLEAN: Final = ("true", "TRUE", " false ", "truE\xa0", "fal\u017fe", "yes", "1", "t")
LIST: Final = (
    *("a,a", "a, a", " a , b,a ", "a,,b", "a,", ",a", "a\xa0,b", "a\xa0,a", "a\x0b,\x0bb", "a\x1c,b", "a\t,\na", "a b"),
    *("0:1", "0:1, 1:1,", "*", "*,", "*,*", "0:1,*"),
)
TABLES: Final[Mapping[str, Mapping[str, Property]]] = {
    "broker": {**BROKER_PROPERTIES, **unserved_broker_properties()},
    "topic": {**TOPIC_PROPERTIES, **unserved_topic_properties()},
    "group": GROUP_CONFIGS,
    "client-metrics": CLIENT_METRICS_CONFIGS,
}
QUORUM: Final = ("controller.quorum.bootstrap.servers", "controller.quorum.voters")
WITHOUT_EFFECT: Final = {*QUORUM, *unserved_broker_properties()}
"""Properties that are kept whatever they are set to in the file."""


def texts(known: Property) -> Iterator[str]:
    """Yield texts at the edges of a property's type and rule."""
    yield from ANY
    if (default := show(known.default)) is not None:
        yield from (default, f"{default},{default}")
    for choice in map(str, getattr(known.validator, "choices", ())):
        yield from (choice, choice.upper(), choice.title(), f" {choice}\x1f", f"{choice},", f"{choice} , {choice}")
    if known.type in (PropertyType.INT, PropertyType.SHORT, PropertyType.LONG, PropertyType.DOUBLE):
        yield from WHOLE
    yield from {PropertyType.DOUBLE: DOUBLE, PropertyType.BOOLEAN: BOOLEAN, PropertyType.LIST: LIST}.get(known.type, ())


def read_here(known: Property, text: str) -> str:
    """Return how we understand a text, as ConfigTexts prints it."""
    try:
        value = known.parse(text)
    except BadValueError:
        return "refused"
    shown = value.reveal() if isinstance(value, Secret) else show(value)
    assert shown is not None
    return "=" + shown.encode("utf-16-be").hex()


def may_differ(scope: str, name: str, ours: str, theirs: str) -> bool:
    """Return whether the documents say that one of both refuses what the other one takes."""
    if "refused" not in (ours, theirs):
        return False
    if scope == "broker" and name in WITHOUT_EFFECT:
        return theirs == "refused"
    return name in (TOPIC_DIFFERENCES if scope == "topic" else DIFFERENCES)


def test_every_text_is_read_as_kafka_reads_it_or_refused_for_a_documented_reason() -> None:
    cases = [
        (scope, name, known, text)
        for scope, table in TABLES.items()
        for name, known in table.items()
        for text in dict.fromkeys(texts(known))
    ]
    asked = "".join(f"{scope}\t{name}\t{text.encode('utf-16-be').hex()}\n" for scope, name, _, text in cases)

    java = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{need_kafka('4.3.0')}/*", str(ORACLE)],
        input=asked,
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )
    printed = java.stdout.splitlines()

    assert (java.returncode, len(printed)) == (0, len(cases)), java.stderr[-2000:]
    different = {
        (scope, name, text): (ours, theirs)
        for (scope, name, known, text), theirs in zip(cases, printed, strict=True)
        if theirs not in ("unknown", ours := read_here(known, text)) and not may_differ(scope, name, ours, theirs)
    }
    assert different == {}
    assert len(cases) > 15_000
