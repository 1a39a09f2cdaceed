package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Verdicts of a check.
const (
	fine    = "ok"
	warning = "warning"
	failing = "FAIL"
)

// finding is the result of one check. Advice is what the operator should do; empty if nothing.
type finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"`
	Found   string `json:"found"`
	Advice  string `json:"advice,omitempty"`
	code    cli.Code
}

// examination collects findings.
type examination struct {
	config    config.Config
	program   string // of the four; empty: all of them
	kafkaUser string // the user whose rights on Kafka are checked; empty for the one that logs in
	findings  []finding
}

// sections are the sections to check. Only dispatch has the secret key, so a missing one is not an error.
func (e *examination) sections() []config.Section {
	if e.program != "" {
		return config.Needs[e.program]
	}
	return slices.DeleteFunc(slices.Clone(config.AllSections), func(s config.Section) bool {
		return s == config.NeedSecretKey && e.config.SecretKey == ""
	})
}

// withoutNodes leaves the nodes out of the sections if none is configured and no program is named: only ingest and
// verify have their URLs. Everything else of the section chain is still checked. nodes is false if it did.
func (e *examination) withoutNodes(sections []config.Section) (_ []config.Section, nodes bool) {
	if e.program != "" || !e.config.WasRead() || len(e.config.Chain.RPC) > 0 {
		return sections, true
	}
	return append(slices.DeleteFunc(sections, func(s config.Section) bool { return s == config.NeedChain }),
		config.NeedChainNoNodes), false
}

// uses reports whether the checked programs need a section.
func (e *examination) uses(s config.Section) bool {
	rotates := s == config.NeedSecretKey && e.program == "serve" && e.config.HTTP.PartnerRotation
	return e.program == "" || rotates || slices.Contains(config.Needs[e.program], s)
}

func (e *examination) add(f finding) { e.findings = append(e.findings, f) }

func (e *examination) fine(check, format string, args ...any) {
	e.add(finding{Check: check, Verdict: fine, Found: fmt.Sprintf(format, args...)})
}

func (e *examination) warn(check, advice, format string, args ...any) {
	e.add(finding{Check: check, Verdict: warning, Found: fmt.Sprintf(format, args...), Advice: advice})
}

func (e *examination) fail(code cli.Code, check, advice, format string, args ...any) {
	e.add(finding{check, failing, fmt.Sprintf(format, args...), advice, code})
}

const (
	// answersWithin is the time limit for the response of an engine.
	answersWithin = 8 * time.Second
	// clocksWithin is the tolerated difference of two clocks: leases and states expire within seconds.
	clocksWithin = 2 * time.Second
	// headWithin is the age of a node's newest block above which doctor warns.
	headWithin = 10 * time.Minute
)

// configuration reports the mistakes in the configuration: those that were found when it was loaded, and those of its
// values.
func (e *examination) configuration(loading error) {
	c := e.config
	sections, nodes := e.withoutNodes(e.sections())
	if !nodes {
		e.warn("nodes", "nothing to do if neither ingest nor verify runs here: only these two need the URLs "+
			"(NAVLOG_CHAIN_RPC_FILE)", "none was given here")
	}
	if err := errors.Join(loading, c.Validate(sections...)); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			e.fail(cli.Configuration, "configuration", "", "%s", line)
		}
		return
	}
	e.fine("configuration", "chain %d, %s, %s", c.Chain.ID, printable.Count(len(c.Chain.Vaults), "vault"),
		printable.Count(len(c.Chain.RPC), "node"))
}

// reach checks whether everything that the configuration names responds, and as which login; with deep, also its state.
// The checks run concurrently, and are reported in this order. Invalid sections are left out, since their mistakes are
// reported already, and so is everything if the configuration could not be read: then the engines are only defaults.
// It returns an error if a signal ended it, because each check that was under way then failed.
func (e *examination) reach(ctx context.Context, f cli.Flags, s *cli.Streams, deep bool) error {
	steps := console.Progress(f, s)
	defer steps.End()
	steps.Report("checking the nodes and the engines", 0, 0)
	if !e.config.WasRead() {
		e.warn("nodes and engines", "check the configuration first", "not checked: the configuration could not be read")
		return nil
	}
	var group sync.WaitGroup
	var parts []*examination
	look := func(check func(*examination, context.Context, bool), section config.Section, more ...config.Section) {
		if !e.uses(section) || e.config.Validate(append(more, section)...) != nil {
			return
		}
		part := &examination{config: e.config, program: e.program, kafkaUser: e.kafkaUser}
		parts = append(parts, part)
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, answersWithin)
			defer cancel()
			check(part, ctx, deep)
		})
	}
	for _, endpoint := range e.config.Chain.RPC {
		look(func(e *examination, ctx context.Context, deep bool) { e.node(ctx, endpoint.URL, deep) }, config.NeedChain)
	}
	look((*examination).kafka, config.NeedKafka, config.NeedChainID)
	look((*examination).clickHouse, config.NeedClickHouse)
	look((*examination).postgres, config.NeedPostgres)
	group.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check the nodes and the engines: %w", err)
	}
	for _, part := range parts {
		e.findings = append(e.findings, part.findings...)
	}
	return nil
}

func (e *examination) node(ctx context.Context, url string, deep bool) {
	check := "node " + contracts.EndpointName(url)
	unreachable := func(err error) {
		e.fail(cli.Unreachable, check, "check chain.rpc, and whether the node is up", "%v", contracts.Discreet(err, url))
	}
	connected, err := ethrpc.DialOptions(ctx, url, ethrpc.WithHTTPClient(contracts.NodeClient(http.DefaultTransport)))
	if err != nil {
		unreachable(err)
		return
	}
	client := ethclient.NewClient(connected)
	defer client.Close()
	began := time.Now()
	id, err := client.ChainID(ctx)
	if err != nil {
		unreachable(err)
		return
	}
	took := time.Since(began)
	if !id.IsUint64() || id.Uint64() != e.config.Chain.ID {
		e.fail(cli.Configuration, check, "give a node of the chain, or correct chain.id",
			"it serves chain %s, but chain.id is %d", id, e.config.Chain.ID)
		return
	}
	head, err := client.HeaderByNumber(ctx, nil)
	if err != nil {
		unreachable(err)
		return
	}
	e.fine(check, "chain %s, block %s, responded in %s", id, head.Number, took.Round(time.Millisecond))
	if age := time.Since(time.Unix(int64(head.Time), 0)); deep && age > headWithin {
		e.warn(check, "check whether it follows the chain; the newest block of a stopped chain is old too",
			"its newest block is %s old", age.Round(time.Second))
	} else if deep && age < -clocksWithin {
		e.warn(check, "set the clock of this machine (NTP)", "its newest block is %s in the future",
			(-age).Round(time.Second))
	}
	if deep {
		e.finality(ctx, check+", finality", client, url)
		e.headerHash(ctx, check+", headers", client, url)
	}
}

// finality checks what the node reports as final, the same way as ingest does.
func (e *examination) finality(ctx context.Context, check string, client *ethclient.Client, url string) {
	const advice = "set chain.finality to a depth, or to instant on a chain whose blocks are final at once"
	rule := e.config.Chain.Finality
	if rule.Depth > 0 {
		return
	}
	final, err := client.HeaderByNumber(ctx, big.NewInt(ethrpc.FinalizedBlockNumber.Int64()))
	if answered := ethrpc.Error(nil); errors.Is(err, ethereum.NotFound) || errors.As(err, &answered) {
		e.warn(check, "set chain.finality to a depth if the node never returns a finalized block: referrals wait for one",
			"it returns no finalized block: %v", contracts.Discreet(err, url))
		return
	}
	var head *types.Header
	if err == nil {
		// read after the final block, so that an advancing head is not mistaken for a final one
		head, err = client.HeaderByNumber(ctx, nil)
	}
	switch {
	case err != nil:
		e.warn(check, "check chain.rpc, and whether the node is up", "%v", contracts.Discreet(err, url))
	case rule.Instant || final.Number.Sign() == 0 || final.Number.Cmp(head.Number) < 0:
		e.fine(check, "block %s is final, %s below the newest one", final.Number, new(big.Int).Sub(head.Number, final.Number))
	case time.Since(time.Unix(int64(head.Time), 0)) > headWithin: // a chain that stands still becomes final up to its head
		e.warn(check, advice, "it names its newest block %s as final, which is not trusted until there is a newer one",
			head.Number)
	default:
		e.fail(cli.Configuration, check, advice,
			"it names its newest block %s as final, which counts as none: nothing becomes final, and referrals wait",
			head.Number)
	}
}

// headerHash checks whether the fields of the node's newest header hash to the block's hash.
func (e *examination) headerHash(ctx context.Context, check string, client *ethclient.Client, url string) {
	if e.config.Chain.Proof == proof.None {
		return
	}
	var raw json.RawMessage
	if err := client.Client().CallContext(ctx, &raw, "eth_getBlockByNumber", "latest", false); err != nil {
		e.warn(check, "check chain.rpc, and whether the node is up", "%v", contracts.Discreet(err, url))
		return
	}
	var hash common.Hash
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &members)
	_ = json.Unmarshal(members["hash"], &hash)
	if seals, _ := chainproof.Seals(raw, hash); seals {
		e.fine(check, "their fields hash to their hashes, so their blooms prove logs")
	} else {
		e.warn(check, "nothing to do if the chain hashes its headers in its own way; otherwise use another node",
			"the fields of its newest header do not hash to the block's hash: its blooms prove nothing, and provenTo does "+
				"not move")
	}
}

func (e *examination) kafka(ctx context.Context, deep bool) {
	const check = "Kafka"
	up, _, err := e.config.Kafka.Reach(ctx, answersWithin)
	if err != nil {
		e.fail(cli.Unreachable, check, "check kafka.brokers, kafka.tls and kafka.sasl, and the network", "%v", err)
		return
	}
	for _, broker := range e.config.Kafka.Brokers {
		if !slices.Contains(up, broker) {
			e.warn(check, "check kafka.brokers, and whether that broker is up: the others do its work",
				"%s did not respond, or a second later than the first one", broker)
		}
	}
	e.config.Kafka.Brokers = up
	c := e.config
	client, err := kgo.NewClient(append(c.Kafka.Options(), kgo.WithContext(ctx))...)
	if err != nil {
		e.fail(cli.Configuration, check, "check the section kafka", "%v", err)
		return
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	found, err := adm.BrokerMetadata(ctx)
	if err != nil {
		e.fail(cli.Unreachable, check, "check whether the brokers are up", "request the brokers: %v", chainlog.Explain(err))
		return
	}
	as := ""
	if c.Kafka.SASL.Mechanism != "" {
		as = ", as " + strings.TrimPrefix(c.Kafka.SASL.Who(), "User:")
	}
	e.fine(check, "%s%s", printable.Count(len(found.Brokers), "broker"), as)
	if !deep {
		return
	}
	if brokers := len(found.Brokers); brokers < int(c.Kafka.ReplicationFactor) {
		e.fail(cli.Configuration, check, "start the brokers that are missing, or lower kafka.replicationFactor",
			"kafka.replicationFactor is %d, and the cluster has %s", c.Kafka.ReplicationFactor,
			printable.Count(brokers, "broker"))
	}
	e.kafkaRights(ctx, adm)
	switch err := chainlog.CheckTopics(ctx, adm, c.Chain.ID, c.Kafka.Topology()); {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		e.warn("topics", "run this as "+chainlog.UserName(chainlog.Operator)+" too, which may",
			"%s may not see how all of chain %d are configured", c.Kafka.SASL.Who(), c.Chain.ID)
	case err == nil:
		e.fine("topics", "%s and the other topics keep their records as long as they must", chainlog.LogTopic(c.Chain.ID))
		e.vaults(ctx)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		e.warn("topics", "nothing to do if navlog is new: `navlog ingest` creates them", "not all of chain %d are there", c.Chain.ID)
	default:
		e.fail(cli.CodeOf(err), "topics", "correct this before records are lost", "%v", oneLine(err))
	}
}

// vaults compares chain.vaults with the vaults of the log.
func (e *examination) vaults(ctx context.Context) {
	if e.config.Validate(config.NeedChain) != nil {
		return // the mistakes in chain.vaults were reported already
	}
	cursor, err := chainlog.ReadCursor(ctx, e.config.Chain.ID, e.config.Kafka.Options()...)
	if err != nil {
		e.warn("vaults", "run this as "+chainlog.UserName(chainlog.Operator)+" too, which may read it",
			"the vaults of the log cannot be read as this user: %v", oneLine(err))
		return
	}
	e.compareVaults(cursor)
}

// compareVaults reports each difference. cursor is nil if the log does not exist yet.
func (e *examination) compareVaults(cursor *event.Cursor) {
	if cursor == nil {
		return
	}
	before := len(e.findings)
	configured := map[common.Address]bool{}
	for _, v := range e.config.Chain.Vaults {
		address := common.HexToAddress(v.Address)
		configured[address] = true
		e.compareVault(address, v, cursor)
	}
	for _, have := range cursor.GetVaults() {
		if address := common.BytesToAddress(have.GetAddress()); !configured[address] && !have.GetRemoved() {
			e.warn("vault "+address.Hex(), "add it to chain.vaults, or remove it with `navlog vault remove`",
				"it is in the log but not in chain.vaults: it is still indexed and served")
		}
	}
	if len(e.findings) == before {
		e.fine("vaults", "chain.vaults and the log have the same %d", len(configured))
	}
}

func (e *examination) compareVault(address common.Address, v vaults.Config, cursor *event.Cursor) {
	check := "vault " + address.Hex()
	i := slices.IndexFunc(cursor.GetVaults(),
		func(have *event.Coverage) bool { return common.BytesToAddress(have.GetAddress()) == address })
	if i < 0 {
		e.warn(check, "start ingest with this configuration", "it is in chain.vaults but not in the log")
		return
	}
	have := cursor.GetVaults()[i]
	if have.GetRemoved() {
		e.warn(check, "remove it from chain.vaults, or restore it with `navlog vault restore`",
			"it is in chain.vaults but was removed: it is not indexed")
		return
	}
	if start := max(v.StartBlock, 1); start != have.GetStartBlock() {
		e.warn(check, "write the log's block into chain.vaults; for an earlier one the chain is indexed into a new log",
			"chain.vaults has it from block %d on, but the log has it from block %d on", start, have.GetStartBlock())
	}
	if v.Name != have.GetConfiguredName() {
		e.warn(check, "start ingest with this configuration, or write the log's name into it",
			"its name is %q in chain.vaults and %q in the log", v.Name, have.GetConfiguredName())
	}
}

// withoutPassword is the advice for a login without a password that ClickHouse rejects: the password was not given
// here, as in compose.yaml, where each program has only its own logins.
const withoutPassword = "nothing to do if this is the login of another program; otherwise run this where its " +
	"password is set"

func (e *examination) clickHouse(ctx context.Context, deep bool) {
	check, c := "ClickHouse", e.config.ClickHouse
	if e.program == "serve" && c.QueryUser != "" { // it has no other login
		e.clickHouseReader(ctx, deep)
		return
	}
	conn, err := c.Open("")
	if err != nil {
		e.fail(cli.Configuration, check, "check the section clickhouse", "%v", err)
		return
	}
	defer conn.Close()
	var version string
	var now time.Time
	if err := conn.QueryRow(ctx, "SELECT version(), now64(3, 'UTC')").Scan(&version, &now); err != nil {
		if c.Password == "" && cli.LoginRefused(err) {
			e.warn(check, withoutPassword, "%s as %s: %v", c.Addr, c.User, err)
			if c.QueryUser != "" {
				e.clickHouseReader(ctx, deep)
			}
			return
		}
		e.fail(cli.Unreachable, check, "check clickhouse.addr, user and password, and whether the server is up",
			"%s as %s: %v", c.Addr, c.User, err)
		return
	}
	e.fine(check, "version %s, as %s", version, c.User)
	e.clickHouseReader(ctx, deep)
	if !deep {
		return
	}
	e.clock(check, now)
	if err := readmodel.CheckServer(ctx, conn); err != nil {
		e.fail(cli.CodeOf(err), check, "`navlog project` does not start until this is corrected", "%v", err)
	}
	e.disk(ctx, conn)
}

// clickHouseReader checks the login of `navlog serve`, which must not be able to write.
func (e *examination) clickHouseReader(ctx context.Context, deep bool) {
	check, c := "ClickHouse, reading", e.config.ClickHouse
	if c.QueryUser == "" {
		e.warn(check, "give clickhouse.queryUser a separate login (deploy/docker/clickhouse-query-user.xml) where `navlog "+
			"serve` runs", "a `navlog serve` of this configuration has the login that writes")
		return
	}
	conn, err := c.OpenReader("", 1)
	if err != nil {
		e.fail(cli.Configuration, check, "check clickhouse.queryUser", "%v", err)
		return
	}
	defer conn.Close()
	var readonly string
	if err := conn.QueryRow(ctx, "SELECT value FROM system.settings WHERE name = 'readonly'").Scan(&readonly); err != nil {
		if c.QueryPassword == "" && cli.LoginRefused(err) {
			e.warn(check, withoutPassword, "as %s: %v", c.QueryUser, err)
			return
		}
		e.fail(cli.Unreachable, check, "create the user as in deploy/docker/clickhouse-query-user.xml, and set its password",
			"as %s: %v", c.QueryUser, err)
		return
	}
	if readonly == "0" && deep {
		e.warn(check, "give it the profile of deploy/docker/clickhouse-query-user.xml", "%s may write", c.QueryUser)
		return
	}
	e.fine(check, "as %s, readonly %s", c.QueryUser, readonly)
}

// disk compares the free space with the size of a rebuild, which is another generation.
func (e *examination) disk(ctx context.Context, conn driver.Conn) {
	const check = "disk of ClickHouse"
	var free, total, largest uint64
	err := conn.QueryRow(ctx,
		"SELECT sum(free_space), sum(total_space) FROM system.disks WHERE type = 'Local' OR type = 'local'").Scan(&free,
		&total)
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT toUInt64(max(bytes)) FROM (SELECT sum(bytes_on_disk) AS bytes FROM system.parts "+
			"WHERE active AND startsWith(database, $1) GROUP BY database)", e.config.ClickHouse.Prefix+"_g").Scan(&largest)
	}
	if err != nil {
		e.warn(check, "let the login that writes read system.disks and system.parts", "%v", err)
		return
	}
	e.freeSpace(check, free, total, largest)
}

// freeSpace reports whether ClickHouse's disks have enough free space to rebuild the largest generation. All sizes
// are in bytes.
func (e *examination) freeSpace(check string, free, total, largest uint64) {
	const gib = 1 << 30
	switch {
	case free < 2*largest:
		e.warn(check, "free space: a rebuild is a second generation, and its merges need as much again",
			"%.1f GiB are free, and the largest generation has %.1f GiB", float64(free)/gib, float64(largest)/gib)
	case free < total/10:
		e.warn(check, "make room", "%.1f GiB of %.1f GiB are free", float64(free)/gib, float64(total)/gib)
	default:
		e.fine(check, "%.1f GiB free, the largest generation has %.1f GiB", float64(free)/gib, float64(largest)/gib)
	}
}

func (e *examination) postgres(ctx context.Context, deep bool) {
	const check = "PostgreSQL"
	pool, err := registry.Connect(ctx, e.config.Postgres)
	if err != nil {
		e.fail(cli.CodeOf(err), check, "", "%v", oneLine(err))
		return
	}
	defer registry.Close(pool)
	var version int
	var user string
	var now time.Time
	if err := pool.QueryRow(ctx,
		"SELECT current_setting('server_version_num')::int, current_user, clock_timestamp()").Scan(&version, &user,
		&now); err != nil {
		e.fail(cli.Unreachable, check, "", "%v", err)
		return
	}
	e.fine(check, "version %d.%d, as %s", version/10000, version%10000, user)
	if err := registry.Writable(ctx, pool); err != nil {
		e.fail(cli.CodeOf(err), "PostgreSQL, writing", "", "%v", err)
	}
	if !deep {
		return
	}
	e.clock(check, now)
	e.tables(ctx, pool, user)
}

// tables checks whether the registry has the tables that this version of navlog needs, and what this login may do with
// them.
func (e *examination) tables(ctx context.Context, pool *pgxpool.Pool, user string) {
	const check = "tables"
	current, err := registry.OpenAsItIs(ctx, e.config.Postgres)
	if err != nil {
		e.warn(check, "run `navlog migrate`; a program does it by itself unless postgres.skipMigrations is set", "%v",
			oneLine(err))
		return
	}
	registry.Close(current)
	var denied []string
	for program, right := range map[string]string{"ingest, project, serve, dispatch": "program_status, INSERT",
		"project": "generation, INSERT", "serve": "command, INSERT", "dispatch": "delivery, INSERT",
		"operators": "partner, UPDATE"} {
		table, privilege, _ := strings.Cut(right, ", ")
		var may bool
		// Rights on single columns count, because the roles have such rights.
		if err := pool.QueryRow(ctx, "SELECT has_any_column_privilege(current_user, $1, $2)", table,
			privilege).Scan(&may); err != nil {
			e.fail(cli.CodeOf(err), check, "", "%v", err)
			return
		}
		if !may {
			denied = append(denied, program)
		}
	}
	if len(denied) == 5 {
		e.fail(cli.Failed, "grants", "run `navlog migrate --roles` with the login that owns the tables, or as another user",
			"%s has the rights of no program", user)
	} else {
		e.fine("grants", "%s has the rights of %d of 5 roles", user, 5-len(denied))
	}
	e.fine(check, "as this version of navlog needs them")
	if rows, err := readStatus(ctx, pool); err != nil {
		e.warn("programs", "run this as another user", "this user cannot read their states: %v", err)
	} else {
		e.states(rows)
	}
	e.generations(ctx, pool)
	if e.uses(config.NeedSecretKey) {
		e.secretKey(ctx, pool)
	}
	e.certificates(ctx, pool)
}

// renewWithin is how long before its expiry a certificate should be replaced; the alert PartnerCertificateExpires has
// the same time.
const renewWithin = 14 * 24 * time.Hour

// certificates warns of certificates for partners' webhook URLs that expire soon. Only some logins may read them.
func (e *examination) certificates(ctx context.Context, pool *pgxpool.Pool) {
	var may bool
	const right = "SELECT has_column_privilege(current_user, 'endpoint_certificates', 'client_expires', 'SELECT')"
	if err := pool.QueryRow(ctx, right).Scan(&may); err != nil || !may {
		return // the login of another program than dispatch, which serve's is too
	}
	found, err := db.New(pool).CertificateExpiries(ctx)
	if err != nil {
		e.warn("certificates", "run this as navlog_operator too, which may read them", "those of partners cannot be read: %v",
			oneLine(err))
		return
	}
	soon := time.Now().Add(renewWithin)
	for _, f := range found {
		for what, at := range map[string]*time.Time{"an authority": f.AuthoritiesExpire,
			"the client certificate": f.ClientExpires} {
			if at != nil && at.Before(soon) {
				e.warn("certificates", fmt.Sprintf("replace it with `navlog partner certificates set %d`", f.PartnerID),
					"%s for the webhooks of partner %d expires at %s", what, f.PartnerID, at.UTC().Format(time.RFC3339))
			}
		}
	}
}

// generations warns of generations that were left half built or are not written. It needs a login that sees
// their tables.
func (e *examination) generations(ctx context.Context, pool *pgxpool.Pool) {
	c := e.config
	if !e.uses(config.NeedProjections) || c.Validate(config.NeedChainID, config.NeedKafka, config.NeedClickHouse) != nil {
		return
	}
	o, err := projections.NewOperator(c.Chain.ID, c.Kafka, c.ClickHouse, pool)
	if err != nil {
		return // ClickHouse's faults were reported already
	}
	defer o.Close()
	all, err := o.List(ctx)
	if err != nil {
		return
	}
	for _, g := range all {
		if g.Note != "" {
			e.warn(fmt.Sprintf("generation %d", g.ID), "follow the note, or wait while a rebuild runs", "%s", g.Note)
		}
	}
}

func (e *examination) secretKey(ctx context.Context, pool *pgxpool.Pool) {
	if e.config.SecretKey == "" {
		e.warn("secret key", "nothing to do if neither dispatch nor an operator's command needs it here; otherwise run "+
			"this where it is given", "it was not given here")
		return
	}
	if e.config.Validate(config.NeedSecretKey) != nil {
		return
	}
	sealer, err := registry.NewSealer(e.config.SecretKey)
	if err == nil {
		err = registry.Unopened(ctx, pool, sealer) // first, because ProvenSealer opens only one
	}
	if err == nil {
		_, err = registry.ProvenSealer(ctx, pool, e.config.SecretKey)
	}
	if err != nil { // it says what to do
		e.fail(cli.Configuration, "secret key", "", "%v", oneLine(err))
		return
	}
	e.fine("secret key", "it opens all stored secrets that this login may read")
}

// states reports which of the four programs run, and the faults that they report.
func (e *examination) states(rows []statusRow) {
	running := map[string]bool{}
	written := slices.ContainsFunc(rows, writes)
	e.compareServedBlock(rows)
	for _, r := range rows {
		if !r.Known {
			continue
		}
		running[r.Program] = true
		var st registry.ProgramStatus
		switch err := json.Unmarshal(r.Status, &st); {
		case err != nil:
			e.warn(r.Program, "", "its state cannot be read: %v", err)
		case st.State == registry.Frozen:
			e.fail(cli.Frozen, r.Program, thawing(st.Reason), "frozen: %s", st.Reason)
		case st.Disproven != "":
			e.fail(cli.Different, r.Program, "append nothing until you know why: run `navlog verify`", "%s", st.Disproven)
		case r.Program == registry.Project && st.State == projections.Bad && written:
			// as of another version, during an upgrade
			e.warn(r.Program, "nothing to do if this is the other version of an upgrade (docs/upgrading.md); otherwise "+
				"follow the reason", "%s does not write, but another instance does: %s", r.Instance, st.Reason)
		case r.Program == registry.Project && st.State == projections.Bad:
			e.fail(cli.Failed, r.Program, "follow the reason: responses do not advance until then", "bad: %s", st.Reason)
		case r.Program == registry.Project && st.State == projections.Retrying:
			e.warn(r.Program, "responses do not advance until it writes: "+
				"docs/operations.md, \"What can go wrong and what you will see\"", "retrying: %s", st.Reason)
		case st.Reason != "":
			e.warn(r.Program, "`navlog status` shows more", "%s: %s", st.State, st.Reason)
		default:
			e.fine(r.Program, "%s", st.State)
		}
		for _, v := range st.VaultWarnings {
			e.warn("vault "+v.Address, "docs/operations.md, \"What can go wrong and what you will see\", has each case", "%s",
				v.Warning)
		}
	}
	for _, program := range registry.Programs {
		if !running[program] {
			e.warn(program, fmt.Sprintf("nothing to do if it is stopped on purpose; `navlog %s` starts it", program),
				"it does not run, or it cannot write its state")
		}
	}
}

// writes reports whether a row is that of a project that writes the live generation.
func writes(r statusRow) bool {
	var st projections.Status
	return r.Program == registry.Project && r.Known && json.Unmarshal(r.Status, &st) == nil && st.Generation != 0 &&
		registry.Working(st.State)
}

// servedWithin is the number of blocks by which serve may be behind the log before doctor warns: the read model has a
// block within a second.
const servedWithin = 64

// compareServedBlock compares the served block with the block of the log.
func (e *examination) compareServedBlock(rows []statusRow) {
	ingest := ingestOf(rows)
	for _, r := range rows {
		s, ok := servedBy(r, ingest)
		if !ok || ingest == nil || ingest.IndexedBlock < s.IndexedBlock+servedWithin {
			continue
		}
		e.warn("responses of "+r.Instance, "check project: `navlog status` shows its state with the reason",
			"they are at block %d, but the log is at block %d: the read model does not advance, or is catching up",
			s.IndexedBlock, ingest.IndexedBlock)
	}
}

// clock compares an engine's clock with this machine's.
func (e *examination) clock(check string, theirs time.Time) {
	apart := time.Since(theirs).Round(time.Millisecond)
	if apart.Abs() > clocksWithin {
		e.warn(check+", clock", "synchronise both with NTP", "it differs from this machine's by %s", apart)
		return
	}
	e.fine(check+", clock", "as this machine's")
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// report prints the findings, and returns the error that ends the command.
func (e *examination) report(out io.Writer, o cli.Output) error {
	failures, code := 0, cli.Failed
	for _, f := range e.findings {
		if f.Verdict == failing {
			if failures == 0 {
				code = f.code
			}
			failures++
		}
	}
	err := o.Print(out, map[string]any{"ok": failures == 0, "findings": e.findings}, func(w io.Writer) {
		for _, f := range e.findings {
			cli.Fprintf(w, "%s\t%s\t%s\n", f.Verdict, f.Check, f.Found)
			if f.Advice != "" {
				cli.Fprintf(w, "\t\t-> %s\n", f.Advice)
			}
		}
	})
	if failures == 0 {
		return err
	}
	return errors.Join(err, code.With(fmt.Errorf("%d of %s failed", failures, printable.Count(len(e.findings), "check"))))
}

type doctorCmd struct {
	cli.Flags
	programFlag
	KafkaUser string `enum:",ingest,project,dispatch,operator" default:"" placeholder:"USER" help:"Kafka user whose rights are checked: ingest, project, dispatch or operator (default: the one that logs in as navlog_USER; otherwise all)."`
	cli.Output
}

// Help explains what the command does not do.
func (doctorCmd) Help() string {
	return "It changes nothing. Warnings leave the exit code at 0; a failure sets another one."
}

// Run checks the configuration, and then everything that it names and that is valid.
func (cmd doctorCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, err := config.Load(cmd.Config, os.Environ())
	e := &examination{config: c, program: cmd.Program, kafkaUser: cmd.KafkaUser}
	e.configuration(err)
	if err := e.reach(ctx, cmd.Flags, s, true); err != nil {
		return err
	}
	return e.report(s.Out, cmd.Output)
}
