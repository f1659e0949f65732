# Switchyard. `make help` lists what there is. Needs Python 3.11, make and the package registries; what else a
# target needs from the system, scripts/require installs (Debian, as root) or names.

PYTHON ?= python3.11
BIN := .venv/bin
NAME ?= log
# How many processes run tests side by side, each a module at a time and with services of its own.
JOBS ?= 2
BESIDE := --numprocesses $(JOBS) --dist loadfile
# Those of `make bench NAME=kafka` whose requirements clash with ours.
PEERS := arroyo faust quix
installed-for-kafka := $(PEERS:%=var/peers/%/.complete)
# What `make bench` wants from the system, where it is not Redis alone.
needs-of-kafka := java maven
needs-of-cluster := java maven
needs-of-pipeline := java
needs-of-requests := java maven redis nats-server

.DEFAULT_GOAL := help
.PHONY: help demo run test test-full lint format bench services lock reference proto screenshots clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(BIN)/.runtime ## start the whole system with sample tenants and live traffic
	@scripts/require java
	@SWITCHYARD_DATA_DIR=$${SWITCHYARD_DATA_DIR:-var/demo} exec $(BIN)/python manage.py up --demo

run: $(BIN)/.runtime ## start the whole system, empty
	@scripts/require java
	@SWITCHYARD_DATA_DIR=$${SWITCHYARD_DATA_DIR:-var/run} exec $(BIN)/python manage.py up

services: $(BIN)/.runtime ## start Kafka, PostgreSQL and Redis on loopback, until Ctrl-C
	@scripts/require --optional java maven postgresql redis
	@exec $(BIN)/python -m queuecore.testing.services

test: test-needs ## run the tests; long ones in their short tier. DATABASE=postgresql runs them on PostgreSQL
	$(call run-tests,-m "not full")

test-full: test-needs ## run all tests, the long tiers as well
	$(call run-tests)

# Those in a browser by themselves: each process would start a demo of its own for them, and two are too much.
define run-tests
	@export SWITCHYARD_TEST_DATABASE=$(DATABASE); status=0; set -x; \
	$(BIN)/pytest $(1) --ignore tests/e2e $(BESIDE) || status=$$?; \
	$(BIN)/pytest $(1) tests/e2e || status=$$?; \
	exit $$status
endef

# In CI a missing service is a failure; elsewhere its tests are skipped and the summary says why.
.PHONY: test-needs
test-needs: $(BIN)/.dev
	@scripts/require $(if $(filter true,$(CI)),,--optional) java maven postgresql redis chromium openssl kcat

lint: $(BIN)/.dev ## check everything that needs no running; changes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	SWITCHYARD_DATA_DIR=var/lint $(BIN)/python manage.py makemigrations --check --dry-run
	SWITCHYARD_DATA_DIR=var/lint SWITCHYARD_MODE=production SWITCHYARD_ALLOWED_HOSTS=switchyard.example.org \
		$(BIN)/python manage.py check --deploy --fail-level WARNING

format: $(BIN)/.dev ## format the code and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BIN)/.bench $(installed-for-$(NAME)) ## measure one group beside its peers: make bench NAME=log, a part of it by ONLY=acks
	@scripts/require --optional $(or $(needs-of-$(NAME)),redis)
	$(BIN)/python -m tests.benchmarks $(NAME) $(if $(ONLY),--only "$(ONLY)")

reference: $(BIN)/.dev ## make the generated documentation
	SWITCHYARD_DATA_DIR=var/lint $(BIN)/python manage.py settings_reference > docs/reference/settings.md
	$(BIN)/python -m scripts.library_reference > docs/reference/queuecore.md

proto: $(BIN)/.dev ## make the code of the .proto files
	scripts/generate-proto

screenshots: $(BIN)/.dev ## make the pictures of the documentation from the running demo
	@scripts/require java chromium
	$(BIN)/python -m tests.e2e.screenshots docs/images

lock: $(BIN)/.dev ## choose newest versions within pyproject.toml and lock them
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --upgrade -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --extra dev -c requirements.lock --upgrade -o requirements-dev.lock
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --extra bench -c requirements.lock --upgrade -o requirements-bench.lock
	for peer in $(PEERS:%=tests/benchmarks/peers/kafka/%); do \
		$(BIN)/uv pip compile $$peer.in $(LOCK) --upgrade -o $$peer.lock || exit 1; done
	$(BIN)/uv pip freeze | grep '^uv==' | $(BIN)/uv pip compile - $(LOCK) -o requirements-setup.lock

LOCK := --python-version 3.11 --generate-hashes --no-header --quiet

clean: ## remove the environment and all data under var/
	rm -rf .venv var

# Environments: the runtime's, with tests and tools, with benchmarks. Each is complete when its mark is there.
$(BIN)/.setup: requirements-setup.lock
	@command -v $(PYTHON) >/dev/null || { echo "Switchyard needs Python 3.11 as '$(PYTHON)'; install it or set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-setup.lock
	@touch $@

$(BIN)/.runtime: requirements.lock | $(BIN)/.setup
	$(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	@touch $@

$(BIN)/.dev: requirements-dev.lock | $(BIN)/.runtime
	$(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements-dev.lock
	@touch $@

$(BIN)/.bench: requirements-bench.lock | $(BIN)/.dev
	$(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements-bench.lock
	@touch $@

# A peer that cannot be installed is left out, and the table says so.
var/peers/%/.complete: tests/benchmarks/peers/kafka/%.lock | $(BIN)/.bench
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python var/peers/$* && \
		$(BIN)/uv pip install --quiet --compile-bytecode --require-hashes --python var/peers/$*/bin/python -r $< && \
		touch $@ || echo "$* cannot be installed, and is not measured"
