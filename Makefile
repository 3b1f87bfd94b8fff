# All tasks of developers and of the pipeline. `make` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# SQLite is C. Without this setting and without a C compiler, Go would silently build a binary without SQLite.
export CGO_ENABLED := 1
# Without paths in build outputs, the upgrade test, which builds an earlier version from another directory, reuses most
# of Go's cache.
export GOFLAGS := $(shell $(GO) env GOFLAGS)
ifeq ($(filter -trimpath%,$(GOFLAGS)),)
GOFLAGS += -trimpath
endif
# sqlite_stat4 lets SQLite's planner use the frequency of single values instead of averages (docs/decisions/0026).
# grpcnotrace leaves out gRPC's trace pages, which are not served and would keep every exported method in the program
# (docs/decisions/0028).
TAGS := sqlite_stat4,grpcnotrace
ifeq ($(findstring $(TAGS),$(GOFLAGS)),)
GOFLAGS += -tags=$(TAGS)
endif

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
# Without debug symbols the program is a third smaller. Stack traces, profiles and `palisade version` do not need them.
LDFLAGS := -s -w -X github.com/palisade/palisade/services/config.Version=$(VERSION)
FUZZTIME ?= 10000x
TOOLS := $(CURDIR)/bin/tools
BUF := $(TOOLS)/buf
BASELINE := proto/baseline.binpb
MODULES := . cmd/palisade-bench .ci/tools .ci/tools/dex
# Hand-written files, for the spell check.
WRITTEN := '*.go' '*.md' '*.proto' .ci Makefile ':!gen' ':(glob)!ent/*.go' ':!*testdata*' ':!proto/third_party'
# Packages whose functions must be called. ent/schema is not among them: only code generation reads it.
CALLED := ^github.com/palisade/palisade/(cmd|services|ent/(tenant|catalog|migrate))
GENERATED := gen ent proto/third_party docs/configuration.md go.mod go.sum services/console/dist

# Steps of check must not run concurrently: one generates files that the next one reads.
.NOTPARALLEL:
.PHONY: help run demo build size console console-dev console-test console-bench screenshots test quick test-race test-race-all test-deep check check-deep outdated lint lint-texts lint-protos lint-go lint-deep fields generate generate-check error-reasons tools tidy baseline \
	migration migration-sums fuzz hostile bench bench-check bench-postgres bench-peers bench-identity clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build and serve: SQLite in ./data, loopback only (ARGS="--http …" for more)
	bin/palisade serve $(ARGS)

demo: build ## serve an empty store, upload a real report, print what to try; nothing is kept
	.ci/demo

# A freshly linked program is in the page cache in 2 MB pages. Touching a byte of one counts 2 MB as memory in use: 20
# to 60 MB more in total. An installed program or a copy does not have this effect.
define build-program
	@mkdir -p bin
	$(GO) -C cmd/$(1) build $(2) -o $(CURDIR)/bin/$(1) .
	@cat bin/$(1) > bin/$(1).copy && chmod +x bin/$(1).copy && mv bin/$(1).copy bin/$(1)
endef

build: ## build bin/palisade
	$(call build-program,palisade,-ldflags '$(LDFLAGS)')

console: ## build the web console into services/console/dist; installs node if it is missing
	.ci/console build

console-dev: ## the console with hot reload beside a running server: PALISADE_URL=… PALISADE_TOKEN=… make console-dev
	.ci/console dev

console-test: build ## test the console in Chromium against bin/palisade; installs node and Chromium if they are missing
	PALISADE_BINARY=$(CURDIR)/bin/palisade .ci/console test $(ARGS)

console-bench: build ## measure the console in Chromium with a million findings (FINDINGS=50000, or STORE=… made by palisade-bench seed)
	$(call build-program,palisade-bench)
	PALISADE_BINARY=$(CURDIR)/bin/palisade PALISADE_BENCH=$(CURDIR)/bin/palisade-bench \
		CONSOLE_BENCH_FINDINGS=$(FINDINGS) CONSOLE_BENCH_STORE=$(abspath $(STORE)) .ci/console bench $(ARGS)

screenshots: build ## take the pictures of the README
	PALISADE_BINARY=$(CURDIR)/bin/palisade .ci/console screenshots

test: ## run the tests, on SQLite and a temporary PostgreSQL, and one in Chromium; the deep ones are in test-deep
	.ci/test $(TESTFLAGS)

quick: ## test some packages on SQLite and compile the ones that import them: make quick PKG=./services/scans/...
	@[[ -n "$(PKG)" ]] || { echo 'usage: make quick PKG=./services/scans/...' >&2; exit 2; }
	.ci/test --quick $(PKG)

test-race: ## run the tests of the packages with much concurrency with the race detector, on both databases
	.ci/test --race $(TESTFLAGS)

test-race-all: ## run all tests on SQLite with the race detector
	.ci/test --race-all $(TESTFLAGS)

test-deep: ## run the tests that kill, wait, measure and fill, and the ones with a size at full size
	.ci/test --deep $(TESTFLAGS)

check: ## what the pipeline checks: generated files are current, lint, size, test; a quarter of an hour
	@MAKE='$(MAKE)' .ci/check

check-deep: lint-deep test-race test-race-all test-deep fuzz bench-check hostile console-test outdated ## everything else, before an issue is done and before a release

outdated: ## list direct modules that have a newer version; never fails
	@.ci/outdated

lint-texts: ## gofmt, and plain English; needs no tools
	@unformatted=$$(gofmt -l cmd services ent/schema .ci/tools); \
		if [[ -n $$unformatted ]]; then echo "gofmt these files:"; echo "$$unformatted"; exit 1; fi
	$(GO) -C .ci/tools run ./plain $(CURDIR)

lint-protos: tools ## buf lint, format and breaking
	$(BUF) lint
	$(BUF) format --diff --exit-code --path proto/palisade
	@if [[ -e $(BASELINE) ]]; then \
		echo '$(BUF) breaking --against $(BASELINE)'; \
		current=$$(mktemp --suffix=.binpb); trap 'rm -f "$$current"' EXIT; \
		$(BUF) build --path proto/palisade --exclude-source-info -o "$$current"; \
		$(BUF) breaking "$$current" --against $(BASELINE) --exclude-imports --config buf.yaml; \
	else \
		echo 'no release yet, hence no $(BASELINE) to break'; \
	fi

lint: lint-texts lint-protos lint-go ## formats, plain English, protos, go vet, staticcheck, spelling, fields without effect

lint-go: tools ## go vet, staticcheck, spelling, fields without effect
	git ls-files -z -- $(WRITTEN) | xargs -0 $(TOOLS)/misspell -error -i noteable,descripton
	$(GO) -C .ci/tools test ./plain ./fields ./verdict
	$(GO) -C .ci/tools run ./fields $(CURDIR)
	$(GO) vet ./...
	$(TOOLS)/staticcheck ./...

lint-deep: tools ## what takes long and rarely finds something: go mod tidy, unused parameters, functions that nothing calls
	@for module in $(MODULES); do echo "go -C $$module mod tidy -diff"; $(GO) -C $$module mod tidy -diff; done
	$(TOOLS)/unparam -tests=false ./cmd/... ./services/...
	@# From there the workspace shows both modules; what only tests call counts as called.
	@dead=$$(cd cmd/palisade-bench && $(TOOLS)/deadcode -test -filter '$(CALLED)' ./... ../../...); \
		if [[ -n $$dead ]]; then echo "nothing calls these:"; echo "$$dead"; exit 1; fi

# The program has 90 MB (2 MB are the console, 3 MB gitleaks), and 35 MB more when something calls methods by
# a name that the linker cannot know. This shows what:
# go build -ldflags=-dumpdep ./cmd/palisade 2>&1 | grep '<ReflectMethod>'
size: build ## fail when bin/palisade is larger than 91 MB
	@bytes=$$(stat -c %s bin/palisade); echo "bin/palisade: $$((bytes / 1000000)) MB"; (( bytes <= 91000000 ))

fields: ## list all fields of requests, responses, stored messages and tables with a writer and a reader of each
	@$(GO) -C .ci/tools run ./fields -list $(CURDIR)

generate: tools ## regenerate gen/, ent/, proto/third_party, docs/configuration.md and, where node is, services/console/dist
	$(GO) run ./proto/third_party/print.go
	$(BUF) generate
	$(GO) generate ./ent
	$(GO) run ./cmd/palisade config-table --output docs/configuration.md
	.ci/console --optional build

error-reasons: ## after a handler returns another kind of error: derive what OpenAPI lists, before generate
	$(GO) -C .ci/tools run ./apierrors $(CURDIR) > bin/reasons.tsv
	mv bin/reasons.tsv cmd/protoc-gen-palisade-openapi/internal/apidoc/reasons.tsv

generate-check: generate ## fail if the committed or staged generated files are not current
	git diff --exit-code -- $(GENERATED)
	@untracked=$$(git ls-files --others --exclude-standard -- $(GENERATED)); \
		if [[ -n $$untracked ]]; then echo "made by generate, but not in git:"; echo "$$untracked"; exit 1; fi

tools: $(TOOLS)/.installed ## build the tools of .ci/tools/go.mod and the protoc plugins into bin/tools
	@$(GO) build -o $(TOOLS)/ ./cmd/protoc-gen-*

$(TOOLS)/.installed: .ci/tools/go.mod .ci/tools/go.sum
	@mkdir -p $(TOOLS)
	$(GO) -C .ci/tools build -ldflags '-s -w' -o $(TOOLS)/ tool
	@touch $@

tidy: ## tidy go.mod and go.sum of all three modules
	@for module in $(MODULES); do $(GO) -C $$module mod tidy; done

# buf compares images of a single module only, and our workspace has two (the second has the third-party protos).
# Therefore both sides are images, here and in lint.
baseline: tools ## at a release: store the contract that later changes must not break
	$(BUF) build --path proto/palisade --exclude-source-info -o $(BASELINE)

migration: ## write the migrations from the last schema to ent/schema: make migration NAME=add_rules
	@[[ -n "$(NAME)" ]] || { echo 'usage: make migration NAME=what_changes' >&2; exit 2; }
	.ci/with-postgres $(GO) run -mod=mod ./ent/migrate/main.go $(NAME)

migration-sums: ## rewrite the checksums of the migrations, after a new one was edited by hand
	$(GO) run -mod=mod ./ent/migrate/main.go

fuzz: ## run every fuzz target for FUZZTIME (10000x, or a time such as 1m); one package: .ci/fuzz DIRECTORY
	FUZZTIME=$(FUZZTIME) .ci/fuzz

# A quick run: ARGS="--findings 50000 --growth 10000 --rounds 3 --large-bytes 50000000 --dependencies 50000
# --report-findings 50000"; some parts: ARGS="--only pages,deep".
bench: ## measure the hot paths with a million findings, print the ratios and their limits (ARGS=--help for more)
	$(call build-program,palisade-bench)
	bin/palisade-bench $(ARGS)

hostile: ## send expensive requests to every RPC of a small server; fails on too much memory or time
	$(call build-program,palisade-bench)
	bin/palisade-bench --only hostile

# The load program is a separate module, which ./... does not include.
bench-check: ## vet and test the load program
	$(GO) -C cmd/palisade-bench vet ./...
	.ci/with-postgres $(GO) -C cmd/palisade-bench test ./...

bench-postgres: ## the same on a temporary, durable PostgreSQL with the settings of docs/scale.md
	$(call build-program,palisade-bench)
	.ci/with-postgres --durable bash -c 'bin/palisade-bench --database "$$PALISADE_TEST_POSTGRES" $(ARGS)'

bench-peers: ## compare with PocketBase on the same data; see docs/peers.md
	$(call build-program,palisade-bench)
	bin/palisade-bench peers $(ARGS)

bench-identity: ## edit real code, scan it again, and count which findings kept their identity (ARGS for more)
	$(call build-program,palisade-bench)
	bin/palisade-bench identity $(ARGS)

clean: ## remove build outputs; ./data stays
	rm -rf bin
