# Short names for what the presets and scripts do; nothing is built by make itself.
PREFIX ?= /usr/local

release dev asan tsan fuzz coverage:
	cmake --preset $@
	cmake --build --preset $@

# Every test, as CI begins; `make check` is all of CI.
test:
	script/test

check:
	.ci/run

# One preset's tests: make test-dev, test-asan, test-tsan, test-coverage.
test-%: %
	ctest --test-dir build/$* --output-on-failure

# The option structs and their manual, from src/options.def.
options:
	mkdir -p build
	$(CC) -std=c11 -Isrc -o build/options_gen tools/options_gen.c
	build/options_gen header >build/options.h && mv build/options.h include/nib/options.h
	build/options_gen manual >build/options.md && mv build/options.md docs/options.md

format:
	script/check-format --fix

install: release
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build

.DEFAULT_GOAL := release
.PHONY: release dev asan tsan fuzz coverage test check options format install clean
