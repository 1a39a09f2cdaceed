package chainlog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/chainlog"
)

const (
	chainID = 5
	patient = time.Minute
)

// guarded is a broker as in compose.yaml, whose users have their rights for a chain.
type guarded struct {
	*enginetest.GuardedKafka
	t     *testing.T
	admin *kadm.Client
}

func newGuarded(t *testing.T) *guarded {
	k := enginetest.StartGuardedKafka(t, "../../deploy/docker")
	g := &guarded{k, t, k.AdminAs(t, "admin")}
	passwords, logins := map[string]string{}, map[string]string{}
	for _, user := range chainlog.Users {
		logins[user] = chainlog.UserName(user)
		passwords[logins[user]] = k.Config(t, user).SASL.Password
	}
	g.must(chainlog.SetPasswords(t.Context(), g.admin, passwords))
	g.must(chainlog.Grant(t.Context(), g.admin, chainID, logins))
	return g
}

func (g *guarded) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// eventually waits, since a broker learns of the controller's decisions a moment later.
func (g *guarded) eventually(what string, done func() error) {
	g.t.Helper()
	wait.Until(g.t, func() error {
		if err := done(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// operations are the Kafka operations of each user, in the order in which its program makes them.
var operations = map[string]func(context.Context, *guarded) error{
	chainlog.Ingest: func(ctx context.Context, g *guarded) error {
		client := g.As(g.t, chainlog.Ingest, kgo.TransactionalID(chainlog.TransactionalID(chainID)),
			kgo.RecordPartitioner(kgo.ManualPartitioner())) // all records to partition 0, which readReferrals reads
		defer client.Close()
		adm := kadm.NewClient(client)
		if err := chainlog.EnsureTopics(ctx, adm, chainID, chainlog.DefaultConfig().Topology()); err != nil {
			return err
		}
		var beat kadm.Offsets
		beat.Add(kadm.Offset{Topic: chainlog.CursorTopic(chainID), LeaderEpoch: -1, Metadata: "alive"})
		committed, err := adm.CommitOffsets(ctx, chainlog.HeartGroup(chainID), beat)
		if err == nil {
			err = committed.Error()
		}
		if err != nil {
			return err
		}
		if fetched, err := adm.FetchOffsets(ctx, chainlog.HeartGroup(chainID)); err != nil || fetched.Error() != nil {
			return errors.Join(err, fetched.Error())
		}
		if _, _, err := client.ProducerID(ctx); err != nil {
			return err
		}
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		for _, topic := range chainTopics {
			if err := client.ProduceSync(ctx,
				&kgo.Record{Topic: topic, Key: []byte("a compacted topic needs one"),
					Value: []byte("aborted")}).FirstErr(); err != nil {
				return errors.Join(err, chainlog.EndTransaction(ctx, client, kgo.TryAbort))
			}
		}
		if err := chainlog.EndTransaction(ctx, client, kgo.TryAbort, chainTopics...); err != nil {
			return err
		}
		return read(ctx, g.Config(g.t, chainlog.Ingest))
	},
	chainlog.Project: func(ctx context.Context, g *guarded) error {
		c := g.Config(g.t, chainlog.Project)
		return errors.Join(read(ctx, c), chainlog.Settle(ctx, chainID, c.Options()...))
	},
	chainlog.Dispatch: func(ctx context.Context, g *guarded) error { return readReferrals(ctx, g, chainlog.Dispatch) },
	chainlog.Operator: func(ctx context.Context, g *guarded) error {
		client := g.As(g.t, chainlog.Operator)
		defer client.Close()
		return errors.Join(read(ctx, g.Config(g.t, chainlog.Operator)),
			// navlog backup
			chainlog.CheckTopics(ctx, kadm.NewClient(client), chainID, chainlog.DefaultConfig().Topology()),
			readReferrals(ctx, g, chainlog.Operator))
	},
}

// readReferrals reads the referral topics as a user.
func readReferrals(ctx context.Context, g *guarded, user string) error {
	from := map[string]map[int32]kgo.Offset{}
	for _, topic := range chainTopics[2:] {
		from[topic] = map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}
	}
	client := g.As(g.t, user, kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	defer client.Close()
	adm := kadm.NewClient(client)
	details, err := adm.ListTopics(ctx, chainTopics[2:]...)
	if err == nil {
		err = details.Error()
	}
	if err != nil {
		return err
	}
	if _, err := chainlog.NewWatch(adm, chainlog.HangingAfter, chainTopics[2:]...).Ends(ctx); err != nil {
		return err
	}
	if starts, err := adm.ListStartOffsets(ctx, chainTopics[2:]...); err != nil || starts.Error() != nil {
		return errors.Join(err, starts.Error())
	}
	for seen := map[string]bool{}; len(seen) < 2; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[r.Topic] = true })
	}
	return nil
}

var chainTopics = []string{chainlog.LogTopic(chainID), chainlog.CursorTopic(chainID),
	chainlog.ReferralDeposits(chainID), chainlog.ReferralWithdrawals(chainID)}

// read reads the log and the cursor, which hold only aborted records.
func read(ctx context.Context, c chainlog.Config) error {
	if err := chainlog.ReadAfter(ctx, chainID, chainlog.Position{}, func(chainlog.Entry) error { return nil },
		c.Options()...); err != nil {
		return err
	}
	_, err := chainlog.ReadCursor(ctx, chainID, c.Options()...)
	return err
}

func (g *guarded) operate(user string) error {
	ctx, cancel := context.WithTimeout(g.t.Context(), patient)
	defer cancel()
	return operations[user](ctx, g)
}

// All tests of rights share one broker, which takes seconds to start.
func TestRights(t *testing.T) {
	if testing.Short() {
		t.Skip("tests a broker's rights, without concurrency in navlog")
	}
	shared := newGuarded(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *guarded)
	}{
		{"are reported by a new broker", reportedByANewBroker},
		{"are sufficient and necessary", sufficientAndNecessary}, {"no user can do more", noUserDoesMore},
		{"other clients are rejected", otherClientsRejected}, {"granted again", grantedAgain},
	} {
		t.Run(part.name, func(t *testing.T) {
			g := *shared
			g.t = t
			part.test(t, &g)
		})
	}
}

// A broker that has no coordinator yet, because nothing has requested one, reports the rights on groups and
// transactional ids too. It must be the first test of the broker.
func reportedByANewBroker(t *testing.T, g *guarded) {
	if _, _, err := chainlog.Lacking(t.Context(), g.AdminAs(t, chainlog.Ingest), chainlog.Ingest, chainID); err != nil {
		t.Error(err)
	}
}

// If a cluster never has a coordinator, the rights are reported as an error in time for the check of the topics, which
// needs none.
func TestRightsWithoutACoordinator(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cluster.ControlKey(int16(kmsg.FindCoordinator), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := r.ResponseKind().(*kmsg.FindCoordinatorResponse)
		for _, key := range r.(*kmsg.FindCoordinatorRequest).CoordinatorKeys {
			response.Coordinators = append(response.Coordinators, kmsg.FindCoordinatorResponseCoordinator{Key: key,
				ErrorCode: kerr.CoordinatorNotAvailable.Code})
		}
		return response, nil, true
	})
	config := chainlog.DefaultConfig()
	config.Brokers = cluster.ListenAddrs()
	client, err := kgo.NewClient(config.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // that of `navlog doctor`
	defer cancel()
	_, _, err = chainlog.Lacking(ctx, adm, chainlog.Ingest, chainID)
	if !errors.Is(err, kerr.CoordinatorNotAvailable) || !strings.Contains(err.Error(), "replication.factor") {
		t.Errorf("without a coordinator the rights are read with %v", err)
	}
	err = chainlog.CheckTopics(ctx, adm, chainID, config.Topology())
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("then the topics, of which none exists, are read with %v", err)
	}
}

// delete deletes a topic, and fails until the brokers do not know it any more.
func (g *guarded) delete(topic string) error {
	if _, err := g.admin.DeleteTopic(g.t.Context(), topic); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return err
	}
	found, err := chainlog.ListTopics(g.t.Context(), g.admin, topic)
	if err == nil && found.Has(topic) {
		err = errors.New("the topic is still there")
	}
	return err
}

// The rights are sufficient for each user, and all necessary: without any of them something is
// rejected, and Lacking reports which one is missing.
func sufficientAndNecessary(t *testing.T, g *guarded) {
	for _, user := range []string{chainlog.Ingest, chainlog.Project, chainlog.Dispatch, chainlog.Operator} {
		// ingest makes the topics
		g.eventually(user, func() error { return g.operate(user) })
	}
	for _, user := range chainlog.Users {
		adm := g.AdminAs(t, user)
		lacks := func(want ...chainlog.Right) func() error {
			return func() error {
				lacking, unreported, err := chainlog.Lacking(t.Context(), adm, user, chainID)
				hidden := func(r chainlog.Right) bool { return len(want) == 0 || r.Resource != want[0].Resource }
				if err != nil || slices.ContainsFunc(unreported, hidden) || !slices.Equal(lacking, want) {
					return fmt.Errorf("%s lacks %v, unreported %v, want %v: %v", user, lacking, unreported, want, err)
				}
				return nil
			}
		}
		g.eventually("all rights are granted", lacks())
		for _, right := range chainlog.Rights(user, chainID) {
			rule := func() *kadm.ACLBuilder {
				b := kadm.NewACLs().Operations(right.Operation).Allow("User:" +
					chainlog.UserName(user)).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral)
				switch right.Kind {
				case kmsg.ACLResourceTypeTopic:
					return b.Topics(right.Name)
				case kmsg.ACLResourceTypeGroup:
					return b.Groups(right.Name)
				}
				return b.TransactionalIDs(right.Name)
			}
			deleted, err := g.admin.DeleteACLs(t.Context(), rule())
			if err != nil || len(deleted) != 1 || len(deleted[0].Deleted) != 1 {
				t.Fatalf("%s, %s: %v %v", user, right, deleted, err)
			}
			g.eventually("revoked", lacks(right))
			creates := right.Operation == kmsg.ACLOperationCreate
			if creates { // it is needed for a topic that does not exist
				g.eventually("deleted", func() error { return g.delete(right.Name) })
			}
			if err = g.operate(user); !isRefusal(err) {
				t.Errorf("%s works without %s: %v", user, right, err)
			}
			if _, err := g.admin.CreateACLs(t.Context(), rule()); err != nil {
				t.Fatal(err)
			}
			if creates {
				g.eventually("created again", func() error { return g.operate(user) })
			}
			g.eventually("granted again", lacks())
		}
		g.must(g.operate(user))
	}
}

func isRefusal(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) ||
		errors.Is(err, kerr.TransactionalIDAuthorizationFailed)
}

// No user can do another user's work, or more than that: the operations that the broker reports for
// each topic are the granted ones, and attempts at others are rejected.
func noUserDoesMore(t *testing.T, g *guarded) {
	g.eventually("the topics are created", func() error { return g.operate(chainlog.Ingest) })
	for _, user := range chainlog.Users {
		client := g.As(t, user)
		adm := kadm.NewClient(client)
		for _, topic := range chainTopics {
			may := map[kmsg.ACLOperation]bool{}
			for _, r := range chainlog.Rights(user, chainID) {
				if r.Name == topic && r.Kind == kmsg.ACLResourceTypeTopic {
					may[r.Operation] = true
					if r.Operation == kmsg.ACLOperationRead || r.Operation == kmsg.ACLOperationWrite {
						may[kmsg.ACLOperationDescribe] = true
					}
				}
			}
			topics, err := adm.ListTopics(kadm.WithAuthorizedOps(t.Context()), topic)
			if err != nil && (!errors.Is(err, kerr.TopicAuthorizationFailed) || len(may) > 0) {
				t.Fatalf("%s describes %s: %v", user, topic, err)
			}
			got := topics[topic].AuthorizedOperations
			if len(got) != len(may) || slices.ContainsFunc(got, func(o kmsg.ACLOperation) bool { return !may[o] }) {
				t.Errorf("%s may %v with %s, want %v", user, got, topic, may)
			}
			if user != chainlog.Ingest {
				producer := g.As(t, user, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
				ctx, cancel := context.WithTimeout(t.Context(), patient)
				err := producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte("any"), Value: []byte("forged")}).FirstErr()
				cancel()
				if !errors.Is(err, kerr.TopicAuthorizationFailed) {
					t.Errorf("%s writes %s: %v", user, topic, err)
				}
			}
		}
		if user != chainlog.Ingest {
			fencing := g.As(t, user, kgo.TransactionalID(chainlog.TransactionalID(chainID)))
			if _, _, err := fencing.ProducerID(t.Context()); !errors.Is(err, kerr.TransactionalIDAuthorizationFailed) {
				t.Errorf("%s fences the writer: %v", user, err)
			}
		}
		if deleted, err := adm.DeleteTopics(t.Context(), chainTopics...); err == nil && deleted.Error() == nil {
			t.Errorf("%s deletes topics", user)
		}
		if altered, err := adm.AlterTopicConfigs(t.Context(),
			[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("1")}},
			chainTopics...); err == nil && altered[0].Err == nil {
			t.Errorf("%s lets the log expire", user)
		}
		if err := chainlog.Grant(t.Context(), adm, chainID,
			map[string]string{chainlog.Ingest: chainlog.UserName(user)}); !errors.Is(err, kerr.ClusterAuthorizationFailed) ||
			!strings.Contains(err.Error(), "needs a login that may alter the cluster") {
			t.Errorf("%s grants itself rights: %v", user, err)
		}
		if err := chainlog.SetPasswords(t.Context(), adm,
			map[string]string{chainlog.UserName(chainlog.Ingest): "mine"}); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
			t.Errorf("%s sets a password: %v", user, err)
		}
	}
	g.must(g.operate(chainlog.Ingest)) // it was not fenced
}

// A client without a login, or with a wrong one, is rejected at every listener, with the remedy.
func otherClientsRejected(t *testing.T, g *guarded) {
	properties, err := os.ReadFile("../../deploy/docker/kafka/server.properties")
	g.must(err)
	for line := range strings.Lines(string(properties)) {
		if names, found := strings.CutPrefix(line, "listeners="); found {
			for listener := range strings.SplitSeq(strings.TrimSpace(names), ",") {
				if !strings.HasPrefix(listener, "PROGRAMS://") && !strings.Contains(listener, "://127.0.0.1:") {
					t.Errorf("%s is open to other machines", listener)
				}
			}
		}
	}
	user, admin := g.Config(t, chainlog.Ingest), g.Config(t, "admin")
	g.eventually("the user exists", func() error { return ping(t, user) })
	wrong := user
	wrong.SASL.Password = "hunter2"
	unknown := user
	unknown.SASL.User = "navlog_unknown"
	anonymous := chainlog.DefaultConfig()
	anonymous.Brokers = user.Brokers
	atAdmins := anonymous
	atAdmins.Brokers = admin.Brokers
	userAtAdmins := user
	userAtAdmins.Brokers = admin.Brokers
	adminAtPrograms := admin
	adminAtPrograms.Brokers = user.Brokers
	scramAdmin := user
	scramAdmin.SASL.User, scramAdmin.SASL.Password = "admin", admin.SASL.Password
	for name, c := range map[string]chainlog.Config{
		"a wrong password": wrong, "an unknown user": unknown, "no login": anonymous,
		"no login at admin's listener": atAdmins,
		"a user at admin's listener":   userAtAdmins, "admin at the programs' listener": adminAtPrograms,
		"admin with SCRAM": scramAdmin,
	} {
		err := chainlog.Explain(ping(t, c))
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		if c.SASL.Mechanism == "SCRAM-SHA-512" && c.Brokers[0] == user.Brokers[0] &&
			!strings.Contains(err.Error(), "give the user and the password that the brokers know") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), c.SASL.Password) && c.SASL.Password != "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ping(t *testing.T, c chainlog.Config) error {
	t.Helper()
	client, err := kgo.NewClient(c.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	return client.Ping(ctx)
}

// Grant revokes a user's other rights on the chain's resources, does not touch those on other chains
// or of other users, and may be repeated. The last password set is valid.
func grantedAgain(t *testing.T, g *guarded) {
	name := "User:" + chainlog.UserName(chainlog.Dispatch)
	extra := func(principal, topic string, o kmsg.ACLOperation) {
		created, err := g.admin.CreateACLs(t.Context(),
			kadm.NewACLs().Topics(topic).Operations(o).Allow(principal).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral))
		g.must(err)
		g.must(created[0].Err)
	}
	extra(name, chainlog.LogTopic(chainID), kmsg.ACLOperationWrite)
	extra(name, chainlog.LogTopic(6), kmsg.ACLOperationRead)
	extra("User:other", chainlog.LogTopic(chainID), kmsg.ACLOperationRead)
	rules := func(principal string) (found []string) {
		described, err := g.admin.DescribeACLs(t.Context(),
			kadm.NewACLs().AnyResource().Allow(principal).AllowHosts().Operations().ResourcePatternType(kadm.ACLPatternAny))
		g.must(err)
		for _, d := range described[0].Described {
			found = append(found, fmt.Sprintf("%s %s", d.Operation, d.Name))
		}
		slices.Sort(found)
		return found
	}
	want := []string{"READ " + chainlog.ReferralDeposits(chainID), "READ " + chainlog.ReferralWithdrawals(chainID),
		"READ " + chainlog.LogTopic(6)}
	slices.Sort(want)
	// Grant revokes the rights that the broker reports, which learns of a new right a moment later.
	g.eventually("the broker reports the extra rights", func() error {
		got := rules(name)
		for _, right := range []string{"WRITE " + chainlog.LogTopic(chainID), "READ " + chainlog.LogTopic(6)} {
			if !slices.Contains(got, right) {
				return fmt.Errorf("%v lacks %s", got, right)
			}
		}
		return nil
	})
	for range 2 {
		g.must(chainlog.Grant(t.Context(), g.admin, chainID,
			map[string]string{chainlog.Dispatch: chainlog.UserName(chainlog.Dispatch)}))
		g.eventually("revoked", func() error {
			if got := rules(name); !slices.Equal(got, want) {
				return fmt.Errorf("%v, want %v", got, want)
			}
			return nil
		})
	}
	if got := rules("User:other"); len(got) != 1 {
		t.Errorf("another user has %v", got)
	}
	old := g.Config(t, chainlog.Project)
	g.must(os.WriteFile(filepath.Join(g.Secrets, "kafka_project"), []byte("another one"), 0o600))
	g.must(chainlog.SetPasswords(t.Context(), g.admin,
		map[string]string{chainlog.UserName(chainlog.Project): "another one"}))
	g.eventually("the new password works", func() error { return ping(t, g.Config(t, chainlog.Project)) })
	if err := ping(t, old); !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("with the old password: %v", err)
	}
}
