# `make` without a target lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

ROOT    := $(CURDIR)
BIN     := $(ROOT)/bin
TOOLS   := $(BIN)/tools
ENGINES := deploy/engines/node_modules/.ready
JARS    := deploy/engines/kafka/lib/.ready
ZK_JARS := deploy/engines/zookeeper/lib/.ready
SAMPLES := schemas/webhook/samples/node_modules/.ready
WEB     := query/web/node_modules/.ready
DATA    ?= data
# Whole systems that run for minutes: first those that wait much, the longest of the others next, and the shortest last.
SYSTEMS := ./deploy/check/e2e ./deploy/check/chaos/dispatch ./deploy/check/chaos/ingest ./deploy/check/chaos/fulldisk ./deploy/check/mapped ./deploy/check/histories ./deploy/check/underload
# Drills of a whole installation, which need a machine to themselves: every night, not in CI.
DRILLS  := ./deploy/check/chaos/brokers ./deploy/check/chaos/partitions ./deploy/check/instances ./deploy/check/replicas ./deploy/check/soak
# Packages with tests that take root: full disks, network namespaces, PostgreSQL's own user. A hosted runner of CI skips these tests.
ROOTED  := ./deploy/check/chaos/fulldisk ./deploy/engines ./deploy/testkit/link ./ingest/backup
# The longest packages come first, so that none of them runs on its own at the end. Many tests wait (those of
# ingest use two cores for 75 of 134 s), so one more package than cores runs at a time, with two tests per core.
PKG     ?= ./ingest/... ./dispatch/... ./projections/... ./query/... $$(comm -23 <(go list ./... | sort) <(go list $(SYSTEMS) $(DRILLS) | sort))
AT_ONCE ?= -p $(shell echo $$((1 + $$(nproc)))) -parallel $(shell echo $$((2 * $$(nproc))))
# Test binaries are run, not debugged: without debug tables a build takes two thirds of the time. make lint vets.
QUICKLY := -ldflags=-w -vet=off
export CGO_ENABLED ?= 0
# Without the folder's name in what the compiler writes, all clones on a machine share Go's build cache.
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Set everything up and run navlog with embedded engines and a development chain
	$(BIN)/navlog-dev up --data $(DATA)

.PHONY: build
build: engines ## Fetch the pinned engines and build bin/navlog and bin/navlog-dev
	go build -o $(BIN)/ ./cmd/navlog ./cmd/navlog-dev

.PHONY: engines
engines: $(ENGINES) ## Fetch the pinned engines (ClickHouse, PostgreSQL, anvil) with npm
# Not npm ci: it demands the packages of every other platform in the lock file
# too. What the lock file names is checked against it; package.json pins exact
# versions for the rest.
$(ENGINES): deploy/engines/package.json deploy/engines/package-lock.json
	@echo "fetching the engines, about 650 MB on the disk; this is done once"
	cd deploy/engines && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: kafka
kafka: ## Fetch Apache Kafka with Maven, for the tests that run against the real broker
	@if command -v mvn >/dev/null && command -v java >/dev/null; then $(MAKE) --no-print-directory $(JARS); \
	else echo "skip: Apache Kafka needs Maven and Java 17; the tests run on the embedded broker only"; fi
$(JARS): deploy/engines/kafka/pom.xml
	rm -rf deploy/engines/kafka/lib
	mvn -q -B -f $< dependency:copy-dependencies
	touch $@

.PHONY: zookeeper
zookeeper: $(ZK_JARS) ## Fetch Apache ZooKeeper with Maven, for the drill with ClickHouse's replicated tables
$(ZK_JARS): deploy/engines/zookeeper/pom.xml
	rm -rf deploy/engines/zookeeper/lib
	mvn -q -B -f $< dependency:copy-dependencies
	touch $@

.PHONY: samples
samples: $(SAMPLES) ## Fetch what the webhook samples are tested with
$(SAMPLES): schemas/webhook/samples/package.json
	cd schemas/webhook/samples && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: web
web: $(WEB) ## Rebuild the pages, from query/web/src into query/web/dist
	cd query/web && npm run --silent types && npm run --silent check && npm run --silent build
	$(call sum,$(WEB_FILES)) >$(WEB_SUM)
$(WEB): query/web/package.json query/web/package-lock.json
	cd query/web && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-web
test-web: $(WEB) ## Run the unit tests of the pages
	cd query/web && npm test --silent

# For chosen packages, only what their tests need: engines if they import deploy/engines, Apache Kafka if they name it,
# samples for dispatch.
NEEDS := engines kafka samples test-web
ifeq ($(origin PKG),command line)
OF_EACH = $(foreach kind,GoFiles TestGoFiles XTestGoFiles,{{range .$(kind)}}{{$$.Dir}}/{{.}} {{end}})
NEEDS := $(shell go list -test -deps $(PKG) 2>/dev/null | grep '/deploy/engines$$' >/dev/null && echo engines; \
	grep -qE '(Apache|Guarded)Kafka' $$(go list -f '$(OF_EACH)' $(PKG) 2>/dev/null) /dev/null && echo kafka; \
	go list $(PKG) 2>/dev/null | grep 'navlog/dispatch$$' >/dev/null && echo samples)
endif

TEST  := --format testname --format-hide-empty-pkg
SHORT ?= -short
# The time limit for the tests of one package.
TIMEOUT ?= 40m
.PHONY: test
test: $(NEEDS) $(TOOLS)/gotestsum ## Run all but the long tests, on real engines (PKG=./ingest/... for some)
	@mkdir -p build
	$(TOOLS)/gotestsum $(TEST) --jsonfile build/test.json -- $(SHORT) $(AT_ONCE) $(QUICKLY) -timeout $(TIMEOUT) $(PKG)

# The long tests: those of whole systems, and those that make test and make race shorten or skip because they call
# testing.Short, directly or through few, onEachBroker, sequential and withoutDetector. (deploy/check/structure looks for
# others.) race skips fuzz tests too. They are one run, which begins with the systems that wait much and so leave the cores
# to the packages beside them; at the end they would leave the cores idle.
SHORTENS := testing\.Short\(\)|[^a-zA-Z]few\(|onEachBroker\(t|sequential\(t|withoutDetector\(t
LONG = $(shell git grep -lE '^func Fuzz|$(SHORTENS)' -- '*_test.go' ':!deploy/check')
LONG_PACKAGES = $(patsubst %/,./%,$(sort $(dir $(LONG))))
# The packages beside SYSTEMS whose long tests run.
IN_FULL ?= $(LONG_PACKAGES)
.PHONY: test-long
test-long: engines kafka samples $(TOOLS)/gotestsum ## Run the long tests: whole systems, Apache Kafka, real times of retries, and cases that make test skips
	@mkdir -p build
	$(TOOLS)/gotestsum $(TEST) --jsonfile build/long.json -- $(AT_ONCE) $(QUICKLY) -timeout $(TIMEOUT) \
		$(wordlist 1,3,$(SYSTEMS)) $(filter $(IN_FULL),$(LONG_PACKAGES)) $(SYSTEMS) \
		-run "^($$(awk 'FNR == 1 {name = ""} /^func /{name = $$2; sub(/[^A-Za-z0-9_].*/, "", name)} FILENAME ~ /deploy.check/ || /^func Fuzz|$(SHORTENS)/{if (name ~ /^(Test|Fuzz)/) print name}' \
			$(LONG) $(wildcard $(addsuffix /*_test.go,$(SYSTEMS))) | sort -u | paste -sd '|'))$$"

# The packages whose goroutines share state. The detector also watches the packages that they use. Tests of the others have
# found nothing for a long time; RACE=./... runs all of them. Those that take longest come first.
RACE ?= ./ingest ./query ./dispatch ./projections ./projections/write ./ingest/rpc ./query/ask ./query/serve ./query/state ./ingest/writer ./query/access ./query/health ./dispatch/lane ./schemas/readmodel ./cmd/internal/wiring ./cmd/internal/console
.PHONY: race beside-race
beside-race: # the packages that race does not run and that are not SYSTEMS or DRILLS: first the two that take longest, then those with long tests
	@go list ./query/oracle ./projections/verify $(LONG_PACKAGES) ./... | grep -vxFf <(go list $(RACE) $(SYSTEMS) $(DRILLS)) | awk '!seen[$$0]++'
# A program under the race detector sleeps for a second when it exits, to notice races of goroutines that still run. Tests would
# wait for that at the end of each development chain, whose helper is such a program too.
race: export GORACE := atexit_sleep_ms=100 $(GORACE)
race: engines kafka samples $(TOOLS)/gotestsum ## Run tests under the race detector, which needs a C compiler (RACE=./... for all)
	@mkdir -p build
	CGO_ENABLED=1 $(TOOLS)/gotestsum --format pkgname --jsonfile build/race.json -- -race $(SHORT) -run '^(Test|Example)' $(AT_ONCE) $(QUICKLY) -timeout $(TIMEOUT) $(RACE)

FIRST   ?= 1
KAFKA   ?= embedded
.PHONY: chaos-ingest
chaos-ingest: engines $(if $(filter apache,$(KAFKA)),kafka) ## Kill ingest and give it false responses, SEEDS times, and compare its log with the chain (SEEDS=20, FIRST=1, KAFKA=apache)
	go test -v -count=1 -timeout 240m -parallel 2 ./deploy/check/chaos/ingest -run '^TestSeeds$$' -seeds $(or $(SEEDS),20) -first $(FIRST) -kafka $(KAFKA)

.PHONY: conformance
conformance: build ## Validate the HTTP API with Redocly and Schemathesis, on a live system (EXAMPLES=10 random requests per operation)
	deploy/check/conformance/run.sh

.PHONY: browser
browser: build ## Test the pages in Chromium, on a live system with reorganisations; screenshots are in build/browser (LOOKS="light phone-dark" for two of four looks)
	$(if $(LOOKS),LOOKS='$(LOOKS)') deploy/check/browser/run.sh

# A separate module, because its validators would choose the versions of navlog's dependencies. -count=1, because Go would cache
# a result although files outside that module change. The Python package is installed without its dependencies: only its schemas
# are used.
JUDGES := deploy/check/deployfiles/python
.PHONY: deployfiles
deployfiles: $(JUDGES)/.ready $(TOOLS)/gotestsum ## Validate Dockerfile, compose, chart, alerts, dashboard, units and packages with third-party tools
	@mkdir -p build
	$(JUDGES)/bin/hadolint deploy/docker/Dockerfile
	cd deploy/check/deployfiles && NAVLOG_KUBERNETES_SCHEMAS=$$(echo $(ROOT)/$(JUDGES)/lib/python3*/site-packages/kubernetes_validate/kubernetes-json-schema) \
		$(TOOLS)/gotestsum --format testname --jsonfile $(ROOT)/build/deployfiles.json -- -count=1 -p 2 $(QUICKLY) ./...
$(JUDGES)/.ready: deploy/check/deployfiles/requirements.txt
	rm -rf $(JUDGES)
	python3 -m venv $(JUDGES)
	$(JUDGES)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps -r $<
	touch $@

# A separate module, because the collector would choose the versions of navlog's dependencies.
.PHONY: traces
traces: engines $(TOOLS)/gotestsum ## Receive the traces of a live system with the receiver of the OpenTelemetry Collector
	@mkdir -p build
	cd deploy/check/traces && $(TOOLS)/gotestsum --format testname --jsonfile $(ROOT)/build/traces.json -- -count=1 $(QUICKLY) ./...

# A separate module: nothing that navlog runs depends on a benchmark.
.PHONY: test-bench
test-bench: engines $(TOOLS)/gotestsum ## Test what the benchmarks count and write
	@mkdir -p build
	cd deploy/bench && $(TOOLS)/gotestsum $(TEST) --jsonfile $(ROOT)/build/bench.json -- $(QUICKLY) ./...

FUZZTIME ?= 60s
FUZZ ?= .
.PHONY: fuzz
fuzz: engines ## Search for input that a parser handles wrongly (FUZZTIME=60s for each, FUZZ=query for those with this in package or name)
	git grep -oE '^func Fuzz[A-Za-z0-9]+' -- '*_test.go' | sed -E 's|^(.*)/[^/]*:func |./\1 |' | grep -E '$(FUZZ)' | while read -r package target; do \
		go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; done

HISTORIES ?= 2000
SEED ?= 0
.PHONY: property
property: engines ## Compare random histories with the independent fold, in the tables and over HTTP (HISTORIES=2000 SEED=0)
	go test -count=1 -timeout 240m -run 'TestRandomHistories' ./projections/write -histories $(HISTORIES) -seed $(SEED)
	go test -c -o $(BIN)/histories.test ./deploy/check/histories
	cd deploy/check/histories && $(BIN)/histories.test -test.timeout 240m -histories $(HISTORIES) -seed $(SEED)
	go test -count=1 -timeout 240m -run 'TestAnswersEqualOracle|TestExplanationsAddUp|TestSeries$$' ./query/oracle -stride 1

NIGHTLY ?= race browser chaos-ingest chaos-dispatch chaos-brokers drills property fuzz verify
.PHONY: nightly
nightly: ## Run what takes hours: all tests but the drills under the race detector, the pages in every look, 200 seeds of chaos-ingest and chaos-dispatch, 20 rounds of chaos-brokers, the drills with three days of a chain, 2,000 histories, every parser fuzzed, everything generated (NIGHTLY=property for one)
	$(MAKE) -k $(NIGHTLY) RACE="$$(comm -23 <(go list ./... | sort) <(go list $(DRILLS) | sort) | tr '\n' ' ')" SHORT= TIMEOUT=4h SEEDS=200 ROUNDS=20 BLOCKS=21600 FUZZTIME=5m FULL=1

EVENTS ?= 10000000
.PHONY: bench-query
bench-query: build ## Measure the HTTP API on 10 million events (EVENTS=1000000 for less)
	cd deploy/bench && go build -o $(BIN)/bench-query ./query
	$(BIN)/bench-query --events $(EVENTS)

# The compiler and the linters collect garbage less often, which saves a sixth of their time. In tests it would change
# what memory they measure.
.PHONY: lint
lint: export GOGC = 400
lint: $(TOOLS)/golangci-lint ## Check imports, gofmt, vet, staticcheck and others (.golangci.yaml), and the list of words to avoid
	$(TOOLS)/golangci-lint run ./...
	go test $(QUICKLY) -run '^TestPlainWords' ./deploy/check/structure
	cd deploy/check/deployfiles && $(TOOLS)/golangci-lint run ./...
	cd deploy/check/traces && $(TOOLS)/golangci-lint run ./...
	cd deploy/bench && $(TOOLS)/golangci-lint run ./...

# What is generated and what it is generated from have one checksum for schemas and one for the pages. make generate and
# make web write them, and make verify generates again only what differs from its checksum.
SCHEMAS_SUM   := schemas/generated.sum
SCHEMAS_FILES := schemas/buf.yaml schemas/buf.gen.yaml 'schemas/*.proto' 'schemas/*.pb.go' schemas/registry/sqlc.yaml schemas/registry/migrations \
	schemas/registry/queries schemas/registry/db schemas/contracts deploy/tools/go.mod deploy/tools/go.sum deploy/tools/package.json deploy/tools/package-lock.json
WEB_SUM       := query/web/generated.sum
WEB_FILES     := query/web schemas/openapi/openapi.yaml ':!$(WEB_SUM)'
sum = LC_ALL=C comm -z -23 <(git ls-files -co --exclude-standard -z -- $(1) | LC_ALL=C sort -zu) <(git ls-files -d -z -- $(1) | LC_ALL=C sort -z) | xargs -0 sha256sum | sha256sum | cut -c1-64

.PHONY: generate
generate: dashboard $(TOOLS)/sqlc $(TOOLS)/protoc-gen-go ## Regenerate protobuf, SQL, contracts and the dashboard
	cd deploy/tools && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	cd schemas && PATH=$(TOOLS):$$PATH $(ROOT)/deploy/tools/node_modules/.bin/buf lint
	cd schemas && PATH=$(TOOLS):$$PATH $(ROOT)/deploy/tools/node_modules/.bin/buf generate
	cd schemas/registry && PATH=$(TOOLS):$$PATH sqlc generate
	go generate ./schemas/contracts
	$(call sum,$(SCHEMAS_FILES)) >$(SCHEMAS_SUM)

# In the module of deployfiles, because navlog must not depend on Grafana's SDK.
.PHONY: dashboard
dashboard: ## Write deploy/dashboards/navlog.json from deploy/check/deployfiles/grafana/panels.go
	cd deploy/check/deployfiles && go test -count=1 -run '^TestFileIsCurrent$$' ./grafana -update

# A checksum that was not committed with its files costs time only. make deployfiles notices an old dashboard.
.PHONY: verify
verify: ## Fail if generated code or a built page differs from the committed one (FULL=1 also generates what has not changed)
	@$(if $(FULL),,test "$$($(call sum,$(SCHEMAS_FILES)))" = "$$(cat $(SCHEMAS_SUM))" ||) $(MAKE) --no-print-directory generate
	@$(if $(FULL),,test "$$($(call sum,$(WEB_FILES)))" = "$$(cat $(WEB_SUM))" ||) $(MAKE) --no-print-directory web
	@out=$$(git status --porcelain -- schemas query/web/dist query/web/src/openapi.ts go.mod go.sum ':!$(SCHEMAS_SUM)'); test -z "$$out" || { git --no-pager diff --stat -- schemas query/web/dist query/web/src/openapi.ts | head -50; echo "generated code differs:"; echo "$$out"; exit 1; }

# Not in .ci/run: the result changes without a change of navlog, and needs the network.
.PHONY: vulnerabilities
vulnerabilities: $(TOOLS)/govulncheck ## Find calls of code that is in the Go vulnerability database
	$(TOOLS)/govulncheck ./...

.PHONY: tools
tools: $(TOOLS)/gotestsum $(TOOLS)/golangci-lint $(TOOLS)/sqlc $(TOOLS)/protoc-gen-go ## Build the pinned tools

$(TOOLS)/gotestsum: deploy/tools/go.mod
	cd deploy/tools && GOBIN=$(TOOLS) go install gotest.tools/gotestsum
# A separate module: its two hundred dependencies would choose the versions of the other tools' dependencies.
$(TOOLS)/golangci-lint: deploy/tools/golangci/go.mod
	cd deploy/tools/golangci && GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TOOLS)/govulncheck: deploy/tools/govulncheck/go.mod
	cd deploy/tools/govulncheck && GOBIN=$(TOOLS) go install golang.org/x/vuln/cmd/govulncheck
$(TOOLS)/sqlc: deploy/tools/go.mod
	cd deploy/tools && GOBIN=$(TOOLS) go install github.com/sqlc-dev/sqlc/cmd/sqlc
$(TOOLS)/protoc-gen-go: deploy/tools/go.mod
	cd deploy/tools && GOBIN=$(TOOLS) go install google.golang.org/protobuf/cmd/protoc-gen-go

.PHONY: bench-ingest
bench-ingest: build ## Measure the time from the chain to the API (BENCH="--logs 20000 --blocks 40" for less)
	cd deploy/bench && go build -o $(BIN)/bench-ingest ./ingest
	$(BIN)/bench-ingest --navlog $(BIN)/navlog $(BENCH)

.PHONY: bench-rebuild
bench-rebuild: build ## Measure a rebuild (BENCH="--users 5000000", "--events 1000000 --users 100000" for less)
	cd deploy/bench && go build -o $(BIN)/bench-rebuild ./rebuild
	$(BIN)/bench-rebuild --navlog $(BIN)/navlog $(BENCH)

.PHONY: bench-dispatch
bench-dispatch: build ## Measure the webhooks (BENCH="--only rate --events 20000" for less)
	cd deploy/bench && go build -o $(BIN)/bench-dispatch ./dispatch
	$(BIN)/bench-dispatch --navlog $(BIN)/navlog $(BENCH)

.PHONY: chaos-dispatch
chaos-dispatch: engines ## Kill dispatchers and PostgreSQL at random and count every webhook (SEEDS=50, FIRST=1, CHAOS="-events 1000")
	go test -v -count=1 -timeout 240m ./deploy/check/chaos/dispatch -run '^TestSeeds$$' -seeds $(or $(SEEDS),50) -first $(FIRST) $(CHAOS)

ROUNDS ?= 1
BLOCKS ?= 7200
.PHONY: drills
drills: engines kafka zookeeper ## Run the drills as tests: three brokers killed and frozen under load, programs cut off from their engines, several instances, replicated tables, a day of a chain, and what takes root
	NAVLOG_SOAK_BLOCKS=$(BLOCKS) go test -count=1 -timeout 240m -p 1 $(DRILLS) $(ROOTED)

.PHONY: soak
soak: engines ## Let all programs follow a day of a chain in minutes, and compare memory, goroutines, files and connections early and late (BLOCKS=7200)
	NAVLOG_SOAK_BLOCKS=$(BLOCKS) go test -v -count=1 -timeout 240m ./deploy/check/soak

.PHONY: chaos-brokers
chaos-brokers: engines kafka ## Kill and freeze each of three Apache Kafka brokers under load, then kill two at once, and compare log, read model and webhooks with the chain (ROUNDS=5)
	go test -v -count=1 -timeout 240m ./deploy/check/chaos/brokers -rounds $(ROUNDS)

.PHONY: chaos-partitions
chaos-partitions: engines ## Cut programs off from their engines in network namespaces, which takes root, and compare everything with the chain
	go test -v -count=1 -timeout 15m ./deploy/check/chaos/partitions

.PHONY: clean-data
clean-data: ## Delete the data of `make run`
	rm -rf $(DATA)

.PHONY: clean
clean: clean-data ## Remove everything that make built or fetched
	rm -rf $(BIN) build deploy/engines/node_modules deploy/engines/kafka/lib deploy/engines/zookeeper/lib deploy/check/browser/node_modules deploy/check/conformance/node_modules $(JUDGES) deploy/bench/ingest/ponder/node_modules \
		deploy/tools/node_modules query/web/node_modules schemas/contracts/node_modules schemas/mapping/testdata/abi/node_modules schemas/webhook/samples/node_modules
