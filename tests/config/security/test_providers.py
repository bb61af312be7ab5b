"""References to config providers: Kafka's three, by class name, with their limits."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config import BrokerConfig, ConfigError, load
from barnabas.config.security.jaas import PLAIN_MODULE, parse_jaas
from barnabas.config.security.providers import ConfigProviders, _references
from barnabas.config.security.secret import Secret
from barnabas.config.value import Setting

PACKAGE = "org.apache.kafka.common.config.provider."
PROVIDERS = (
    "config.providers=file, dir,env",
    f"config.providers.file.class={PACKAGE}FileConfigProvider",
    f"config.providers.dir.class={PACKAGE}DirectoryConfigProvider",
    f"config.providers.env.class={PACKAGE}EnvVarConfigProvider",
)
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ENVIRONMENT = {"KEY": "swordfish", "PARTITIONS": "7"}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "password").write_text("swordfish\n")
    (folder / "all.properties").write_text("key=swordfish\npartitions = 7\n")
    for each in folder.iterdir():
        each.chmod(0o600)
    return folder


def configured(*settings: str) -> BrokerConfig:
    return load(overrides=[*PROVIDERS, *settings], environ=ENVIRONMENT)


def test_references_are_replaced_by_each_provider(secrets: Path) -> None:
    for reference in ("${env:KEY}", f"${{dir:{secrets}:password}}", f"${{file:{secrets}/all.properties:key}}"):
        config = configured(f"ssl.key.password={reference}")

        assert config.get_secret("ssl.key.password") == Secret("swordfish")
        assert config.warnings == ()
    assert configured(f"num.partitions=${{file:{secrets}/all.properties:partitions}}").get_int("num.partitions") == 7


def test_a_value_may_have_several_references_and_other_text() -> None:
    config = configured("super.users=User:${env:KEY};User:${env:PARTITIONS}x")

    assert config.get_str("super.users") == "User:swordfish;User:7x"


KAFKAS = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")


@given(st.text("${}:a", max_size=30))
def test_references_are_those_that_kafka_finds(text: str) -> None:
    expected = [(each.start(), each[0], each[1], each[3] or "", each[4]) for each in KAFKAS.finditer(text)]
    assert [(start, *reference) for start, reference in _references(text)] == expected


@pytest.mark.parametrize("text", ["${a:" * 8_000, "${" + ":" * 32_000, "${" * 16_000 + "}", "${a:" + "x:" * 16_000])
def test_texts_at_which_kafkas_expression_backtracks_for_hours_take_a_moment(text: str) -> None:
    given = Setting(text, "a request")
    assert ConfigProviders({}, set()).resolve("compression.type", given) is given


def test_dynamic_values_are_resolved_too() -> None:
    config = configured().with_dynamic({}, {"listener.name.plaintext.ssl.key.password": "${env:KEY}"})

    assert config.listener_properties("PLAINTEXT").get_secret("ssl.key.password") == Secret("swordfish")


def test_descriptions_show_references_and_not_what_they_refer_to() -> None:
    config = configured("super.users=User:${env:KEY}", f"authorizer.class.name={AUTHORIZER}")

    assert config.value("super.users").text == "User:${env:KEY}"
    assert config.setting("super.users") == "super.users=User:${env:KEY} in --set"


def test_only_passwords_may_refer_to_a_provider_while_the_broker_runs() -> None:
    with pytest.raises(ConfigError) as caught:
        configured().with_dynamic({}, {"listener.name.plaintext.ssl.keystore.location": "${env:KEY}"})

    assert str(caught.value) == (
        "listener.name.plaintext.ssl.keystore.location in the dynamic config of this broker: while the broker runs, "
        "only passwords may refer to a config provider"
    )


def test_files_that_every_user_can_read_are_warned_about(secrets: Path) -> None:
    (secrets / "password").chmod(0o604)
    config = configured(
        f"ssl.key.password=${{dir:{secrets}:password}}", f"num.partitions=${{file:{secrets}/all.properties:partitions}}"
    )

    assert config.warnings == (
        f"{secrets}/password, of config.providers, can be read by every user of this machine; "
        f"run chmod o-r {secrets}/password",
    )


def test_a_file_that_is_gone_later_does_not_matter(secrets: Path) -> None:
    config = configured(f"ssl.key.password=${{dir:{secrets}:password}}")
    (secrets / "password").unlink()

    assert config.with_dynamic({}, {"log.cleaner.threads": "2"}).get_secret("ssl.key.password") == Secret("swordfish")


def test_a_stored_reference_that_cannot_be_resolved_is_left_out_with_a_warning() -> None:
    config = configured().with_dynamic({}, {"listener.name.plaintext.ssl.key.password": "${env:NONE}"}, stored=True)

    assert config.listener_properties("PLAINTEXT").get_secret("ssl.key.password") is None
    assert config.warnings == (
        "listener.name.plaintext.ssl.key.password in the dynamic config of this broker: ${env:NONE} has no value; "
        "ignored",
    )


@pytest.mark.parametrize(
    ("settings", "end"),
    [
        (("num.partitions=${env:NONE}",), "num.partitions in --set: ${env:NONE} has no value"),
        (
            ("num.partitions=${vault:a:b}",),
            "num.partitions in --set: ${vault:a:b} has no config provider vault in config.providers; it names "
            "file, dir, env",
        ),
        (
            ("num.partitions=${env:path:KEY}",),
            "num.partitions in --set: ${env:path:KEY} has the path path; the environment has no paths, write "
            "${provider:NAME}",
        ),
        (
            ("num.partitions=${file:/nonexistent:KEY}",),
            "num.partitions in --set: ${file:/nonexistent:KEY} cannot be read: No such file or directory",
        ),
        (("num.partitions=${dir:/nonexistent:KEY}",), "${dir:/nonexistent:KEY} has no value"),
        (("num.partitions=${dir:/etc:../etc/hostname}",), "${dir:/etc:../etc/hostname} has no value"),
        (
            ("config.providers.env.param.allowlist.pattern=PART.*", "num.partitions=${env:KEY}"),
            "num.partitions in --set: ${env:KEY} is not allowed by allowlist.pattern",
        ),
        (
            ("config.providers.file.param.allowed.paths=/proc/self", "num.partitions=${file:/proc/self/../x:KEY}"),
            "num.partitions in --set: ${file:/proc/self/../x:KEY} is outside of allowed.paths",
        ),
        (
            ("config.providers.file.param.allowed.paths=relative",),
            "config.providers.file.param.allowed.paths=relative in --set: relative is not absolute",
        ),
        (
            ("config.providers.env.class=com.example.Vault",),
            "config.providers.env.class=com.example.Vault in --set: Java classes are not loaded; Barnabas serves "
            f"{PACKAGE}FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider",
        ),
        (("config.providers=other",), "config.providers=other in --set: config.providers.other.class is not set"),
    ],
)
def test_what_cannot_be_resolved_is_refused(settings: tuple[str, ...], end: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(*settings)

    assert str(caught.value).endswith(end)


def test_a_reference_reads_only_a_regular_file_of_at_most_a_mebibyte(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    large = tmp_path / "large"
    large.write_bytes(b"#" * (1024 * 1024 + 1))

    def refusal(reference: str) -> str:
        with pytest.raises(ConfigError) as caught:
            configured(f"ssl.key.password={reference}")
        return str(caught.value).partition("} ")[2]

    assert refusal(f"${{file:{fifo}:key}}") == "cannot be read: Not a regular file"
    assert refusal("${file:/dev/zero:key}") == "cannot be read: Not a regular file"
    assert refusal(f"${{file:{large}:key}}") == "cannot be read: Larger than 1048576 bytes"
    assert refusal(f"${{dir:{tmp_path}:large}}") == "cannot be read: Larger than 1048576 bytes"
    assert refusal(f"${{dir:{tmp_path}:fifo}}") == "has no value"


def test_a_bad_value_is_refused_by_its_reference_and_not_shown() -> None:
    for name in ("num.partitions", "log.cleanup.policy", "ssl.client.auth"):
        with pytest.raises(ConfigError) as caught:
            configured(f"{name}=${{env:KEY}}")

        assert str(caught.value) == (
            f"{name}=${{env:KEY}} in --set: the value that it refers to does not fit the property"
        )


def test_providers_cannot_be_changed_while_the_broker_runs() -> None:
    with pytest.raises(ConfigError, match="read-only"):
        configured().with_dynamic({}, {"config.providers.env.class": f"{PACKAGE}FileConfigProvider"})


@pytest.mark.parametrize("password", ['a"b', "a'b", "a\\b", 'x" user_evil="y', "a\nb", "\\101", "a;b", "${env:KEY}"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_quoted_reference_in_a_jaas_line_is_one_value(password: str, quote: str) -> None:
    name = "listener.name.plaintext.plain.sasl.jaas.config"
    line = f"{PLAIN_MODULE} required user_alice={quote}${{env:PASSWORD}}{quote} user_bob={quote}b{quote};"
    # A secret that Kubernetes mounts may end with a newline.
    config = load(overrides=[*PROVIDERS, f"{name}={line}"], environ={"PASSWORD": f"{password}\n"})

    found = config.listener_properties("PLAINTEXT").get_secret("plain.sasl.jaas.config")

    assert found is not None
    assert parse_jaas(found.reveal()).options == {"user_alice": password, "user_bob": "b"}


def test_an_unquoted_reference_in_a_jaas_line_may_be_the_whole_line() -> None:
    line = f'{PLAIN_MODULE} required user_alice="pencil";'
    name = "listener.name.plaintext.plain.sasl.jaas.config"
    config = load(overrides=[*PROVIDERS, f"{name}=${{env:LINE}}"], environ={"LINE": line})

    assert config.listener_properties("PLAINTEXT").get_secret("plain.sasl.jaas.config") == Secret(line)
