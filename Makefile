# Everything a developer or a pipeline runs. `make` lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# SQLite is C: without this, Go would quietly build a binary without it where no C compiler is found.
export CGO_ENABLED := 1
# Without directories in what is built, the test that upgrades from an earlier version, whose source lies elsewhere, finds most of it
# in Go's cache.
export GOFLAGS := $(shell $(GO) env GOFLAGS)
ifeq ($(filter -trimpath%,$(GOFLAGS)),)
GOFLAGS += -trimpath
endif
# sqlite_stat4: SQLite's planner then knows frequent values, and not only averages (docs/decisions/0026). grpcnotrace: gRPC's trace
# pages, which are not served, look up methods by name, for which the linker would keep every exported one.
TAGS := sqlite_stat4,grpcnotrace
ifeq ($(findstring $(TAGS),$(GOFLAGS)),)
GOFLAGS += -tags=$(TAGS)
endif

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
# Without what only debuggers read, the program is a third smaller; traces of a panic, profiles and `palisade version` need none of it.
LDFLAGS := -s -w -X github.com/palisade/palisade/services/config.Version=$(VERSION)
FUZZTIME ?= 10000x
TOOLS := $(CURDIR)/bin/tools
BUF := $(TOOLS)/buf
BASELINE := proto/baseline.binpb
MODULES := . cmd/palisade-bench .ci/tools
# Files that people write, for the spelling.
WRITTEN := '*.go' '*.md' '*.proto' .ci Makefile ':!gen' ':(glob)!ent/*.go' ':!*testdata*' ':!proto/third_party'
GENERATED := gen ent proto/third_party docs/configuration.md go.mod go.sum

# Steps of check must not run at once: one makes the files that the next reads.
.NOTPARALLEL:
.PHONY: help run demo build size test test-large check outdated lint generate generate-check tools tidy baseline migration migration-sums fuzz hostile bench bench-check bench-postgres bench-peers bench-identity clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build and serve: SQLite in ./data, loopback only (ARGS="--http …" for more)
	bin/palisade serve $(ARGS)

demo: build ## serve an empty store, upload a real report, print what to try; nothing is kept
	.ci/demo

# A program that the linker has just written lies in the page cache in pieces of 2 MB, each of which counts as memory in use
# when a byte of it is touched: 20 to 60 MB more. An installed one does not, nor does a copy.
define build-program
	@mkdir -p bin
	$(GO) -C cmd/$(1) build $(2) -o $(CURDIR)/bin/$(1) .
	@cat bin/$(1) > bin/$(1).copy && chmod +x bin/$(1).copy && mv bin/$(1).copy bin/$(1)
endef

build: ## build bin/palisade
	$(call build-program,palisade,-ldflags '$(LDFLAGS)')

test: ## run all tests, on SQLite and on a throw-away PostgreSQL; the slowest are shown at the end
	.ci/test $(TESTFLAGS)

test-large: ## run those of very many rows, at their full size; always before a release
	.ci/test --large $(TESTFLAGS)

check: generate-check lint size test fuzz bench-check hostile outdated ## everything the pipeline checks

outdated: ## report direct modules that have a newer version; never fails
	@.ci/outdated

lint: tools ## buf lint, format and breaking; go vet; gofmt; staticcheck; unparam; deadcode; plain English
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
	@unformatted=$$(gofmt -l cmd services ent/schema); \
		if [[ -n $$unformatted ]]; then echo "gofmt these files:"; echo "$$unformatted"; exit 1; fi
	@for module in $(MODULES); do echo "go -C $$module mod tidy -diff"; $(GO) -C $$module mod tidy -diff; done
	$(GO) -C .ci/tools test ./plain
	$(GO) -C .ci/tools run ./plain $(CURDIR)
	git ls-files -z -- $(WRITTEN) | xargs -0 $(TOOLS)/misspell -error -i noteable,descripton
	$(GO) vet ./...
	$(TOOLS)/staticcheck ./...
	$(TOOLS)/unparam -tests=false ./cmd/... ./services/...
	@# From there the workspace shows both modules; what only tests call counts as called.
	@dead=$$(cd cmd/palisade-bench && $(TOOLS)/deadcode -test -filter '^github.com/palisade/palisade' ./... ../../...); \
		if [[ -n $$dead ]]; then echo "nothing calls these:"; echo "$$dead"; exit 1; fi

# 67 MB, or 102 when something in the program looks up methods by a name that the linker does not know.
# go build -ldflags=-dumpdep ./cmd/palisade 2>&1 | grep '<ReflectMethod>' then shows what does.
size: build ## fail when bin/palisade has more than 80 MB
	@bytes=$$(stat -c %s bin/palisade); echo "bin/palisade: $$((bytes / 1000000)) MB"; (( bytes <= 80000000 ))

generate: tools ## make again all that is machine-made: gen/, ent/, proto/third_party, docs/configuration.md
	$(GO) run ./proto/third_party/print.go
	$(BUF) generate
	$(GO) generate ./ent
	$(GO) run ./cmd/palisade config-table --output docs/configuration.md

generate-check: generate ## fail when the committed or staged machine-made files are not current
	git diff --exit-code -- $(GENERATED)
	@untracked=$$(git ls-files --others --exclude-standard -- $(GENERATED)); \
		if [[ -n $$untracked ]]; then echo "made by generate, but not in git:"; echo "$$untracked"; exit 1; fi

tools: $(TOOLS)/.installed ## build the tools of .ci/tools/go.mod and our own protoc plugins into bin/tools
	@$(GO) build -o $(TOOLS)/ ./cmd/protoc-gen-*

$(TOOLS)/.installed: .ci/tools/go.mod .ci/tools/go.sum
	@mkdir -p $(TOOLS)
	$(GO) -C .ci/tools build -ldflags '-s -w' -o $(TOOLS)/ tool
	@touch $@

tidy: ## make go.mod and go.sum of all three modules current
	@for module in $(MODULES); do $(GO) -C $$module mod tidy; done

# buf compares images of one module only, and our workspace has two (the other is the third-party protos); hence images
# on both sides, here and in lint.
baseline: tools ## at a release: keep the contract that later changes must not break
	$(BUF) build --path proto/palisade --exclude-source-info -o $(BASELINE)

migration: ## write the migrations from the last ones to ent/schema: make migration NAME=add_rules
	@[[ -n "$(NAME)" ]] || { echo 'usage: make migration NAME=what_changes' >&2; exit 2; }
	.ci/with-postgres $(GO) run -mod=mod ./ent/migrate/main.go $(NAME)

migration-sums: ## write the checksums of the migrations, when a new one was changed by hand
	$(GO) run -mod=mod ./ent/migrate/main.go

fuzz: ## run every fuzz target for FUZZTIME (10000x, or a time such as 1m); of one package: .ci/fuzz DIRECTORY
	FUZZTIME=$(FUZZTIME) .ci/fuzz

# A quick look: ARGS="--findings 50000 --growth 10000 --rounds 3 --large-bytes 50000000 --dependencies 50000 --report-findings 50000"; one part: ARGS="--only pages,deep".
bench: ## a million findings: measure the hot paths, print the ratios beside their bars (ARGS=--help for more)
	$(call build-program,palisade-bench)
	bin/palisade-bench $(ARGS)

hostile: ## send every RPC of a small server what is dear to decode; fails when it takes too much memory or time
	$(call build-program,palisade-bench)
	bin/palisade-bench --only hostile

# The load program is a module of its own, which ./... leaves out.
bench-check: ## vet and test the load program
	$(GO) -C cmd/palisade-bench vet ./...
	.ci/with-postgres $(GO) -C cmd/palisade-bench test ./...

bench-postgres: ## the same on a throw-away PostgreSQL that syncs its commits, with the settings of docs/scale.md
	$(call build-program,palisade-bench)
	.ci/with-postgres --durable bash -c 'bin/palisade-bench --database "$$PALISADE_TEST_POSTGRES" $(ARGS)'

bench-peers: ## beside PocketBase on the same data; see docs/peers.md
	$(call build-program,palisade-bench)
	bin/palisade-bench peers $(ARGS)

bench-identity: ## edit real code, scan it again, and count which findings kept their identity (ARGS for more)
	$(call build-program,palisade-bench)
	bin/palisade-bench identity $(ARGS)

clean: ## remove what was built; ./data stays
	rm -rf bin
