# Each target does the set-up it needs: a virtual environment in .venv, the locked dependencies, an editable install
# with the compiled kernels. Requirements: Python >= 3.11 with its venv module, make, and a C compiler (without one the
# plain Python twins are used). Set-up runs again only when one of its inputs changes.
#
#   make serve               a broker on 127.0.0.1:9092, data in ./barnabas-data   (ARGS="--set k=v" goes to `barnabas serve`)
#   make test                the tests that need only this repository              (ARGS="-k name" goes to pytest)
#   make test-spark          the tests of the pipeline, on Spark (needs Java 17)
#   make check               lint, format, types, import table, dependencies, dead code, generated pages
#   make coverage            the same tests with branch coverage, Python twins included: build/coverage/html
#   make sanitize            the tests of records and appends on kernels built with ASan and UBSan
#   make test-pythons        the core tests on each installed CPython, 3.11 to 3.14 (VERSIONS="3.13 3.14")
#   make wheels              a source distribution, and a manylinux wheel for each of them, tried without a compiler: dist/
#   make torture             the long form of tests/torture: crash states, faults, hostile peers (ARGS="--seconds 3600")
#   make soak                mixed load with faults for two hours, and a checker (ARGS="--seconds 600 --seed 7")
#   make interop             tests with other software: Apache Kafka, clients in other languages, containers (FLAKY=folder:
#                            a failed test is tried again, alone, and the output of its failure kept there)
#   make baseline            the code of an earlier commit (tools/baseline), built in build/baseline
#   make test-baseline       directories that it wrote are opened by this tree, and the other way round
#   make bench-baseline      a benchmark on both in turn: ratios (ARGS="--lines one", "--benchmark recovery --rounds 5")
#   make demo, make bench    real data end to end; benchmarks beside the machine's limits
#   make pipeline-demo       the same data through the jobs of `barnabas pipeline` (needs Java 17)
#   make bench-kafka         Barnabas beside Apache Kafka: librdkafka, recovery, transactions, latency end to end, logins
#   make compatibility       Kafka's clients, feature by feature: writes docs/compatibility.md
#   make ecosystem           software that people put on a Kafka cluster, with kills of the broker: writes docs/ecosystem.md
#   make docs, make lock     write the generated pages; write requirements/*.txt from pyproject.toml (LOCK="--upgrade")
#   make screenshots         take the pictures of docs/console.md anew (needs Chromium)

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
DEPENDENCIES := $(VENV)/.dependencies
INSTALLED := $(VENV)/.installed
BYTECODE := $(VENV)/.bytecode
FOLDERS := broker clients commands config console explanation pipeline protocol transport
SOURCES := $(shell find barnabas $(FOLDERS) -name "*.py")
KERNELS := $(shell find protocol broker -name "*.pyx" -o -name "*.pxd" -o -name "*.h")
ARGS ?=
# Tests wait more than they compute, for daemons, disks and other people's programs: one worker more than there are cores,
# at most four. Tests of one file stay together, because they share a broker.
WORKERS := --numprocesses=$(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 3 ? cores + 1 : 4))) --dist=loadfile
# Interop, ecosystem and Spark tests are in folders that need not be read for the others.
ALONE := -m "not interop and not ecosystem" --ignore=tests/interop --ignore=tests/ecosystem --ignore=tests/pipeline
# The longest files come first.
INTEROP_WORKERS := $(WORKERS) --no-loadscope-reorder
LOCK ?=
# With a JVM and Maven installed, an interop test that cannot run fails instead of being skipped.
INTEROP := $(if $(and $(shell command -v java),$(shell command -v mvn)),require,allow-skips)

.DEFAULT_GOAL := help
.PHONY: help setup serve test test-spark torture soak check baseline test-baseline interop compatibility ecosystem demo \
	pipeline-demo bench bench-baseline bench-kafka coverage sanitize test-pythons wheels docs screenshots lock clean

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

setup: $(BYTECODE)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv found: install one (Debian: apt-get install python3-venv) or set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(DEPENDENCIES): requirements/dev.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

# compat: a path entry instead of an import hook, so that a folder `barnabas` next to a user's script is not imported
# instead of this package. Without build isolation, because an isolated build would fetch unlocked build tools.
$(INSTALLED): $(DEPENDENCIES) pyproject.toml setup.py $(KERNELS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=compat --editable .
	@touch $@

# Where PYTHONDONTWRITEBYTECODE is set, as in many containers, Python would compile 600 modules at each start: half of its
# time. compileall does not follow the links in barnabas/, hence one argument for each.
$(BYTECODE): $(INSTALLED) $(SOURCES)
	@$(BIN)/python -m compileall -q $(CURDIR)/barnabas $(addprefix $(CURDIR)/barnabas/,$(FOLDERS))
	@touch $@

serve: $(BYTECODE)
	$(BIN)/barnabas serve $(ARGS)

test: $(BYTECODE)
	tools/in-memory $(BIN)/python -m pytest $(ALONE) $(WORKERS) $(ARGS)

# Without workers, because each would start a JVM of its own and compile Spark's code again.
test-spark: $(BYTECODE)
	tools/in-memory $(BIN)/python -m pytest tests/pipeline $(ARGS)

# The test of the campaign itself comes first: it finds faults that are put into the code.
torture: $(BYTECODE)
	BARNABAS_TORTURE=long $(BIN)/python -m pytest --timeout=600 tests/torture \
		tests/broker/kafka/test_fetch_session_kernel.py
	$(BIN)/python -m tests.torture $(ARGS)
	$(BIN)/python -m tests.torture.hostile --frames 200000 --attacks 5 --wide

soak: $(BYTECODE)
	$(BIN)/python -m tests.torture.soak $(ARGS)

# The last run disables the compiled kernels, so that their Python twins are covered, too. Not a gate: timing-sensitive
# tests may fail under a tracer, and the report is written anyway.
coverage: $(BYTECODE)
	rm -rf build/coverage && mkdir -p build/coverage
	-tools/in-memory $(BIN)/coverage run -m pytest $(ALONE) --timeout=600 $(WORKERS) $(ARGS)
	-tools/in-memory $(BIN)/coverage run -m pytest --timeout=600 tests/pipeline
	-BARNABAS_KERNEL=python $(BIN)/coverage run -m pytest --timeout=600 $(WORKERS) tests/protocol tests/storage
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report

sanitize: $(INSTALLED)
	PYTHON=$(BIN)/python tools/sanitize $(ARGS)

test-pythons:
	tools/test-pythons $(ARGS)

wheels:
	tools/wheels

interop: $(BYTECODE)
	BARNABAS_INTEROP=$(INTEROP) $(BIN)/python -m $(if $(FLAKY),tools.second_try $(FLAKY),pytest) -m interop $(INTEROP_WORKERS) \
		$(ARGS) $(if $(findstring tests/,$(ARGS)),,tests/interop)

baseline: $(BIN)/python
	PYTHON=$(BIN)/python tools/baseline

test-baseline: $(BYTECODE) baseline
	BARNABAS_INTEROP=require $(BIN)/python -m pytest -m interop tests/interop/baseline $(ARGS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry --no-ansi .
	$(BIN)/vulture
	$(BIN)/python -m barnabas.config.document --check
	$(BIN)/python -m barnabas.broker.metrics.document --check
	$(BIN)/python -m tools.compatibility --check
	$(BIN)/python -m tools.ecosystem --check
	$(BIN)/python -m tools.surface --check

docs: $(INSTALLED)
	$(BIN)/python -m barnabas.config.document --write
	$(BIN)/python -m barnabas.broker.metrics.document --write
	$(BIN)/python -m tools.compatibility --write
	$(BIN)/python -m tools.ecosystem --write
	$(BIN)/python -m tools.surface --write

compatibility: $(BYTECODE)
	BARNABAS_INTEROP=$(INTEROP) BARNABAS_COMPATIBILITY_RESULT=docs/compatibility.json $(BIN)/python -m pytest -m interop \
		$(addprefix tests/interop/compatibility/test_,clients.py kafka_tools.py group_tools.py transaction_tools.py) $(ARGS); \
		outcome=$$?; $(BIN)/python -m tools.compatibility --write; exit $$outcome

# One worker: the tests build and run other people's software, which wants the machine for itself.
ecosystem: $(BYTECODE)
	BARNABAS_ECOSYSTEM_RESULT=docs/ecosystem.json $(BIN)/python -m pytest -m ecosystem \
		$(ARGS) $(if $(findstring tests/,$(ARGS)),,tests/ecosystem); \
		outcome=$$?; $(BIN)/python -m tools.ecosystem --write; exit $$outcome

demo: $(BYTECODE)
	$(BIN)/python -m demo $(ARGS)

screenshots: $(BYTECODE)
	BARNABAS_SCREENSHOTS=1 $(BIN)/python -m pytest --timeout 600 tests/interop/console/test_screenshots.py

pipeline-demo: $(BYTECODE)
	$(BIN)/python -m demo.pipeline $(ARGS)

bench: $(BYTECODE)
	$(BIN)/python -m benchmarks $(ARGS)
	$(BIN)/python -m benchmarks.loading $(LOADING_ARGS)
	$(BIN)/python -m benchmarks.metadata
	$(BIN)/python -m benchmarks.groups
	$(BIN)/python -m benchmarks.transactions $(TRANSACTIONS_ARGS)
	$(BIN)/python -m benchmarks.recovery $(RECOVERY_ARGS)
	$(BIN)/python -m benchmarks.end_to_end $(SIDE_ARGS)
	$(BIN)/python -m benchmarks.many $(SIDE_ARGS)

bench-baseline: $(BYTECODE) baseline
	$(BIN)/python -m benchmarks.baseline $(ARGS)

# One librdkafka client (Debian: librdkafka-dev) against Barnabas, its own mock cluster and Apache Kafka, whose jars
# Maven fetches unless they are cached.
bench-kafka: $(BYTECODE)
	jars="$$($(BIN)/python -c 'from tests.support.kafka.jars import fetch; print(fetch("4.3.0"))')" && \
		$(BIN)/python -m benchmarks.librdkafka --kafka-jars "$$jars" $(ARGS) && \
		$(BIN)/python -m benchmarks.recovery --kafka-jars "$$jars" $(RECOVERY_ARGS) && \
		$(BIN)/python -m benchmarks.transactions --kafka-jars "$$jars" $(TRANSACTIONS_ARGS) && \
		$(BIN)/python -m benchmarks.end_to_end --kafka-jars "$$jars" $(SIDE_ARGS) && \
		$(BIN)/python -m benchmarks.many --kafka-jars "$$jars" $(SIDE_ARGS) && \
		$(BIN)/python -m benchmarks.sasl_logins --kafka-jars "$$jars" $(SIDE_ARGS) && \
		$(BIN)/python -m benchmarks.quotas --kafka-jars "$$jars" $(SIDE_ARGS) && \
		$(BIN)/python -m benchmarks.standby --kafka-jars "$$jars" $(SIDE_ARGS) && \
		mirror_maker="$$($(BIN)/python -c \
			'from tests.support.kafka.jars import fetch_mirror_maker; print(fetch_mirror_maker("4.3.0"))')" && \
		$(BIN)/python -m benchmarks.mirrors --kafka-jars "$$jars" --mirror-maker-jars "$$mirror_maker" $(SIDE_ARGS)

# uv resolves for all platforms together. It is used only here, and therefore installed in a separate environment.
$(VENV)/lock/bin/uv: | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check uv

lock: $(VENV)/lock/bin/uv
	UV=$(VENV)/lock/bin/uv PYTHON=$(BIN)/python tools/lock $(LOCK)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find protocol broker \( -name "_*.so" -o -name "_*.c" \) -delete
