# Every target creates .venv and builds what it needs; `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
NATIVE := $(shell find native CMakeLists.txt -type f)
SOURCES := $(NATIVE) $(shell find src -type f -not -path '*/__pycache__/*') pyproject.toml README.md LICENSE
CMAKE_OPTIONS := -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DSKBUILD_PROJECT_VERSION=0 \
	-DTREELM_PYTHON=OFF -DTREELM_WERROR=ON
# ccache does not know what a precompiled header holds.
PRECOMPILE := --config-settings=cmake.define.TREELM_PRECOMPILE=$(if $(CMAKE_CXX_COMPILER_LAUNCHER),OFF,ON)
NATIVE_READERS := brackets arpa tables phrases saved_phrases
PYTHON_READERS := forest manifest safetensors
EXECUTIONS ?= 20000
MUTANTS ?= 1000
TRIES ?= 2000
SEED ?= 1
DATA ?= ../shared/data

.DEFAULT_GOAL := help
.PHONY: help install wheel demo pretrained check test test-adapters test-cluster test-native test-web test-versions audit lint format sanitize fuzz forge attack reference docs bench bench-peers report clean

help: ## List what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install --group dev
	@touch $@

# The native tests come with the same build, so that nothing is compiled twice.
$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	$(PIP) install --no-build-isolation --config-settings=build-dir=build/release \
		--config-settings=cmake.define.TREELM_TESTS=ON --config-settings=cmake.define.TREELM_WERROR=ON $(PRECOMPILE) .
	@touch $@

install: $(VENV)/.installed ## Create .venv and build treelm into it

wheel: install ## Build a wheel, and say on which systems it runs (auditwheel)
	$(PIP) install --group wheels
	rm -rf build/wheel
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/wheel \
		--config-settings=build-dir=build/release .
	$(BIN)/auditwheel show build/wheel/*.whl

# The models are installed beside .venv, which the tests need as it is.
demo: install ## Show what treelm and its English models do
	$(PIP) install --upgrade --no-build-isolation --no-deps --target build/models packages/treelm-en
	PYTHONPATH=build/models $(BIN)/treelm demo

pretrained: install ## Train the models of packages/treelm-en again; resumes (DATA=../shared/data)
	$(BIN)/python packages/treelm-en/train.py --data $(DATA) --work build/treelm-en

check: lint ## The fast lane: lint and the quick tests, about two minutes
	$(BIN)/python -m pytest -n auto --dist worksteal -q -m "not slow"

test: install test-native ## Run the whole test suite, native tests included
	$(BIN)/python -m pytest -n auto --dist worksteal

# treelm is there already, so pip installs what the extra adds.
test-cluster: install ## Run the tests of many workers with Ray, which is installed for them
	$(PIP) install "treelm[cluster]"
	$(BIN)/python -m pytest tests/parallel tests/cli/test_engines.py tests/cli/test_ray.py \
		tests/models/test_training_workers.py tests/models/test_count_shards.py \
		tests/models/test_treelet_count_shards.py tests/models/test_worker_faults.py tests/corpus/test_remote_files.py tests/store/test_shared_folder.py

# Each group of packages has an environment of its own; all share the wheel. pyctcdecode 0.5 asks for numpy below 2
# without needing it, so what it asks for is not installed with it. TORCH chooses a build of torch: one without GPUs is
# far smaller, for example TORCH=torch==2.13.0+cpu.
ADAPTERS ?= ctc neural harness stanza
TORCH ?= torch
ADAPTER_PACKAGES_ctc := kenlm pygtrie
ADAPTER_PACKAGES_neural := $(TORCH) transformers
ADAPTER_PACKAGES_harness := lm-eval $(TORCH) transformers
ADAPTER_PACKAGES_stanza := stanza $(TORCH) nltk
ADAPTER_ALONE_ctc := pyctcdecode
ADAPTER_TESTS_ctc := tests/interop/test_kenlm.py tests/interop/test_pyctcdecode.py
ADAPTER_TESTS_neural := tests/models/test_neural.py tests/experiments/test_neural_anchor.py
ADAPTER_TESTS_harness := tests/interop/test_harness.py
ADAPTER_TESTS_stanza := tests/interop/test_stanza_trees.py tests/interop/test_parsers.py
test-adapters: install ## Run the tests beside large or conflicting packages, each group in its own environment
	rm -rf build/adapters && mkdir -p build/adapters
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/adapters \
		--config-settings=build-dir=build/release .
	set -e; $(foreach name,$(ADAPTERS),here=build/adapters/$(name); $(BIN)/python -m venv $$here; \
		pip="$$here/bin/python -m pip --disable-pip-version-check --quiet install"; \
		$$pip build/adapters/*.whl pytest hypothesis sacrebleu $(ADAPTER_PACKAGES_$(name)); \
		$(if $(ADAPTER_ALONE_$(name)),$$pip --no-deps $(ADAPTER_ALONE_$(name));) \
		$$here/bin/python -m pytest $(ADAPTER_TESTS_$(name)) tests/examples;)

# The browser is the system's chromium, or what TREELM_CHROMIUM names. The rules of accessibility come from the
# package axe-core, if npm can get it; without them those tests are skipped.
test-web: install ## Run the tests of the playground in a real Chromium, with screenshots in build/web
	$(PIP) install --group browser
	mkdir -p build/web && cd build/web && (test -f package/axe.min.js || \
		(npm pack --silent axe-core && tar -xzf axe-core-*.tgz) || true)
	TREELM_AXE=$(abspath build/web/package/axe.min.js) TREELM_SCREENSHOTS=$(abspath build/web) \
		$(BIN)/python -m pytest tests/web

test-native: install ## Run the C++ unit tests
	build/release/native/tests/treelm_tests

lint: install ## Check format, lint and types, Python and C++
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest treelm._native --allowlist tests/architecture/stubtest_allowlist.txt
	$(BIN)/clang-format --dry-run -Werror $(filter %.h %.cpp,$(NATIVE))

# Fails, too, where the database of advisories cannot be reached.
audit: install ## Look for insecure code (bandit) and for known holes in the dependencies (pip-audit)
	$(PIP) install --group audit
	$(BIN)/bandit --quiet --recursive src --configfile pyproject.toml
	mkdir -p build && $(BIN)/python -m pip freeze --exclude treelm > build/installed.txt
	$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement build/installed.txt

test-versions: install ## Run the quick tests with the lowest and the newest dependencies that are allowed
	$(PIP) install --group versions
	rm -rf build/versions && mkdir -p build/versions
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/versions \
		--config-settings=build-dir=build/release .
	set -e; for which in lowest-direct highest; do \
		here=build/versions/$$which; $(BIN)/python -m venv $$here; \
		$(BIN)/uv pip compile --quiet --resolution $$which --python $$here/bin/python --extra all \
			--group test --output-file $$here/requirements.txt pyproject.toml; \
		$$here/bin/python -m pip --disable-pip-version-check --quiet install \
			--requirement $$here/requirements.txt build/versions/*.whl; \
		$$here/bin/python -m pytest -n auto -q -m "not slow" \
			--ignore tests/architecture --ignore tests/documentation; done

format: $(VENV)/.tools ## Rewrite Python and C++ in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(filter %.h %.cpp,$(NATIVE))

# What disks, signals and streams do to the program, `make test` has shown; sanitizers look into kernels.
sanitize: $(VENV)/.installed ## Run native and hostile tests and forged models under the address and UB sanitizers
	$(PIP) install --no-build-isolation --no-deps --upgrade --target build/sanitized-package \
		--config-settings=build-dir=build/sanitize --config-settings=cmake.build-type=RelWithDebInfo \
		--config-settings=cmake.define.TREELM_SANITIZE=ON --config-settings=cmake.define.TREELM_TESTS=ON \
		--config-settings=cmake.define.TREELM_FUZZ=ON --config-settings=cmake.define.TREELM_WERROR=ON \
		--config-settings=install.strip=false $(PRECOMPILE) .
	build/sanitize/native/tests/treelm_tests
	set -e; for reader in $(NATIVE_READERS); do \
		build/sanitize/native/fuzz/treelm_fuzz_$$reader -runs=3000 -artifact_prefix=build/sanitize/; done
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build/sanitized-package TREELM_SANITIZED=1 \
		$(BIN)/python -m pytest tests/hostile tests/fuzz/test_forged_models.py -q -n auto --dist worksteal \
		$(addprefix --ignore=tests/hostile/test_hostile_,campaigns.py model_saving.py processes.py)

fuzz: $(VENV)/.installed ## Attack every reader with EXECUTIONS=20000 inputs each, SEED=1
	$(BIN)/cmake -S . -B build/fuzz $(CMAKE_OPTIONS) -DTREELM_TESTS=OFF -DTREELM_FUZZ=ON -DTREELM_SANITIZE=ON \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo
	$(BIN)/cmake --build build/fuzz
	set -e; mkdir -p build/fuzz/findings; \
	options="-runs=$(EXECUTIONS) -seed=$(SEED) -artifact_prefix=build/fuzz/findings/"; \
	for reader in $(NATIVE_READERS); do \
		mkdir -p build/fuzz/corpus/$$reader; \
		build/fuzz/native/fuzz/treelm_fuzz_$$reader -max_len=4096 $$options build/fuzz/corpus/$$reader; done; \
	for reader in $(PYTHON_READERS); do $(BIN)/python -m tests.fuzz.fuzz_$$reader $$options; done

forge: install ## Forge MUTANTS=1000 model folders of every system, counts and checkpoints, SEED=1, then use them
	mkdir -p build/forge
	$(BIN)/python tests/fuzz/forge_campaign.py --mutants $(MUTANTS) --seed $(SEED) --output build/forge/findings.jsonl

attack: install ## Kill trainings and writers, and run commands in odd environments, TRIES=2000 each, SEED=1
	mkdir -p build/attack
	$(BIN)/python tests/fuzz/kill_campaign.py --tries $(TRIES) --seed $(SEED) --output build/attack/kills.jsonl
	$(BIN)/python tests/fuzz/environment_campaign.py --tries $(TRIES) --seed $(SEED) \
		--output build/attack/environments.jsonl

reference: install ## Write the pages that are made from the program
	$(BIN)/python -m treelm.cli.reference > docs/reference/command-line.md
	$(BIN)/python docs/make_api_reference.py
	$(BIN)/python docs/make_option_tables.py

docs: $(VENV)/.tools ## Build the documentation site into site/
	$(PIP) install --group docs
	$(BIN)/zensical build --clean
	$(BIN)/python docs/check_site.py site

bench: install ## Measure speed; prints throughput and ratios
	$(BIN)/python benchmarks/trees.py

bench-peers: install ## Measure beside the peers found here (KENLM, BERKELEY_PARSER), and write the tables of the page
	$(BIN)/python benchmarks/peers.py

report: install ## Write build/reproduction.html: every claim and table of the papers beside what was measured here
	$(BIN)/python experiments/cells/cells_page.py
	$(BIN)/python experiments/cells/cells_report.py

clean: ## Remove everything that was built
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
