# The verbs of the project. `make` alone lists them.
PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
programs = takt takt-shim takt-load emulator/libnvidia-ml.so.1

.DEFAULT_GOAL := help
.PHONY: help run build test crash simulate bench lint format asan tsan install clean packages

help: ## list these verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

packages:
	@scripts/install-packages.sh build run test

run: build ## install what is missing, build, and show a day in small (ARGS=--keep leaves the server up)
	@scripts/demo.sh $(ARGS)

build: packages ## build/release: takt, takt-shim, takt-load and the emulated NVML library
	@scripts/build.sh release $(programs)

test: packages ## build everything and run all tests
	@scripts/build.sh release
	@ctest --test-dir build/release -j $$(nproc) --output-on-failure --no-tests=error

crash: packages ## kill controller, agent and shims in 200 rounds; prints the crash table
	@scripts/build.sh release crash_test
	@TAKT_CRASH_ROUNDS=200 build/release/tests/crash/crash_test

simulate: packages ## play 10,000 seeds of 1,000 steps under faults; exits 1 on the first violation
	@scripts/build.sh release takt
	@build/release/takt simulate --seeds 10000 --steps 1000

bench: packages ## run every benchmark; results in build/bench/*.json
	@scripts/build.sh release
	@scripts/bench.sh

lint: ## check layout and code of what differs from main (ALL=1: of everything)
	@scripts/install-packages.sh build run test lint
	@test -f build/release/build.ninja || scripts/build.sh release build.ninja
	@ALL=$(ALL) scripts/lint.sh

format: ## lay out all code
	@scripts/install-packages.sh lint
	@find src emulator tests bench -name '*.cpp' -o -name '*.h' -o -name '*.c' | xargs clang-format -i

asan: packages ## all tests with the address and undefined-behaviour sanitizers
	@scripts/build.sh asan
	@ctest --test-dir build/asan -j $$(nproc) --output-on-failure --no-tests=error

tsan: packages ## all tests with the thread sanitizer
	@scripts/build.sh tsan
	@ctest --test-dir build/tsan -j $$(nproc) --output-on-failure --no-tests=error

install: build ## install below PREFIX (/usr/local), with a systemd unit that is not started
	@install -D -m 755 build/release/takt $(DESTDIR)$(PREFIX)/bin/takt
	@install -D -m 755 build/release/takt-shim $(DESTDIR)$(PREFIX)/bin/takt-shim
	@install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	@sed 's,@PREFIX@,$(PREFIX),g' scripts/takt.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/takt.service
	@echo "installed below $(DESTDIR)$(PREFIX); start it with: systemctl enable --now takt"

clean: ## delete everything that was built
	@rm -rf build
