package chainlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Users of Kafka, by their task. `navlog serve` does not use Kafka.
const (
	Ingest   = "ingest"   // the only writer
	Project  = "project"  // reads the log, like `navlog verify`
	Dispatch = "dispatch" // reads the referrals
	Operator = "operator" // reads the log and describes the topics: `navlog log`, `backup`, `doctor`
)

// Users lists all users.
var Users = []string{Ingest, Project, Dispatch, Operator}

// UserName returns the default login of a user.
func UserName(user string) string { return "navlog_" + user }

// TransactionalID returns the transactional id of the one writer of a chain.
func TransactionalID(chainID uint64) string { return fmt.Sprintf("navlog-ingest-%d", chainID) }

// HeartGroup returns the group to which the writer of a chain commits its heartbeat. The group has no members.
func HeartGroup(chainID uint64) string { return fmt.Sprintf("navlog-ingest-%d", chainID) }

// A Resource is the object of a right.
type Resource struct {
	Kind kmsg.ACLResourceType // topic, group or transactional id
	Name string
}

func (r Resource) String() string { return r.KindName() + " " + r.Name }

// KindName returns topic, group or transactional id.
func (r Resource) KindName() string {
	return strings.ReplaceAll(strings.ToLower(r.Kind.String()), "_", " ")
}

// A Right is one rule of Kafka: an operation allowed on a resource.
type Right struct {
	Resource
	Operation kmsg.ACLOperation
}

func (r Right) String() string { return r.OperationName() + " on " + r.Resource.String() }

// OperationName returns the operation as Kafka's tools and documents write it: DescribeConfigs.
func (r Right) OperationName() string {
	var name strings.Builder
	for word := range strings.SplitSeq(strings.ToLower(r.Operation.String()), "_") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// impliesDescribe reports whether the right implies Describe on the resource.
func (r Right) impliesDescribe() bool {
	return r.Operation == kmsg.ACLOperationRead || r.Operation == kmsg.ACLOperationWrite ||
		r.Operation == kmsg.ACLOperationDescribe
}

// Rights returns exactly the rights that a user needs in Kafka for a chain; a test proves
// for each that something fails without it. Read and Write imply Describe.
//
// A transaction needs Write on its transactional id. It does not need IdempotentWrite on the cluster, which is for
// producers without a transactional id. The fencing and the fenced writer are the same user. No user may delete or
// change a topic; an operator who does so uses another login.
func Rights(user string, chainID uint64) []Right {
	log, cursor := LogTopic(chainID), CursorTopic(chainID)
	referrals := []string{ReferralDeposits(chainID), ReferralWithdrawals(chainID)}
	all := Topics(chainID)
	var rights []Right
	topics := func(operation kmsg.ACLOperation, names ...string) {
		for _, name := range names {
			rights = append(rights, Right{Resource{kmsg.ACLResourceTypeTopic, name}, operation})
		}
	}
	switch user {
	case Ingest:
		topics(kmsg.ACLOperationCreate, all...)
		topics(kmsg.ACLOperationDescribeConfigs, all...) // to check their retention
		topics(kmsg.ACLOperationWrite, all...)
		topics(kmsg.ACLOperationRead, log, cursor)
		rights = append(rights,
			Right{Resource{kmsg.ACLResourceTypeTransactionalId, TransactionalID(chainID)}, kmsg.ACLOperationWrite},
			Right{Resource{kmsg.ACLResourceTypeGroup, HeartGroup(chainID)}, kmsg.ACLOperationRead})
	case Project:
		topics(kmsg.ACLOperationRead, log, cursor)
		topics(kmsg.ACLOperationDescribe, referrals...) // verify waits until no transaction is open
	case Dispatch:
		topics(kmsg.ACLOperationRead, referrals...)
	case Operator:
		topics(kmsg.ACLOperationRead, all...)
		topics(kmsg.ACLOperationDescribeConfigs, all...)
	}
	return rights
}

// Lacking returns the rights of a user that the login of adm does not have, as far as the broker reports them.
// unreported are the rights that it does not report: a topic that does not exist has no rights yet, and if a topic may
// not be described, its other rights are not reported. Lacking tries no operation; for a group or a transactional id it
// only learns whether Describe is allowed, which the required right implies.
func Lacking(
	ctx context.Context, adm *kadm.Client, user string, chainID uint64,
) (lacking, unreported []Right, err error) {
	for _, r := range Rights(user, chainID) {
		var may, known bool
		switch r.Kind {
		case kmsg.ACLResourceTypeTopic:
			var topics kadm.TopicDetails // one at a time: a rejected topic fails the whole request
			if topics, err = ListTopics(ctx, adm, r.Name); err == nil {
				err = topics[r.Name].Err
			}
			operations := topics[r.Name].AuthorizedOperations
			may, known, err = describable(err, kerr.TopicAuthorizationFailed, kerr.UnknownTopicOrPartition)
			if may {
				known, may = len(operations) > 0, slices.Contains(operations, r.Operation)
			} else { // nothing else is reported without Describe
				known = known && r.impliesDescribe()
			}
		case kmsg.ACLResourceTypeGroup:
			err = coordinated(ctx, func() error {
				groups, err := adm.DescribeGroups(ctx, r.Name)
				return cmp.Or(err, groups[r.Name].Err)
			})
			may, known, err = describable(err, kerr.GroupAuthorizationFailed, kerr.GroupIDNotFound)
		default:
			err = coordinated(ctx, func() error {
				transactions, err := adm.DescribeTransactions(ctx, r.Name)
				return cmp.Or(err, transactions[r.Name].Err)
			})
			may, known, err = describable(err, kerr.TransactionalIDAuthorizationFailed, kerr.TransactionalIDNotFound)
		}
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("read the rights on %s: %w", r.Resource, Explain(err))
		case !known:
			unreported = append(unreported, r)
		case !may:
			lacking = append(lacking, r)
		}
	}
	return lacking, unreported, nil
}

// coordinatorWithin limits the wait for a coordinator. A new cluster has one after a second or two. A cluster with
// fewer brokers than replicas of the coordinators' topic never has one, and `navlog doctor` needs half of its time for
// the topics.
const coordinatorWithin = 4 * time.Second

// coordinated repeats a request while its coordinator starts, for coordinatorWithin at most: a new cluster creates the
// topic of its coordinators when one is requested for the first time.
func coordinated(ctx context.Context, request func() error) error {
	limit := time.NewTimer(coordinatorWithin)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := request()
		if !errors.Is(err, kerr.CoordinatorNotAvailable) && !errors.Is(err, kerr.CoordinatorLoadInProgress) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-limit.C:
			return fmt.Errorf("%w; start the brokers that are missing, or lower offsets.topic.replication.factor and "+
				"transaction.state.log.replication.factor to their number", err)
		case <-tick.C:
		}
	}
}

// describable interprets the error of describing a resource: may is whether it is allowed, known whether that is
// certain.
func describable(err error, rejected, absent error) (may, known bool, _ error) {
	switch {
	case err == nil, errors.Is(err, absent):
		return true, true, nil
	case errors.Is(err, rejected):
		return false, true, nil
	case errors.Is(err, kerr.UnsupportedVersion):
		return false, false, nil
	}
	return false, false, err
}

// Grant gives each user its rights for a chain, and revokes its other rights on the resources of that chain. users maps
// users to logins; users that are missing keep their rights. The login of adm must be allowed to alter the cluster.
func Grant(ctx context.Context, adm *kadm.Client, chainID uint64, users map[string]string) error {
	for _, user := range slices.Sorted(maps.Keys(users)) {
		principal := "User:" + users[user]
		rights := Rights(user, chainID)
		if err := revokeOthers(ctx, adm, chainID, principal, rights); err != nil {
			return err
		}
		for _, r := range rights {
			created, err := adm.CreateACLs(ctx, rule(r, principal, "*"))
			for _, c := range created {
				err = errors.Join(err, c.Err)
			}
			if err != nil {
				return fmt.Errorf("grant %s %s: %w", principal, r, Explain(err))
			}
		}
	}
	return nil
}

// rule returns a right of a principal that connects from a host.
func rule(r Right, principal, host string) *kadm.ACLBuilder {
	b := kadm.NewACLs().Operations(r.Operation).Allow(principal).AllowHosts(host).
		ResourcePatternType(kadm.ACLPatternLiteral)
	switch r.Kind {
	case kmsg.ACLResourceTypeTopic:
		return b.Topics(r.Name)
	case kmsg.ACLResourceTypeGroup:
		return b.Groups(r.Name)
	}
	return b.TransactionalIDs(r.Name)
}

// revokeOthers revokes the rights of a principal on the chain's resources that are not in rights.
func revokeOthers(ctx context.Context, adm *kadm.Client, chainID uint64, principal string, rights []Right) error {
	var ofChain []Resource
	for _, user := range Users {
		for _, r := range Rights(user, chainID) {
			ofChain = append(ofChain, r.Resource)
		}
	}
	found, err := adm.DescribeACLs(
		ctx,
		kadm.NewACLs().AnyResource().Allow(principal).AllowHosts().Operations().ResourcePatternType(kadm.ACLPatternLiteral),
	)
	if err != nil {
		return fmt.Errorf("read the rights of %s: %w", principal, Explain(err))
	}
	for _, f := range found {
		if f.Err != nil {
			return fmt.Errorf("read the rights of %s: %w", principal, Explain(f.Err))
		}
		for _, has := range f.Described {
			r := Right{Resource{has.Type, has.Name}, has.Operation}
			if !slices.Contains(ofChain, r.Resource) || has.Host == "*" && slices.Contains(rights, r) {
				continue
			}
			deleted, err := adm.DeleteACLs(ctx, rule(r, principal, has.Host))
			for _, d := range deleted {
				err = errors.Join(err, d.Err)
			}
			if err != nil {
				return fmt.Errorf("revoke from %s %s: %w", principal, r, Explain(err))
			}
		}
	}
	return nil
}

// scramIterations is the minimum that Kafka accepts; each login costs that many. More would
// only help passwords that can be guessed.
const scramIterations = 4096

// SetPasswords creates users that log in with SCRAM-SHA-512, or changes the passwords of
// existing ones. The login of adm must be allowed to alter the cluster.
func SetPasswords(ctx context.Context, adm *kadm.Client, passwords map[string]string) error {
	var users []kadm.UpsertSCRAM
	for _, name := range slices.Sorted(maps.Keys(passwords)) {
		users = append(users, kadm.UpsertSCRAM{
			User: name, Mechanism: kadm.ScramSha512, Iterations: scramIterations, Password: passwords[name],
		})
	}
	if _, err := Checked(adm.AlterUserSCRAMs(ctx, nil, users)); err != nil {
		return fmt.Errorf("set the passwords of Kafka's users: %w", err)
	}
	return nil
}

// Explain adds to a broker's error about a login, a right or a missing topic what to do about it.
func Explain(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Errorf(
			"%w; give the user and the password that the brokers know (kafka.sasl, NAVLOG_KAFKA_SASL_PASSWORD), "+
				"or a token or a role that they accept", err,
		)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed),
		errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return fmt.Errorf("%w; `navlog doctor` says what this user of Kafka lacks", err)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Errorf("%w; `navlog kafka grant` needs a login that may alter the cluster (kafka.sasl)", err)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("%w; `navlog ingest` creates the topics of a chain: has it run, and are kafka.brokers and "+
			"chain.id right?", err)
	}
	return err
}
