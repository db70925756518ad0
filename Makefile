# Everything is made under .build/. Needs Python 3.10 or later with venv, git and make; npm for all PostgreSQL versions.
PYTHON ?= python3
CHECKS = $(PYTHON) tools/checks.py

# Fuzzer: how many inputs of each of the two kinds (FUZZ_EXAMPLES=30000).
FUZZ_EXAMPLES ?= 12000

# Server tests: versions (PG=16,18) and pytest's -k (K="idm or quo"). Integration: TARGETS="name ...".
PG ?=
K ?=
TARGETS ?=
comma = ,

# Benchmark: BENCH_PG=18 BENCH_SIZES=10x10,20x50 BENCH_ROUNDS=1 BENCH_TOOLS=none leave something out.
export BENCH_PG BENCH_SIZES BENCH_ROUNDS BENCH_TOOLS

.PHONY: help test lint sanity units integration server-tests faults load fuzz bench docs build demo demo-server clean

help:
	@echo "make test          everything: what CI runs"
	@echo "make demo          the story of a legacy login on an embedded PostgreSQL 18"
	@echo "make demo-server   the demo's database, left running to explore"
	@echo "make lint          ruff, mypy, generated files, changelog, ansible-lint"
	@echo "make sanity        ansible-test sanity       make units    ansible-test units"
	@echo "make integration   ansible-test integration (TARGETS=...)"
	@echo "make server-tests  tests against real servers (PG=16,18 K=expression)"
	@echo "make faults        faults at every statement, many more of them (PG=16,18): the table of docs/reliability.md"
	@echo "make load          the load test for long (PG=16,18 LOAD_ROUNDS=40): the other table there"
	@echo "make fuzz          bad input, more than 20,000 times (FUZZ_EXAMPLES=...)"
	@echo "make bench         speed beside other tools (BENCH_PG, BENCH_SIZES, BENCH_ROUNDS, BENCH_TOOLS): docs/benchmarks.md"
	@echo "make docs          the documentation in .build/docs/html"
	@echo "make build         the collection's archive in .build/dist"
	@echo "make clean         remove .build"

test:
	@$(CHECKS)

lint:
	@$(CHECKS) lint ansible-lint

sanity units integration:
	@$(CHECKS) $@ $(if $(TARGETS),--targets $(TARGETS))

server-tests:
	@$(CHECKS) $(if $(PG),$(addprefix server-,$(subst $(comma), ,$(PG))),server) $(if $(K),-k "$(K)")

faults:
	@bin=$$($(PYTHON) tools/environments.py dev) && "$$bin/python" tests/server/servers.py prepare $(subst $(comma), ,$(PG)) \
		&& FAULTS=long "$$bin/python" -m pytest -q $(if $(PG),--pg $(PG)) tests/server/test_faults.py

load:
	@bin=$$($(PYTHON) tools/environments.py dev) && "$$bin/python" tests/server/servers.py prepare $(subst $(comma), ,$(PG)) \
		&& LOAD=long "$$bin/python" -m pytest -q $(if $(PG),--pg $(PG)) -k test_twenty_runs_at_once tests/server/test_load.py

fuzz:
	@FUZZ=long FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(CHECKS) bad-input

bench:
	@bin=$$($(PYTHON) tools/environments.py dev) && "$$bin/python" tests/bench/bench.py

docs:
	@$(CHECKS) docs

build:
	@$(CHECKS) --build

demo demo-server:
	@bin=$$($(PYTHON) tools/environments.py demo) && PATH="$$bin:$$PATH" demo/run $(filter-out demo,$(@:demo-%=%))

clean:
	rm -rf .build/* .build
