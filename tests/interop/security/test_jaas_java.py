"""Kafka's own parser of sasl.jaas.config agrees with ours on random texts."""

from __future__ import annotations

import base64
import random
from pathlib import Path

from barnabas.config.security.jaas import JaasError, parse_jaas
from tests.support.kafka.apache_kafka import Kafka

TEXTS = 3000
PIECES = (
    *(
        "a.Module",
        "required",
        "OPTIONAL",
        "user_x",
        "=",
        ";",
        " ",
        "\n",
        "\t",
        '"a b"',
        "'c'",
        '"',
        "'",
        "\\",
        "/",
        "//",
    ),
    *("/*", "*/", "-", "1", ".", "b", "$_", "é", "\u2003", "\\101", '"\\""', "x=y", '="v"', "{", "\r", "#", "\x00"),
)


ENDS = (";", " x=y;", "\n;", ' x="v";')


def random_text(source: random.Random) -> str:
    options = "".join(source.choices(PIECES, k=source.randrange(8)))
    return options if source.random() < 0.2 else f"a.Module required {options}{source.choice(ENDS)}"


def ours(text: str) -> str:
    try:
        entry = parse_jaas(text)
    except JaasError:
        return "refused"
    options = [word for name in sorted(entry.options) for word in (name, entry.options[name])]
    return " ".join("=" + base64.b64encode(word.encode()).decode() for word in (entry.module, entry.flag, *options))


def test_kafkas_parser_agrees_on_three_thousand_random_texts(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    source = random.Random(seed)
    texts = [random_text(source) for _ in range(TEXTS)]
    path = tmp_path / "texts"
    path.write_text("".join(base64.b64encode(text.encode()).decode() + "\n" for text in texts))

    printed = Kafka("4.3.0", tmp_path, tmp_path).java_program("JaasLines", str(path)).splitlines()

    different = [(text, ours(text), line) for text, line in zip(texts, printed, strict=True) if ours(text) != line]
    assert different == [], f"seed={seed}"
    assert 0 < sum(line == "refused" for line in printed) < TEXTS
