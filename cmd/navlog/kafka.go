package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
)

type kafkaCmd struct {
	Rights kafkaRightsCmd `cmd:"" help:"Print the rights that each Kafka user needs, as a table or as kafka-acls commands; connect to nothing."`
	Grant  kafkaGrantCmd  `cmd:"" help:"Grant each Kafka user its rights, and revoke all others; --passwords creates the users."`
}

// loginFlags set the login names of the Kafka users.
type loginFlags struct {
	Login map[string]string `placeholder:"USER=NAME" help:"Login name of a user, if it is not navlog_ingest, navlog_project, navlog_dispatch or navlog_operator, such as ingest=sa-12; separate several by ;."`
}

// logins returns the login names of all users. No two users have the same one: a grant revokes all other rights.
func (f loginFlags) logins() (map[string]string, error) {
	logins, userOf := map[string]string{}, map[string]string{}
	for _, user := range chainlog.Users {
		login := cmp.Or(f.Login[user], chainlog.UserName(user))
		if other := userOf[login]; other != "" {
			return nil, cli.Usage.With(fmt.Errorf("the users %s and %s have the same login %q: pass a different one for each "+
				"as --login", other, user, login))
		}
		logins[user], userOf[login] = login, user
	}
	for user := range f.Login {
		if logins[user] == "" {
			return nil, cli.Usage.With(fmt.Errorf("--login names %q, and the users are %s", user,
				strings.Join(chainlog.Users, ", ")))
		}
	}
	return logins, nil
}

type kafkaRightsCmd struct {
	cli.Flags
	loginFlags
	cli.Output
	Commands bool `help:"Print the kafka-acls.sh commands that grant them: set KAFKA_ACLS to the command with --bootstrap-server and --command-config, such as KAFKA_ACLS='kafka-acls.sh --bootstrap-server kafka:9092 --command-config admin.properties'."`
}

// rightRow is one right of one user.
type rightRow struct {
	User      string `json:"user"`
	Login     string `json:"login"`
	Resource  string `json:"resource"`
	Name      string `json:"name"`
	Operation string `json:"operation"`
}

// Run prints the rights. They depend only on the chain's id.
func (cmd kafkaRightsCmd) Run(_ context.Context, s *cli.Streams) error {
	c, err := config.Read(cmd.Flags, config.NeedChainID)
	if err != nil {
		return err
	}
	logins, err := cmd.logins()
	if err != nil {
		return err
	}
	var rows []rightRow
	for _, user := range chainlog.Users {
		for _, r := range chainlog.Rights(user, c.Chain.ID) {
			rows = append(rows, rightRow{user, logins[user], r.KindName(), r.Name, r.OperationName()})
		}
	}
	return cmd.Print(s.Out, rows, func(w io.Writer) {
		if cmd.Commands {
			writeACLCommands(w, rows)
			return
		}
		cli.Rows(w, rows, "USER\tPRINCIPAL\tRESOURCE\tNAME\tOPERATION",
			func(r rightRow) []any { return []any{r.User, "User:" + r.Login, r.Resource, r.Name, r.Operation} })
	})
}

// writeACLCommands writes one command for each user and resource.
func writeACLCommands(w io.Writer, rows []rightRow) {
	for len(rows) > 0 {
		r, operations := rows[0], ""
		var rest []rightRow
		for _, other := range rows {
			if other.User == r.User && other.Resource == r.Resource && other.Name == r.Name {
				operations += " --operation " + other.Operation
			} else {
				rest = append(rest, other)
			}
		}
		rows = rest
		cli.Fprintf(w, "$KAFKA_ACLS --add --allow-principal %s --%s %s%s\n", quoted("User:"+r.Login),
			strings.ReplaceAll(r.Resource, " ", "-"), r.Name, operations)
	}
}

// plainWord matches what a shell leaves as it is.
var plainWord = regexp.MustCompile(`^[\w.:=,/@+-]+$`)

// quoted returns a word for a shell: the login of a certificate is a name such as CN=navlog ingest,O=Acme.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

type kafkaGrantCmd struct {
	changeFlags
	loginFlags
	Passwords string `type:"path" placeholder:"DIR" help:"Create the users too, with SCRAM-SHA-512: each gets the password in the file kafka_ingest, kafka_project, kafka_dispatch or kafka_operator of this folder."`
}

// Help explains which login the command needs.
func (kafkaGrantCmd) Help() string {
	return "It needs a login to Kafka (kafka.sasl) that may alter the cluster, and changes only the rights on the " +
		"topics, the group and the transactional id of chain.id. You can run it again at any time: the rights and the " +
		"passwords are the same afterwards."
}

// grantWithin is the time limit of a grant, which makes some thirty requests.
const grantWithin = time.Minute

// Run grants the rights. It needs the registry only for the audit.
func (cmd kafkaGrantCmd) Run(ctx context.Context, s *cli.Streams) error {
	logins, err := cmd.logins()
	if err != nil {
		return err
	}
	passwords := map[string]string{}
	for _, user := range chainlog.Users {
		if cmd.Passwords == "" {
			break
		}
		if passwords[logins[user]], err = cli.ReadSecret(filepath.Join(cmd.Passwords, "kafka_"+user)); err != nil {
			return cli.Configuration.With(fmt.Errorf("read the password of Kafka's user %s: %w", logins[user], err))
		}
	}
	c, err := config.ReadReaching(ctx, cmd.Flags, config.NeedChainID, config.NeedKafka)
	if err != nil {
		return err
	}
	d := registry.Action{Command: "kafka grant",
		Detail: fmt.Sprintf("chain %d, to %s, passwords set %t", c.Chain.ID,
			strings.Join(slices.Sorted(maps.Values(logins)), ", "), cmd.Passwords != "")}
	err = cmd.auditedIfReachable(ctx, s, c, d, "navlog_operator", "Kafka has the rights", func() error {
		return grant(ctx, c, logins, passwords)
	})
	if err != nil {
		return err
	}
	result := map[string]any{"chainId": c.Chain.ID, "logins": logins, "passwords": cmd.Passwords != ""}
	return cmd.Print(s.Out, result, func(w io.Writer) { cli.Fprintf(w, "%s\n", d.Detail) })
}

func grant(ctx context.Context, c config.Config, logins, passwords map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, grantWithin)
	defer cancel()
	client, err := kgo.NewClient(c.Kafka.Options()...)
	if err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	if len(passwords) > 0 {
		if err := chainlog.SetPasswords(ctx, adm, passwords); err != nil {
			return err
		}
	}
	return chainlog.Grant(ctx, adm, c.Chain.ID, logins)
}

// kafkaRights reports which rights are missing, and for which user.
func (e *examination) kafkaRights(ctx context.Context, adm *kadm.Client) {
	const check = "Kafka, rights"
	c, chainID := e.config.Kafka, e.config.Chain.ID
	if c.SASL.Mechanism == "" {
		e.warn(check, "nothing to do if no other client can reach the brokers; otherwise see "+
			"docs/operations.md, \"Kafka: a user for each program\"",
			"there is no login: every client that reaches the brokers can write the log")
		return
	}
	users := chainlog.Users
	for _, user := range chainlog.Users {
		if e.kafkaUser == user || e.kafkaUser == "" && c.SASL.User == chainlog.UserName(user) {
			users = []string{user}
		}
	}
	const advice = "run `navlog kafka grant` with a login that may alter the cluster; `navlog kafka rights` lists what " +
		"each user needs"
	var may, lacks []string
	unreported := map[string]bool{}
	for _, user := range users {
		lacking, unknown, err := chainlog.Lacking(ctx, adm, user, chainID)
		if err != nil {
			e.fail(cli.CodeOf(err), check, "", "%v", oneLine(err))
			return
		}
		for _, r := range unknown {
			unreported[r.Resource.String()] = true
		}
		if len(lacking) == 0 {
			may = append(may, user)
			continue
		}
		words := make([]string, len(lacking))
		for i, r := range lacking {
			words[i] = r.String()
		}
		lacks = append(lacks, fmt.Sprintf("%s lacks %s, which %s needs", c.SASL.Who(), strings.Join(words, ", "), user))
	}
	if len(may) == 0 {
		e.fail(cli.Failed, check, advice, "%s", strings.Join(lacks, "; "))
	} else {
		e.fine(check, "%s has the rights of %s", c.SASL.Who(), strings.Join(may, ", "))
	}
	if len(unreported) > 0 {
		e.warn(check, "run this again when `navlog ingest` has created the topics and the missing rights are granted",
			"the broker does not report the rights on %s", strings.Join(slices.Sorted(maps.Keys(unreported)), ", "))
	}
}
