# The tasks of this checkout; `make help` lists them. ARGS is passed to pytest: make bench ARGS="--db-seed 7".
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Each of the processes that a check starts would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help setup images servers tools bench test thorough guests remote chaos suites drbd published benchmarks report pictures docs lint clean

BIN := .venv/bin
ARGS ?=
MAIN_RELEASE := mariadb:10.11
# Programs of Debian's packages that tests need.
CHROMIUM := scripts/program.sh chromium chromium "tests of the page"
# Ubuntu has another package for each kernel.
PERF := ! apt-cache show linux-perf >/dev/null 2>&1 || scripts/program.sh perf linux-perf "tests of CPU samples"
SSH := scripts/ping.sh && scripts/program.sh ssh openssh-client "tests on hosts with ssh"
# The other releases of suites and tests.
OTHER_RELEASES := mariadb:10.5 mariadb:11.8 mysql:9.7
# The releases of tests in containers.
IMAGES := mariadb:10.11 mysql:9.7
RESULTS := reports/latest
# Holds the reason why container tests did not run; the file does not exist if they ran.
UNTESTED := .venv/untested.txt
# With the name of a report, tests that fail run again alone: see tests/support/unsteady.py. Only .ci/run asks for it.
TUTORIAL = tests/whole/test_tutorial.py
PYTEST = $(BIN)/$(if $(DBCLUSTER_UNSTABLE),python -m tests.support.unsteady $(DBCLUSTER_UNSTABLE),pytest)
# Claims of other suites for the thorough check; make suites runs all claims.
FLAGSHIPS := "suites/galera/test_conflicts.py::test_one_writer_aborts_less[tpcc]" \
	"suites/innodb_cluster/test_router.py::test_direct_reads_beat_the_router[key]" \
	"suites/replication/test_semisync.py::test_async_beats_semisync[mariadb:10.11-write]"
# Without the scripts that take longer (noise, calibration of the table): see benchmarks/README.md.
SPEED = $(addprefix benchmarks/,bring_up.py round_cost.py plugin_cpu.py collection.py start_up.py time_to_verdict.py first_verdict.py quick_paper.py \
	tpcc_client.py tpcc_load.py tpcc_bring_up.py ledger_cost.py parallel.py container.py guests.py)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv with the project and its packages; other targets run this when they need it
	@scripts/setup.sh

images: setup ## set up, start the container engine if permitted, and build the images of the main releases
	@scripts/engine.sh
	@$(BIN)/dbcluster image build $(IMAGES)

servers: ## fetch servers that only tests use and no apt source has: MariaDB 11.4.5, 149 MB
	@scripts/servers.sh

bench: setup ## set up, fetch the server, and run the main claims: pytest suites/galera -k flush
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) haproxy
	$(BIN)/pytest suites/galera -k flush $(ARGS)

tools: setup ## set up, fetch servers and tools, build images: what the tests need
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) $(OTHER_RELEASES) sysbench haproxy pt-online-schema-change
# Without an engine container tests are skipped, and the last lines give the reason. With an engine, CI requires the images.
	@if scripts/engine.sh 2>&1 | tee $(UNTESTED); then \
		$(BIN)/dbcluster image build $(IMAGES) 2>&1 | tee $(UNTESTED) && rm $(UNTESTED) || [[ -z $${CI:-} ]]; fi
# Without the kernel of guests their tests are skipped, each with the reason; CI requires it.
	@$(BIN)/dbcluster fetch vm || [[ -z $${CI:-} ]]
# Without stand-in hosts, which take root, and ssh their tests are skipped, each with the reason; CI requires both.
	@{ $(BIN)/dbcluster fetch stand-in && $(SSH); } || [[ -z $${CI:-} ]]
# Without Chromium the tests that open the page are skipped, each with the command that installs it.
	@$(CHROMIUM) || true
# Without perf the tests of CPU samples are skipped, each with the reason.
	@$(PERF) || true
# Without Allure the tests of its page are skipped, each with the reason.
	@$(BIN)/dbcluster fetch allure || true

test: tools ## set up, fetch servers and tools, build images, and run the plugin's own tests and a claim
# Tests of servers wait more than they compute: six workers keep two cores busy.
	DBCLUSTER_PICTURES=$(RESULTS)/pictures $(PYTEST) tests -n 6 --dist loadfile --ignore $(TUTORIAL)
# Its reader has the machine alone: beside other tests its claims about speed may stay without an answer.
	$(PYTEST) $(TUTORIAL)
# A claim about flushing in containers, or on processes without an engine; make bench asks all of them on processes.
	@engine=$$([[ -e $(UNTESTED) ]] || echo "--db-provisioner container"); set -x; \
		$(BIN)/pytest suites/galera -k "flush and write" $$engine --db-budget 15 $(ARGS)
	@scripts/untested.sh $(UNTESTED)

thorough: tools ## run the tests of further vendors, topologies and provisioners, and those in a longer form
	$(PYTEST) tests -m "thorough and not guests and not remote and not chaos" -n 6 --dist loadfile --ignore $(TUTORIAL)
	$(PYTEST) $(TUTORIAL) -m thorough
	$(BIN)/pytest suites/galera -k "flush and update" $(ARGS)
	$(BIN)/pytest $(FLAGSHIPS) --db-budget 12 --db-results $(RESULTS)/flagships $(ARGS)
	@scripts/untested.sh $(UNTESTED)

guests: setup ## fetch the kernel of guests, and run the tests and a claim in virtual machines that take minutes
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) mysql:9.7 haproxy vm
# Without ssh and mmdebstrap no guest boots with cloud-init: these tests are skipped, each with the reason.
	@$(SSH) || true
	$(BIN)/pytest tests -m guests
	$(BIN)/pytest suites/galera -k "flush and write" --db-provisioner vm --db-results $(RESULTS)/guests $(ARGS)

remote: setup ## run the tests and claims on hosts elsewhere, on stand-in hosts: machines with an ssh server that are namespaces of this one, and on a stand-in for EC2
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) $(OTHER_RELEASES) sysbench haproxy stand-in
	@$(SSH)
	$(BIN)/pytest tests -m remote
	$(BIN)/python -m tests.support.stand_ins run --hosts 3 --load 1 --private -- \
		$(BIN)/pytest suites/galera -k flush --db-provisioner ssh --db-results $(RESULTS)/remote $(ARGS)
	$(BIN)/python -m tests.support.ec2_stand_in -- \
		$(BIN)/pytest suites/galera -k flush --db-provisioner ec2 --db-max-cost 5 --db-results $(RESULTS)/ec2 $(ARGS)

chaos: setup ## kill runs at each of their phases, cut clusters apart under load, and let random events happen, many times (DBCLUSTER_CHAOS=N: how many times each)
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) $(OTHER_RELEASES) sysbench haproxy
# Without the kernel of guests, stand-in hosts and ssh their tests are skipped, each with the reason.
	@$(BIN)/dbcluster fetch vm || true
	@{ $(BIN)/dbcluster fetch stand-in && $(SSH); } || true
	$(BIN)/pytest tests -m chaos $(ARGS)

suites: setup ## run all claims of suites/ that need no guests
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) $(OTHER_RELEASES) sysbench haproxy
	$(BIN)/pytest suites $(ARGS)

drbd: setup ## draw the charts of DRBD and ask its claims, in virtual machines: pytest suites/drbd
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) sysbench vm
	$(BIN)/pytest suites/drbd $(ARGS)

published: setup ## measure the published suites, and store their results for the site; takes hours, resumable (ARGS selects claims)
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) $(OTHER_RELEASES) sysbench haproxy
# Without the kernel of guests the claims of DRBD are skipped, and stay as they are on the site.
	@$(BIN)/dbcluster fetch vm || true
	@scripts/published.sh $(ARGS)

benchmarks: setup ## measure the plugin's own speed with the scripts of benchmarks/
	@$(BIN)/dbcluster fetch $(MAIN_RELEASE) mysql:9.7 sysbench vm
	for script in $(SPEED); do echo "== $$script"; $(BIN)/python "$$script"; done

report: setup ## make the page of the last results (without any: runs the main claims first), and Allure's if it was fetched (ARGS=--allure fetches it)
	@[[ -e $(RESULTS)/run.json ]] || { echo "report: no results in $(RESULTS) yet: running the main claims first (make bench)"; \
		$(MAKE) --no-print-directory bench ARGS= || [[ -e $(RESULTS)/run.json ]]; }
	@$(BIN)/dbcluster report $(RESULTS) $(ARGS)

pictures: setup ## ask the claims about flushing and writes, and make the pictures of the documentation (ARGS="--results DIR" draws an earlier run)
	@$(CHROMIUM)
	@[[ "$(ARGS)" == *--results* ]] || $(BIN)/dbcluster fetch $(MAIN_RELEASE) haproxy
	@$(BIN)/python scripts/pictures.py $(ARGS)

docs: setup ## build the documentation into docs/_build/html
	$(BIN)/sphinx-build -W -n --keep-going -q docs docs/_build/html

lint: setup ## check style, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

clean: ## remove generated files of this checkout; `dbcluster cache clean` removes the fetched servers
	rm -rf .venv dist $(RESULTS) docs/_build docs/reference/generated docs/published/generated .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
