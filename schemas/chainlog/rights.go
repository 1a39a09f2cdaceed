package chainlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Users of Kafka, by what they do. `navlog serve` is none of them: it never comes to
// Kafka.
const (
	Ingest   = "ingest"   // writes, and is the only one
	Project  = "project"  // reads the log; `navlog verify` too
	Dispatch = "dispatch" // reads the referrals
	Operator = "operator" // reads the topics and how they are configured: `navlog log`, `backup`, `doctor`
)

// Users are all of them.
var Users = []string{Ingest, Project, Dispatch, Operator}

// UserName is the login that a user has unless it was given another one.
func UserName(user string) string { return "navlog_" + user }

// TransactionalID is that of the one writer of a chain.
func TransactionalID(chainID uint64) string { return fmt.Sprintf("navlog-ingest-%d", chainID) }

// HeartGroup is the group to which the writer of a chain commits that it lives. It has
// no members.
func HeartGroup(chainID uint64) string { return fmt.Sprintf("navlog-ingest-%d", chainID) }

// A Resource is what a right is about.
type Resource struct {
	Kind kmsg.ACLResourceType // topic, group or transactional id
	Name string
}

func (r Resource) String() string { return r.KindName() + " " + r.Name }

// KindName is topic, group or transactional id.
func (r Resource) KindName() string {
	return strings.ReplaceAll(strings.ToLower(r.Kind.String()), "_", " ")
}

// A Right is one rule of Kafka: that a resource may be used so.
type Right struct {
	Resource
	Operation kmsg.ACLOperation
}

func (r Right) String() string { return r.OperationName() + " on " + r.Resource.String() }

// OperationName is as Kafka's tools and documents write it: DescribeConfigs.
func (r Right) OperationName() string {
	var name strings.Builder
	for word := range strings.SplitSeq(strings.ToLower(r.Operation.String()), "_") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// showing tells whether who has it may look at the resource too.
func (r Right) showing() bool {
	return r.Operation == kmsg.ACLOperationRead || r.Operation == kmsg.ACLOperationWrite || r.Operation == kmsg.ACLOperationDescribe
}

// Rights are all that a user does with Kafka for a chain, and no more: without one of
// them something of it does not work, which a test proves for each. Describe comes with
// Read and with Write.
//
// A transaction needs Write on its transactional id, and not IdempotentWrite on the
// cluster, which is for producers without one. Who is fenced, and who fences, is the same
// user. Nobody may delete a topic or change it: what an operator does to topics he does
// as somebody else.
func Rights(user string, chainID uint64) []Right {
	log, cursor := LogTopic(chainID), CursorTopic(chainID)
	referrals := []string{ReferralDeposits(chainID), ReferralWithdrawals(chainID)}
	all := append([]string{log, cursor}, referrals...)
	var rights []Right
	topics := func(operation kmsg.ACLOperation, names ...string) {
		for _, name := range names {
			rights = append(rights, Right{Resource{kmsg.ACLResourceTypeTopic, name}, operation})
		}
	}
	switch user {
	case Ingest:
		topics(kmsg.ACLOperationCreate, all...)
		topics(kmsg.ACLOperationDescribeConfigs, all...) // whether they keep what they must
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

// Lacking are the rights of a user that whoever adm is logged in as has not, as far as
// the broker tells. untold are those that it does not tell of: a topic that is not there
// has no rights yet, and of one that may not be looked at the others are not told. It tries
// nothing, so of a group or a transactional id it learns only whether they may be looked
// at, which comes with the right that is wanted.
func Lacking(ctx context.Context, adm *kadm.Client, user string, chainID uint64) (lacking, untold []Right, err error) {
	for _, r := range Rights(user, chainID) {
		var may, known bool
		switch r.Kind {
		case kmsg.ACLResourceTypeTopic:
			var topics kadm.TopicDetails // of one: a refused one is the whole answer
			if topics, err = ListTopics(ctx, adm, r.Name); err == nil {
				err = topics[r.Name].Err
			}
			operations := topics[r.Name].AuthorizedOperations
			may, known, err = looked(err, kerr.TopicAuthorizationFailed, kerr.UnknownTopicOrPartition)
			if may {
				known, may = len(operations) > 0, slices.Contains(operations, r.Operation)
			} else { // and nothing more is told of what may not even be looked at
				known = known && r.showing()
			}
		case kmsg.ACLResourceTypeGroup:
			var groups kadm.DescribedGroups
			if groups, err = adm.DescribeGroups(ctx, r.Name); err == nil {
				err = groups[r.Name].Err
			}
			may, known, err = looked(err, kerr.GroupAuthorizationFailed, kerr.GroupIDNotFound)
		default:
			var transactions kadm.DescribedTransactions
			if transactions, err = adm.DescribeTransactions(ctx, r.Name); err == nil {
				err = transactions[r.Name].Err
			}
			may, known, err = looked(err, kerr.TransactionalIDAuthorizationFailed, kerr.TransactionalIDNotFound)
		}
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("ask what may be done with %s: %w", r.Resource, Explain(err))
		case !known:
			untold = append(untold, r)
		case !may:
			lacking = append(lacking, r)
		}
	}
	return lacking, untold, nil
}

// looked says what an answer tells of the right to look at something.
func looked(err error, refused, absent error) (may, known bool, _ error) {
	switch {
	case err == nil, errors.Is(err, absent):
		return true, true, nil
	case errors.Is(err, refused):
		return false, true, nil
	case errors.Is(err, kerr.UnsupportedVersion):
		return false, false, nil
	}
	return false, false, err
}

// Grant gives each user its rights for a chain, and takes back all others that it has on
// what belongs to that chain by name. users says how each one logs in; one that is not in
// it keeps what it has. It takes a login that may alter the cluster.
func Grant(ctx context.Context, adm *kadm.Client, chainID uint64, users map[string]string) error {
	for _, user := range slices.Sorted(maps.Keys(users)) {
		principal := "User:" + users[user]
		rights := Rights(user, chainID)
		if err := takeBack(ctx, adm, chainID, principal, rights); err != nil {
			return err
		}
		for _, r := range rights {
			created, err := adm.CreateACLs(ctx, rule(r).Allow(principal).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral))
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

func rule(r Right) *kadm.ACLBuilder {
	b := kadm.NewACLs().Operations(r.Operation)
	switch r.Kind {
	case kmsg.ACLResourceTypeTopic:
		return b.Topics(r.Name)
	case kmsg.ACLResourceTypeGroup:
		return b.Groups(r.Name)
	}
	return b.TransactionalIDs(r.Name)
}

// takeBack takes the rights that a principal has on what is the chain's by name, and
// should not have.
func takeBack(ctx context.Context, adm *kadm.Client, chainID uint64, principal string, rights []Right) error {
	var ofChain []Resource
	for _, user := range Users {
		for _, r := range Rights(user, chainID) {
			ofChain = append(ofChain, r.Resource)
		}
	}
	found, err := adm.DescribeACLs(ctx, kadm.NewACLs().AnyResource().Allow(principal).AllowHosts().Operations().ResourcePatternType(kadm.ACLPatternLiteral))
	if err != nil {
		return fmt.Errorf("look at the rights of %s: %w", principal, Explain(err))
	}
	for _, f := range found {
		if f.Err != nil {
			return fmt.Errorf("look at the rights of %s: %w", principal, Explain(f.Err))
		}
		for _, has := range f.Described {
			r := Right{Resource{has.Type, has.Name}, has.Operation}
			if !slices.Contains(ofChain, r.Resource) || has.Host == "*" && slices.Contains(rights, r) {
				continue
			}
			deleted, err := adm.DeleteACLs(ctx, rule(r).Allow(principal).AllowHosts(has.Host).ResourcePatternType(kadm.ACLPatternLiteral))
			for _, d := range deleted {
				err = errors.Join(err, d.Err)
			}
			if err != nil {
				return fmt.Errorf("take back from %s %s: %w", principal, r, Explain(err))
			}
		}
	}
	return nil
}

// scramIterations is the least that Kafka takes, and what each login costs. More of them
// protect passwords that can be guessed.
const scramIterations = 4096

// SetPasswords makes users who log in by SCRAM-SHA-512, or gives those that are there
// another password. It takes a login that may alter the cluster.
func SetPasswords(ctx context.Context, adm *kadm.Client, passwords map[string]string) error {
	var users []kadm.UpsertSCRAM
	for _, name := range slices.Sorted(maps.Keys(passwords)) {
		users = append(users, kadm.UpsertSCRAM{User: name, Mechanism: kadm.ScramSha512, Iterations: scramIterations, Password: passwords[name]})
	}
	altered, err := adm.AlterUserSCRAMs(ctx, nil, users)
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		return fmt.Errorf("set the passwords of Kafka's users: %w", Explain(err))
	}
	return nil
}

// Explain adds to the word of a broker that lets somebody in no further what to do.
func Explain(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Errorf("%w; give the user and the password that the brokers know (kafka.sasl, NAVLOG_KAFKA_SASL_PASSWORD)", err)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed),
		errors.Is(err, kerr.TransactionalIDAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Errorf("%w; `navlog doctor` says what this user of Kafka lacks", err)
	}
	return err
}
