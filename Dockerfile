# Two stages: the first, with a compiler, builds the wheel and its environment; the final image has no compiler and no pip
# cache, and does not run as root.
FROM python:3.11-slim AS build

# Debian's Python has its headers in a separate package; the official Python image includes them.
RUN apt-get update \
    && headers="$(python -c 'import os, sysconfig; print("" if os.path.exists(sysconfig.get_path("include") + "/Python.h") else "python3-dev")')" \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev $headers \
    && rm -rf /var/lib/apt/lists/*

# For a package index other than PyPI; docker-compose.yml passes them on from the environment.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore

WORKDIR /src
COPY requirements requirements
RUN python -m venv /build \
    && /build/bin/pip install --require-hashes -r requirements/build.txt \
    && python -m venv /opt/barnabas \
    && /opt/barnabas/bin/pip install --require-hashes -r requirements/run.txt

# barnabas/ contains links to the folders beside it, so all of them are needed.
COPY . .
RUN /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/barnabas/bin/pip install --no-deps /wheels/*.whl \
    && /opt/barnabas/bin/barnabas --version \
    && /opt/barnabas/bin/pip uninstall -y -q setuptools pip \
    && python -m compileall -q -f --invalidation-mode unchecked-hash /opt/barnabas/lib


FROM python:3.11-slim

# The official image has no bytecode of the standard library, and the broker's user may not write any: every start and
# every command would compile 250 modules, for half a second. Bytecode with unchecked hashes is valid whatever happens to
# the files' times.
RUN python -m compileall -q --invalidation-mode unchecked-hash \
        -x '/(site-packages|dist-packages|test|tests|idlelib|lib2to3|tkinter|turtledemo|ensurepip)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"

RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /var/lib/barnabas --shell /usr/sbin/nologin barnabas \
    && install -d -o barnabas -g barnabas -m 0750 /var/lib/barnabas
COPY --from=build /opt/barnabas /opt/barnabas

ENV PATH=/opt/barnabas/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    BARNABAS_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    BARNABAS_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092 \
    BARNABAS_METRICS_LISTENER=0.0.0.0:9404 \
    BARNABAS_LOG_DIRS=/var/lib/barnabas

USER barnabas
WORKDIR /var/lib/barnabas
VOLUME /var/lib/barnabas
EXPOSE 9092 29092 9404

HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["barnabas", "health", "--timeout", "4"]

# The broker is process 1: SIGTERM drains it, flushes, and writes the clean-shutdown marker.
ENTRYPOINT ["barnabas"]
CMD ["serve"]
