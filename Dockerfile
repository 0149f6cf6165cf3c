# One image for every program: `docker build -t muster:0.1.0 .`, then `extender …` or `webhook …`.
#
# Everything that is installed is pinned by hash (requirements/). Pin the base image as well, by its
# digest: --build-arg PYTHON=python:3.12-slim@sha256:…
ARG PYTHON=python:3.12-slim

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/muster
COPY requirements/ /src/requirements/
# Before the code, so that a change of code does not fetch them again. Wheels only: no compiler here.
RUN /opt/muster/bin/pip install --require-hashes --no-deps --only-binary :all: \
      --requirement /src/requirements/runtime.txt
COPY . /src
# With the build backend that is locked for development, in a place of its own: it is not shipped.
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --no-deps --requirement /src/requirements/build.txt \
 && /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist /src \
 && /opt/muster/bin/pip install --no-deps /dist/*.whl \
 && /opt/muster/bin/python -m compileall -q /opt/muster/lib \
 && /opt/muster/bin/pip uninstall --yes --quiet pip

FROM ${PYTHON}
COPY --from=build /opt/muster /opt/muster
ENV PATH=/opt/muster/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    # numpy is used by one thread; a pool of them per core would only take memory.
    OPENBLAS_NUM_THREADS=1
# 65532 has no entry in /etc/passwd and needs none; the root file system may be read-only.
USER 65532:65532
ENTRYPOINT ["muster"]
CMD ["--help"]
