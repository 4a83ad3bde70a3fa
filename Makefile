# Shortcuts; what they run is in setup.sh, CMakePresets.json and .ci/run.
JOBS ?= $(shell nproc)
# Most tests of the whole program wait more than they compute.
TEST_JOBS ?= $(shell echo $$((2 * $(JOBS) + 2)))
FUZZ_SECONDS ?= 20
FUZZ_COST_MINUTES ?= 1
PREFIX ?= /usr/local
CLANG_FORMAT ?= clang-format-14
CLANG_TIDY ?= clang-tidy-14
LINT_FILES ?= $(shell git ls-files '*.c')
# The thread sanitizer wants more predictable addresses than some kernels choose.
PLAIN_ADDRESSES = $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: help build run test asan tsan coverage fuzz fuzz-cost cost interop bench format format-check lint install clean \
        setup-tests

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.* ## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

build: ## install what the build needs, then build build/release/profcol
	@./setup.sh
	@cmake --preset release
	@cmake --build --preset release -j$(JOBS) --target profcol

run: build ## build, then start profcol with a demonstration
	@if [ -x examples/run.sh ]; then examples/run.sh; else build/release/profcol; fi

setup-tests:
	@./setup.sh --tests

test: setup-tests ## build the release and run all its tests
	cmake --preset release
	cmake --build --preset release -j$(JOBS)
	ctest --preset release -j$(TEST_JOBS)

asan: setup-tests ## the same under the address and undefined behaviour sanitizers
	cmake --preset asan
	cmake --build --preset asan -j$(JOBS)
	ctest --preset asan -j$(TEST_JOBS)

tsan: setup-tests ## those that start threads or the program, under the thread sanitizer
	cmake --preset tsan
	cmake --build --preset tsan -j$(JOBS)
	$(PLAIN_ADDRESSES) ctest --preset tsan -j$(TEST_JOBS)

coverage: setup-tests ## count which lines and branches the tests execute; writes docs/coverage.md
	./setup.sh --tests --dev
	cmake --preset coverage
	cmake --build --preset coverage -j$(JOBS)
	ctest --preset coverage -j$(TEST_JOBS)
	tests/coverage --files 20 --date "$$(date -u +%Y-%m-%d)." --write docs/coverage.md

fuzz: ## replay the fuzz seeds, then fuzz each target for FUZZ_SECONDS (20)
	./setup.sh --tests --dev
	cmake --preset fuzz
	cmake --build --preset fuzz -j$(JOBS)
	ctest --preset fuzz -j$(JOBS)
	@set -e; for file in $(wildcard tests/fuzz/fuzz_*.c); do \
	    name=$$(basename $$file .c); seeds=tests/fuzz/seeds/$$name; \
	    [ -d $$seeds ] || seeds=; \
	    mkdir -p build/corpus/$$name; \
	    echo "== $$name"; \
	    build/fuzz/tests/$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 \
	        -print_final_stats=1 -artifact_prefix=build/corpus/ build/corpus/$$name $$seeds; \
	done

fuzz-cost: ## look for requests that are expensive for their size, FUZZ_COST_MINUTES (1) of processor time for each path
	./setup.sh --tests --dev
	cmake --preset fuzz-cost
	cmake --build --preset fuzz-cost -j$(JOBS)
	tests/fuzz/cost/run --minutes $(FUZZ_COST_MINUTES) $(FUZZ_COST_ARGUMENTS)

cost: build ## count the instructions of the most expensive requests with callgrind; takes about a quarter of an hour
	@cmake --build --preset release -j$(JOBS)
	@tests/cost/run --jobs $(JOBS) $(COST_ARGUMENTS)

interop: build ## run against other collectors, backends and SDKs
	@[ -x tests/interop/run.sh ] || { echo "tests/interop/run.sh is not there yet" >&2; exit 1; }
	@tests/interop/run.sh

bench: build ## compare with a real Collector; takes about ten minutes; more: bench/compare --help
	@cmake --build --preset release -j$(JOBS) --target bench
	@bench/compare --quick $(BENCH_ARGUMENTS)

format: ## format all C files
	git ls-files '*.c' '*.h' | xargs -r $(CLANG_FORMAT) -i

format-check: ## fail if a C file is not formatted
	git ls-files '*.c' '*.h' | xargs -r $(CLANG_FORMAT) --dry-run -Werror

lint: ## clang-tidy on all C files, or on LINT_FILES; ./setup.sh --tests --dev installs what it needs
	cmake --preset dev
	cmake --build --preset dev --target proto
	@printf '%s\n' $(LINT_FILES) | xargs -r -n 1 -P $(JOBS) $(CLANG_TIDY) --quiet -p build/dev

install: build ## copy the program to PREFIX (/usr/local)
	cmake --install build/release --prefix $(PREFIX)

clean: ## remove everything that was built, and the tests' Python
	rm -rf build
