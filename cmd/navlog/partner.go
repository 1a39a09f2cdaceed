package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

type partnerCmd struct {
	Create       partnerCreateCmd       `cmd:"" help:"Create a partner; print its API key and signing secret, once."`
	List         partnerListCmd         `cmd:"" help:"List the partners."`
	Show         partnerShowCmd         `cmd:"" help:"Show one partner and its live keys."`
	Disable      partnerDisableCmd      `cmd:"" help:"Reject a partner's API requests and stop its webhooks."`
	Enable       partnerEnableCmd       `cmd:"" help:"Accept a disabled partner's API requests again and resume its webhooks."`
	RotateKey    partnerRotateKeyCmd    `cmd:"" help:"Issue another API key; the oldest is revoked when two are live."`
	RevokeKey    partnerRevokeKeyCmd    `cmd:"" help:"Revoke an API key of a partner, on all instances within a second."`
	Reseal       partnerResealCmd       `cmd:"" help:"Encrypt all signing secrets and client keys with the newest key of NAVLOG_SECRET_KEY; nothing changes for partners."`
	RotateSecret partnerRotateSecretCmd `cmd:"" help:"Replace the signing secret; during an overlap, attempts are signed with both."`
	SetLimit     partnerSetLimitCmd     `cmd:"" help:"Set a partner's requests a minute (0: the default)."`
	Certificates partnerCertificatesCmd `cmd:"" help:"Authorities and client certificate for a partner's webhook URL."`
	Aliases      partnerAliasesCmd      `cmd:"" help:"Map attribution values in the logs of a vault to partners."`
}

// issue runs a command whose result is shown only once, and prints it. Without an output it changes nothing: the result
// would be lost.
func (f changeFlags) issue(ctx context.Context, s *cli.Streams,
	do func(*pgxpool.Pool, config.Config) (registry.NewPartner, error), sections ...config.Section) error {
	if s.Discards() {
		return cli.Usage.With(errors.New("standard output is closed or /dev/null, and what this command prints is never " +
			"shown again: nothing was changed"))
	}
	return f.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		issued, err := do(pool, c)
		if err != nil {
			return err
		}
		return f.printOnce(s, issued)
	}, sections...)
}

// printOnce prints what is shown only once. If it cannot be written, the error says how to replace it: the registry has
// stored it already. The operator revokes the lost key first, because another rotation would revoke a key that the
// partner uses. A lost secret is replaced without an overlap, because a rotation with one cannot begin before the last
// one has ended.
func (f changeFlags) printOnce(s *cli.Streams, p registry.NewPartner) error {
	signal.Ignore(syscall.SIGPIPE) // so that a closed pipe is an error, which does not end the process
	err := f.Print(s.Out, p, func(w io.Writer) {
		cli.Fprintf(w, "partner %d (%s)\n", p.ID, p.Name)
		if p.APIKey != "" {
			cli.Fprintf(w, "  API key         %s\n", p.APIKey)
		}
		if len(p.Revoked) > 0 {
			cli.Fprintf(w, "  revoked key     %s\n", registry.KeyNames(p.Revoked))
		}
		if p.SigningSecret != "" {
			cli.Fprintf(w, "  signing secret  %s\n", p.SigningSecret)
		}
		if p.TakesOverAt != nil {
			cli.Fprintf(w, "  takes over at   %s\n", clock(p.TakesOverAt))
		}
		fmt.Fprintln(w, "Keep what is shown here: navlog never shows it again.")
	})
	if err == nil {
		return nil
	}
	var issued, replace []string
	revoked, effect := "", ""
	if p.APIKey != "" {
		last4 := p.APIKey[len(p.APIKey)-4:]
		issued = append(issued, "API key ..."+last4)
		replace = append(replace, fmt.Sprintf("`navlog partner revoke-key %d %s`", p.ID, last4),
			fmt.Sprintf("`navlog partner rotate-key %d`", p.ID))
	}
	if len(p.Revoked) > 0 {
		revoked = fmt.Sprintf(", and key %s was revoked", registry.KeyNames(p.Revoked))
	}
	if p.SigningSecret != "" {
		issued = append(issued, "signing secret")
		replace = append(replace, fmt.Sprintf("`navlog partner rotate-secret %d --overlap 0s`", p.ID))
	}
	if p.TakesOverAt != nil && p.TakesOverAt.After(time.Now()) {
		effect = fmt.Sprintf(" before %s, when the lost secret takes over; it ends the present secret at once, and the "+
			"partner rejects webhooks until it has the new one", clock(p.TakesOverAt))
	}
	return fmt.Errorf("partner %d has a new %s, but it could not be shown and is lost%s: run %s%s: %w",
		p.ID, strings.Join(issued, " and "), revoked, strings.Join(replace, ", then "), effect, err)
}

type partnerCreateCmd struct {
	changeFlags
	Name string `arg:"" help:"Name shown in the partner's statistics."`
	ID   int64  `placeholder:"ID" range:"1 to 4294967295" help:"The partner id that deposits name on chain, 1 to 4294967295 (default: the next free one)."`
	Test bool   `help:"Issue a test key (nk_test_), for a development chain."`
}

func (cmd partnerCreateCmd) Run(ctx context.Context, s *cli.Streams) error {
	if err := registry.CheckName(cmd.Name); err != nil {
		return cli.Usage.With(err)
	}
	return cmd.issue(ctx, s, func(pool *pgxpool.Pool, c config.Config) (registry.NewPartner, error) {
		sealer, err := registry.ProvenSealer(ctx, pool, c.SecretKey)
		if err != nil {
			return registry.NewPartner{}, err
		}
		return registry.CreatePartner(ctx, pool, cmd.operator(), sealer, cmd.ID, cmd.Name, cmd.Test)
	}, config.NeedSecretKey)
}

type partnerListCmd struct{ registryFlags }

type partnerRow struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Disabled  bool      `json:"disabled"`
	RateLimit *int32    `json:"rateLimit"`
	LiveKeys  int64     `json:"liveKeys"`
	URL       *string   `json:"webhookUrl"`
	CreatedAt time.Time `json:"createdAt"`
	Parked    bool      `json:"parked"` // by an operator: nothing is sent
}

func (cmd partnerListCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		found, err := db.New(pool).ListPartners(ctx)
		if err != nil {
			return fmt.Errorf("list partners: %w", err)
		}
		rows := make([]partnerRow, len(found))
		for i, p := range found {
			rows[i] = partnerRow{p.ID, p.Name, p.Disabled, p.RateLimit, p.LiveKeys, p.Url, p.CreatedAt, p.Held}
		}
		return cli.Table(cmd.Output, s.Out, rows, "ID\tNAME\tSTATE\tLIMIT/MIN\tKEYS\tWEBHOOK URL", func(p partnerRow) []any {
			return []any{p.ID, p.Name, p.state(), orDefault(p.RateLimit), p.LiveKeys, orNone(p.URL)}
		})
	})
}

// state describes whether a partner may use the API, and whether an operator stopped its webhooks.
func (p partnerRow) state() string {
	if p.Parked {
		return partnerState(p.Disabled) + ", webhooks parked"
	}
	return partnerState(p.Disabled)
}

func partnerState(disabled bool) string {
	if disabled {
		return "disabled"
	}
	return "enabled"
}

func orDefault(n *int32) string {
	if n == nil {
		return "default"
	}
	return fmt.Sprint(*n)
}

func orNone(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

type partnerShowCmd struct {
	registryFlags
	ID int64 `arg:"" name:"partner" help:"Partner id."`
}

type keyRow struct {
	Last4     string    `json:"last4"`
	CreatedAt time.Time `json:"createdAt"`
}

func (cmd partnerShowCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		q := db.New(pool)
		p, err := q.GetPartner(ctx, cmd.ID)
		if err != nil {
			return unknownPartner(cmd.ID, err)
		}
		live, err := q.ListLiveKeys(ctx, cmd.ID)
		if err != nil {
			return fmt.Errorf("read the keys of partner %d: %w", cmd.ID, err)
		}
		keys := make([]keyRow, len(live))
		for i, k := range live {
			keys[i] = keyRow{k.Last4, k.CreatedAt}
		}
		result := struct {
			partnerRow
			Keys []keyRow `json:"keys"`
		}{partnerRow{p.ID, p.Name, p.Disabled, p.RateLimit, int64(len(keys)), p.Url, p.CreatedAt, p.Held}, keys}
		return cmd.Print(s.Out, result, func(w io.Writer) {
			cli.Fprintf(w, "partner      %d (%s), %s, created %s\nlimit        %s\nwebhook URL  %s (version %d, changed %s)\n",
				p.ID, p.Name, result.state(), clock(&p.CreatedAt), limitOf(p.RateLimit), orNone(p.Url), p.Version,
				clock(&p.UpdatedAt))
			for _, k := range keys {
				cli.Fprintf(w, "key          ...%s, issued %s\n", k.Last4, clock(&k.CreatedAt))
			}
		})
	})
}

// limitOf describes a partner's limit.
func limitOf(perMinute *int32) string {
	if perMinute == nil {
		return "the default of the API"
	}
	return printable.Count(*perMinute, "request a minute", "requests a minute")
}

// unknownPartner returns the error of a partner that could not be read.
func unknownPartner(id int64, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return registry.NoPartner(id)
	}
	return fmt.Errorf("read partner %d: %w", id, err)
}

// partnerFlags are shared by the commands that change one partner.
type partnerFlags struct {
	changeFlags
	ID int64 `arg:"" name:"partner" help:"Partner id."`
}

type partnerDisableCmd struct{ partnerFlags }

func (cmd partnerDisableCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.setDisabled(ctx, s, "partner disable", true)
}

type partnerEnableCmd struct{ partnerFlags }

func (cmd partnerEnableCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.setDisabled(ctx, s, "partner enable", false)
}

func (f partnerFlags) setDisabled(ctx context.Context, s *cli.Streams, command string, disabled bool) error {
	return f.update(ctx, s, command, partnerState(disabled), func(q *db.Queries) (int64, error) {
		return q.SetPartnerDisabled(ctx, db.SetPartnerDisabledParams{ID: f.ID, Disabled: disabled})
	})
}

// update changes the row of one partner and prints what it did.
func (f partnerFlags) update(ctx context.Context, s *cli.Streams, command, what string,
	do func(*db.Queries) (int64, error)) error {
	return f.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		err := registry.Change(ctx, pool, f.operator(), func(q *db.Queries) (registry.Action, error) {
			rows, err := do(q)
			switch {
			case err != nil:
				err = fmt.Errorf("change partner %d: %w", f.ID, err)
			case rows == 0:
				err = registry.NoPartner(f.ID)
			}
			return registry.Action{Command: command, Partner: f.ID, Detail: what}, err
		})
		if err != nil {
			return err
		}
		return f.Print(s.Out, map[string]any{"id": f.ID, "changed": what}, func(w io.Writer) {
			cli.Fprintf(w, "partner %d: %s\n", f.ID, what)
		})
	})
}

type partnerSetLimitCmd struct {
	partnerFlags
	Limit int32 `arg:"" range:"0 to 1000000" help:"Requests a minute, 0 to 1000000; 0 restores the default."`
}

func (cmd partnerSetLimitCmd) Run(ctx context.Context, s *cli.Streams) error {
	p := db.SetPartnerRateLimitParams{ID: cmd.ID}
	if cmd.Limit > 0 {
		p.RateLimit = &cmd.Limit
	}
	return cmd.update(ctx, s, "partner set-limit", "limit "+orDefault(p.RateLimit),
		func(q *db.Queries) (int64, error) { return q.SetPartnerRateLimit(ctx, p) })
}

type partnerRotateKeyCmd struct {
	partnerFlags
	Test bool `help:"Issue a test key (nk_test_), for a development chain."`
}

func (cmd partnerRotateKeyCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.issue(ctx, s, func(pool *pgxpool.Pool, _ config.Config) (registry.NewPartner, error) {
		return registry.RotateKey(ctx, pool, registry.Author{Name: cmd.operator()}, cmd.ID, cmd.Test)
	})
}

type partnerRevokeKeyCmd struct {
	partnerFlags
	Last4 string `arg:"" optional:"" help:"The last four characters of the key, as partner show prints them."`
	All   bool   `help:"Revoke all keys of the partner; partner rotate-key issues another one."`
}

func (cmd partnerRevokeKeyCmd) Run(ctx context.Context, s *cli.Streams) error {
	if cmd.All != (cmd.Last4 == "") || cmd.Last4 != "" && len(cmd.Last4) != 4 {
		return cli.Usage.With(fmt.Errorf("name the key of partner %d to revoke: its last four characters, as in `navlog "+
			"partner show %d`, or --all", cmd.ID, cmd.ID))
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		revoked, err := registry.RevokeKeys(ctx, pool, cmd.operator(), cmd.ID, cmd.Last4)
		if err != nil {
			return err
		}
		return cmd.Print(s.Out, map[string]any{"id": cmd.ID, "revoked": append([]string{}, revoked...)}, func(w io.Writer) {
			cli.Fprintf(w, "partner %d: revoked %s; no instance accepts it after a second\n", cmd.ID, // query caches keys
				registry.KeyNames(revoked))
		})
	})
}

type partnerResealCmd struct{ changeFlags }

func (cmd partnerResealCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		sealer, err := registry.ProvenSealer(ctx, pool, c.SecretKey)
		if err != nil {
			return err
		}
		steps := console.Progress(cmd.Flags, s)
		resealed, err := registry.Reseal(ctx, pool, cmd.operator(), sealer,
			func(done, of uint64) { steps.Report("partners: secrets", done, of) })
		steps.End()
		if err != nil {
			return err
		}
		next := "the other keys can be removed from NAVLOG_SECRET_KEY"
		if resealed.Secrets > 0 { // a program that still encrypts with another key may have done so meanwhile
			next = "run it again until it reports 0, before you remove the other keys from NAVLOG_SECRET_KEY"
		}
		return cmd.Print(s.Out, resealed, func(w io.Writer) {
			cli.Fprintf(w, "all secrets and client keys of %s are encrypted with key %s, %d of them by this command: %s\n",
				printable.Count(resealed.Partners, "partner"), resealed.KeyID, resealed.Secrets, next)
		})
	}, config.NeedSecretKey)
}

type partnerRotateSecretCmd struct {
	partnerFlags
	Overlap time.Duration `default:"24h" help:"How long the old secret still signs, with the new signature in X-Service-Signature-Next: up to 720h; 0s replaces a leaked secret at once."`
	LostKey bool          `help:"NAVLOG_SECRET_KEY is new because the old key is lost: replace the secret at once, without decrypting the old one."`
}

func (cmd partnerRotateSecretCmd) Run(ctx context.Context, s *cli.Streams) error {
	if cmd.Overlap < 0 || cmd.Overlap > registry.MaxOverlap {
		return cli.Usage.With(fmt.Errorf("--overlap is %s and must be 0s to 720h", cmd.Overlap))
	}
	return cmd.issue(ctx, s, func(pool *pgxpool.Pool, c config.Config) (registry.NewPartner, error) {
		sealer, err := cmd.sealer(ctx, pool, c.SecretKey)
		if err != nil {
			return registry.NewPartner{}, err
		}
		overlap := cmd.Overlap
		if cmd.LostKey {
			overlap = 0
		}
		return registry.RotateSecret(ctx, pool, registry.Author{Name: cmd.operator()}, sealer, cmd.ID, overlap)
	}, config.NeedSecretKey)
}

func (cmd partnerRotateSecretCmd) sealer(
	ctx context.Context, pool *pgxpool.Pool, key string,
) (*registry.Sealer, error) {
	if cmd.LostKey {
		return registry.NewSealer(key)
	}
	return registry.ProvenSealer(ctx, pool, key)
}
