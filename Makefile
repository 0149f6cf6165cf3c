# Needs make and Python >= 3.11, nothing else: every target makes what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SITE := build/docs/site
SITE_VENV := build/docs/venv
PYTEST_FLAGS ?=
# tests/conftest.py says how many workers fit; PYTEST_FLAGS="-n 0" is one process.
WORKERS = $(if $(findstring no:xdist,$(PYTEST_FLAGS)),,--numprocesses=auto)

.PHONY: help install demo test gate deep lint docs assets image release manifests proto lock format clean

help:
	@echo "make demo     gangs placed on an embedded fleet, no cluster needed"
	@echo "make test     every test, on a real control plane too"
	@echo "make gate     ratios of Muster's costs beside recorded bounds; minutes, on an idle machine"
	@echo "make deep     the property tests alone, 100,000 steps and more each"
	@echo "make lint     ruff, mypy, import contracts"
	@echo "make docs     the documentation as a site, in $(SITE)/"
	@echo "make install  everything into $(VENV)/"
	@echo "make assets   etcd, Kubernetes, a real node, the dialects' CRDs, cached outside the tree"
	@echo "make image    the container image as an archive, without Docker, in dist/"
	@echo "make release  image, wheel, chart, plugin, SBOM and checksums, in dist/"
	@echo "make manifests  webhook configurations, CRDs and schemas anew, as the code has them"
	@echo "make proto    muster/protogen/ anew from proto/"
	@echo "make lock     resolve the dependencies anew"

install: $(STAMP)

$(STAMP): pyproject.toml requirements/dev.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version 2>&1): Muster needs Python >= 3.11;" \
	       "name one with make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV)/"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --require-hashes --no-deps --requirement requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)
	@$(BIN)/muster demo

assets: $(STAMP)
	@$(BIN)/muster assets

# As make release, docs/release.md says what comes out.
image: $(STAMP)
	@$(BIN)/muster release image

release: $(STAMP)
	@$(BIN)/muster release

test: $(STAMP) assets
	$(BIN)/pytest --hypothesis-profile=ci --second-chance $(WORKERS) $(PYTEST_FLAGS)

# Not part of `make test`: a test is right or wrong, a ratio is measured (docs/loadtest.md).
gate: $(STAMP) assets
	$(BIN)/muster bench gate

# Each state machine takes more than 100,000 steps: tens of minutes, so no two minutes' limit.
deep: $(STAMP)
	$(BIN)/pytest --hypothesis-profile=deep --timeout=14400 $(WORKERS) tests/property $(PYTEST_FLAGS)

# Tests that only a machine with a GPU runs: nothing else would say that a name in them is gone.
ELSEWHERE = tests/contract/test_real_card.py $(addprefix tests/support/devices/,cdibox.py cudaprogram.py realcard.py)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=tests $(BIN)/mypy --explicit-package-bases --follow-imports=silent $(ELSEWHERE)
	$(BIN)/lint-imports

# Strict (mkdocs.yml): a broken link fails. A virtual environment of its own, since nothing else needs mkdocs.
docs: $(SITE_VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/python -m mkdocs build --strict --site-dir $(SITE)
	@echo "open $(SITE)/index.html"

$(SITE_VENV)/.installed: requirements/docs.txt
	@$(PYTHON) -m venv --clear $(SITE_VENV)
	@$(SITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --require-hashes --no-deps --requirement requirements/docs.txt
	@touch $@

# Committed so that kustomize needs no Python; a test compares them with what the code gives.
manifests: $(STAMP)
	@for folder in base components/second-scheduler; do { \
	  echo "# Made by \`make manifests\` from webhook/registration/configurations.py, which says why each field is so."; \
	  $(BIN)/python -m webhook --config manifests/$$folder/webhook-config.yaml \
	    --print-configurations; } > manifests/$$folder/webhook-configurations.yaml || exit 1; done
	@$(BIN)/python -m muster.injection.profiles.crd manifests

# Committed so that the device plugin needs no protoc; a test generates it again and compares.
proto: $(STAMP)
	@$(BIN)/python proto/generate.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python -m uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-header --extra deviceplugin --group test --group lint \
	  -o requirements/dev.txt pyproject.toml requirements/build.in
	$(BIN)/python -m uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-header --extra deviceplugin -c requirements/dev.txt -o requirements/runtime.txt pyproject.toml
	$(BIN)/python -m uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-header -c requirements/dev.txt -o requirements/build.txt requirements/build.in
	$(BIN)/python -m uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-header --group docs -o requirements/docs.txt
	$(BIN)/python -m uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-header -o loadtest/testbed/controlplane/gomodules/toolchain.txt loadtest/testbed/controlplane/gomodules/toolchain.in

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache \
	  .import_linter_cache .hypothesis
