# Two commands do everything: `make run` and `make test`. Both need Go and
# make, and nothing else.

GO    ?= go
CLIENTGEN := $(GO) -C test/clientgen
DATA  ?= data

.PHONY: build run test late portable race cluster browser signin network devices devices-bench network-faults network-bench torture fuzz check lint golden bench module release deployed packages clean

# The binary tells which commit it was built from, if git can be asked, whatever
# GOFLAGS says.
build: ## leave the binary at bin/netkeep
	$(GO) build -trimpath -buildvcs=$$(git status >/dev/null 2>&1 && echo auto || echo false) -o bin/netkeep ./cmd/netkeep

run: build ## run a controller on 127.0.0.1:1280 with a router on port 3022, data in ./data
	./bin/netkeep run --data $(DATA) --router 127.0.0.1:3022

# Half of the work is to compile: what tests and lint need is compiled once, and
# without what debuggers need, which is a quarter of it.
test late lint race browser signin devices: export GOFLAGS := $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false

TEST := $(GO) test -p 3 -shuffle=on -vet=off -ldflags='-s -w' -timeout 9m

# What takes long, and fails when something else does too.
LATE := ./test/attack ./test/cluster ./test/module ./test/router ./test/torture

# The slowest packages go first, so that no core is idle at the end, and three at
# a time, since some wait more than they work; lint vets everything. What all of them need is
# compiled before: a test must not wait for a compiler longer than it may take.
test: ## what the program does
	@$(GO) build ./...
	@$(TEST) ./test/program ./test/fabric $(filter-out $(shell $(GO) list $(LATE) ./test/netns ./test/transit),$(shell $(GO) list ./test/... ./...))

# Clients are generated from documents outside of their module, which the test cache
# does not look at.
late: ## what takes long: attacks, controllers that fail, routers for minutes, generated clients
	$(TEST) $(LATE)
	$(CLIENTGEN) test -count=1 -vet=off ./...

portable: ## whether it compiles for macOS and Windows
	$(GO) -C tools build -o ../bin/portable ./portable
	bin/portable ./cmd/... ./overlay

# The race detector stays out of Argon2, a library that shares its memory with nobody
# else: each hash goes over 19 MiB twice, and to watch that takes longer than to hash.
RACE := -race -gcflags=golang.org/x/crypto/argon2=-race=false

# What does one thing after the other, or starts programs of its own, would show it
# nothing; and what waits for one controller after the other is like others of its kind.
ALONE := ./cmd/... ./internal/lang/... ./internal/tool/... ./internal/client/remote ./internal/client/enroll \
	./internal/client/device ./internal/client/join ./internal/auth/mfa ./internal/auth/token ./internal/disk ./internal/model \
	./internal/data/format ./internal/data/invite ./internal/data/keyring ./internal/data/owner ./internal/fabric/permit \
	./internal/fabric/terminator ./internal/fabric/usage ./internal/ops/config ./internal/ops/egress ./internal/ops/health \
	./internal/ops/trace ./internal/policy/explain ./internal/policy/posture ./internal/pki ./internal/router/forward \
	./internal/router/home ./internal/run/cli ./internal/takeover/... ./internal/web/rest ./internal/wire ./internal/wire/cipher ./internal/wire/message \
	./test/architecture ./test/auth ./test/command ./test/enroll ./test/manifest ./test/model ./test/module ./test/monitoring \
	./test/netns ./test/program ./test/promise ./test/router ./test/servertest ./test/takeover ./test/torture ./test/upgrade ./test/zititest

# Of some most tests do one thing after the other too, or wait: those are chosen that have
# several do something at once, or a controller something beside what it is asked. Those of
# several controllers that hold only while each has its lease are in make late alone: with
# it, a machine that is busy is too slow for them.
MOSTLY := ./test/cluster ./test/attack ./test/api ./test/console ./internal/ops/archive ./internal/ops/audit ./internal/ops/history
TOGETHER := '^(TestReadOwnWrites|TestBalancer|TestDevicesOfTwoControllers|TestHistoryModel|TestTwoControllers$\
	|TestEndsMeanwhile|TestEventsElsewhere|TestClientGoesOn|TestLargeList|TestStalledStreams|TestPasswordFlood$\
	|TestOneNameOneWinner|TestPatchesOfOneRecord|TestCreateAgainstDelete|TestChangesAtOnce|TestSlowBodies$\
	|TestStreamsOfOneConnection|TestOutlets|TestEvents|TestAuditEvents|TestEventsEndWithTheRight|TestSnapshotSchedule|TestIntegrity$\
	|TestCertificateReload|TestAttempts|TestTwoEditors|TestPages|TestUnwritable|TestTogether|TestKeepersMeet|TestColumnsTogether|TestFlood)$$'

# And of the others what is about how much there can be is left out, and the same once more.
LARGE := '^(TestRouterMemory|TestRestlessRouter|TestManyHosts|TestContractByAddress|TestCutAtEveryRequest)$$'
RACED = $(filter-out $(shell $(GO) list $(ALONE) $(MOSTLY)),$(shell $(GO) list ./test/transit ./test/fabric ./...))

# A property that is looked at a hundred times shows it no more than at ten. Tunnelers and
# clients of ours are here alone, with all of their tests: without it they show the same.
race: export RAPID_CHECKS := 10
race: ## what several goroutines do at once, with the race detector, and what routers and tunnelers carry
	@$(TEST) $(RACE) -skip $(LARGE) $(RACED)
	@$(TEST) $(RACE) -run $(TOGETHER) $(MOSTLY)

# The short form of it is in make late.
cluster: build ## three controllers under faults for minutes, and what they cost
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/cluster -run TestFaults -faults 5m -fault-every 10s $(ARGS)
	$(GO) build -trimpath -o bin/netkeep-bench ./cmd/netkeep-bench
	bin/netkeep-bench cluster

# Each has a short form in make test and make late; docs/reliability.md says what came of it.
torture: ## bad requests and frames by the million, kill -9, full disks, clocks that jump, damaged directories, faults, two hours of use, dying routers: some hours
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/torture -run TestBadRequests -requests 1000000 $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/torture -run TestBadFrames -frames 1000000 $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/program -run '^TestDamages$$' -damages 500 $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/program -run '^TestKill9$$' -kill-rounds 1000 $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/program -run '^TestKillCarrying$$' -carry-rounds 100 $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/program -run '^TestFullAgain$$' -full-rounds 100 $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/program -run '^TestClockJumps$$' -clock-jumps 100 $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 150m -v ./test/program -run '^TestSoak$$' -soak 2h $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 90m -v ./test/torture -run TestRoutersDie -sites 20 -routers 10 -connections 1000 -deaths 30 -death-every 1m $(ARGS)
	$(GO) test -trimpath -count=1 -timeout 60m -v ./test/cluster -run TestFaults -faults 5m -fault-every 10s $(ARGS)

FUZZTIME ?= 10m

fuzz: ## every fuzz target there is, for ten minutes each: make fuzz FUZZTIME=10s
	@grep -rlE '^func Fuzz' --include='*_test.go' internal | sort | while read -r file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$file); do \
			$(GO) test -vet=off -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file) || exit 1; \
		done; \
	done

# A module of its own, so that nobody who builds netkeep has to fetch what it
# needs: the public router, command line and SDK.
network: ## a whole network with routers and clients of others
	@cd test/network && $(GO) mod download && $(GO) mod download -modfile=sdk-1.5.0.mod || { \
		echo '*** make network: NOT RUN. The modules of the public router cannot be had here.'; \
		echo '*** Nothing was shown about routers and clients of others.'; exit 0; } && \
	$(GO) test -count=1 -timeout 15m -v -skip '^TestSeveralControllers$$' ./...

# It says so, loudly, where namespaces cannot be made.
devices: ## a laptop, a router and a server in network namespaces: names and addresses of services
	$(GO) test -count=1 -vet=off -timeout 5m -v ./test/netns $(ARGS)

# Alone it takes some two minutes a round; with nothing else to do, and several rounds.
devices-bench: ## our tunneler on a device beside the public one, in one run
	@cd test/network && $(GO) build -ldflags '-X github.com/openziti/ziti/common/version.Version=v1.6.0' -o ../../bin/ziti github.com/openziti/ziti/ziti
	$(GO) test -count=1 -vet=off -timeout 60m ./test/netns -run '^$$' -bench . -benchtime 1x -ziti $(CURDIR)/bin/ziti -rounds 5 $(ARGS)

network-faults: ## three controllers under faults, with traffic of routers and clients of others, with figures
	cd test/network && $(GO) test -count=1 -timeout 60m -v . -run TestSeveralControllers -connections 100 -dials 50 -rounds 1 $(ARGS)

network-bench: build ## our router beside the public one, in one run
	@cd test/network && $(GO) build -o ../../bin/network-bench ./bench && \
	$(GO) build -ldflags '-X github.com/openziti/ziti/common/version.Version=v1.6.0' -o ../../bin/ziti github.com/openziti/ziti/ziti
	bin/network-bench -netkeep $(CURDIR)/bin/netkeep -ziti $(CURDIR)/bin/ziti $(ARGS)

# A module of its own, for what drives the browser; pictures are left in bin/browser.
browser: build ## the console in headless Chromium
	@test/browser/prepare && (cd test/browser && $(GO) mod download) || { \
		echo '*** make browser: NOT RUN. Chromium, or what drives it, cannot be had here.'; \
		echo '*** Nothing was shown about the console in a browser.'; exit 0; } && \
	cd test/browser && $(GO) test -count=1 -timeout 9m -v ./... $(ARGS)

# A module of its own, for the identity provider.
signin: build ## people who sign in with a real identity provider
	@(cd test/signin && $(GO) mod download) || { \
		echo '*** make signin: NOT RUN. The modules of the identity provider cannot be had here.'; \
		echo '*** Nothing was shown about people who sign in.'; exit 0; } && \
	browser=; test/browser/prepare || { \
		echo '*** make signin: without a browser. Chromium cannot be had here.'; browser='-skip ^TestChromium$$'; }; \
	cd test/signin && $(GO) test -count=1 -timeout 9m -v $$browser ./... $(ARGS)

# go vet is in bin/lint, which loads what the tests compile, and reads all that we
# build on: on a machine that has compiled nothing that takes as long as half of test.
lint: ## what the program looks like
	@unformatted=$$(gofmt -l cmd internal overlay test); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	$(GO) mod tidy -diff
	$(CLIENTGEN) vet ./...
	$(GO) -C tools build -o ../bin/lint ./lint
	bin/lint ./...
	$(GO) -C tools build -o ../bin/dead ./dead
	bin/dead

golden: ## rewrite the checked-in goldens after a wanted change
	$(GO) test ./internal/ops/config ./internal/model ./internal/lang/kind ./test/api ./test/auth ./test/promise -update

# The path is in go.mod and in imports, and nowhere else.
module: ## give the Go module another path: make module MODULE=example.com/netkeep
	@$(GO) -C tools run ./module -in .. $(MODULE)

# A module of its own, for what makes packages and images.
release: ## what people download, in dist/: binaries, archives, packages, an image, sums
	$(GO) -C release build -o ../bin/release .
	bin/release -in . -out dist $(ARGS)

# It needs root, debootstrap and systemd-nspawn, and says so, loudly, where they are not.
packages: ## the same bytes twice, the image and the compose file run in namespaces, and a fresh Debian: install, traffic, upgrade, remove, purge
	$(GO) -C release test -vet=off -count=1 -timeout 60m -v -run '^Test(Image|Release)$$' .
	$(MAKE) release ARGS='-only linux/amd64'
	$(GO) -C release test -vet=off -count=1 -timeout 20m -v ./composed
	release/try dist/netkeep_*_amd64.deb

# Helm and what it needs takes minutes to compile, so this is not in .ci/run; that the metrics are there that rules name, make test tells.
deployed: export GOFLAGS := $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false
deployed: ## whether Helm, Kubernetes, Compose and Prometheus take what is in deploy/
	$(GO) -C release test -vet=off -ldflags='-s -w' -count=1 ./deployed

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin dist
