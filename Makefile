# Two commands for a newcomer: make release, make test.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
HOME_DIR ?= data/home
READY := $(VENV)/.ready

.PHONY: install release test pytest lint types bench reproduce reference clean

install: $(READY)

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (about a minute the first time) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@$(BIN)/python -m pldp.flows.template
	@touch $@

release: install
	@$(BIN)/pldp sample data > /dev/null   # says what to run next, which is run here
	@$(BIN)/pldp release data/sample.yaml --home $(HOME_DIR)

# Types are checked beside the tests: alone they would leave a core idle for a minute. If either fails, so does this.
test: lint
	@$(MAKE) --no-print-directory --jobs=2 types pytest

pytest: install
	@# One process more than cores: tests of flows wait for servers. Files in the order of collection, those first.
	@$(BIN)/python -m pytest --numprocesses $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --dist loadfile --no-loadscope-reorder

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: install
	@$(BIN)/mypy

bench: install
	@$(BIN)/python -m bench

reproduce: install
	@$(BIN)/pldp reproduce all

reference: install   # the parts of docs/tables.md that follow from pldp/tables, and the spec's schema for editors
	@$(BIN)/python -m pldp.tasks.reference docs/tables.md
	@$(BIN)/python -m pldp.tasks.specschema docs/spec.md docs/spec.schema.json

clean:
	rm -rf data/home data/sample.parquet .mypy_cache .ruff_cache .pytest_cache .hypothesis
