package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

type partnerCmd struct {
	Create       partnerCreateCmd       `cmd:"" help:"Create a partner; prints its API key and signing secret, once."`
	List         partnerListCmd         `cmd:"" help:"List the partners."`
	Show         partnerShowCmd         `cmd:"" help:"Show one partner and its live keys."`
	Disable      partnerDisableCmd      `cmd:"" help:"Refuse a partner's API calls and stop its webhooks."`
	Enable       partnerEnableCmd       `cmd:"" help:"Undo disable."`
	RotateKey    partnerRotateKeyCmd    `cmd:"" help:"Issue another API key; the oldest is revoked when two are live."`
	RevokeKey    partnerRevokeKeyCmd    `cmd:"" help:"End an API key of a partner, everywhere within a second."`
	Reseal       partnerResealCmd       `cmd:"" help:"Encrypt all signing secrets with the newest key of NAVLOG_SECRET_KEY; nothing changes for partners."`
	RotateSecret partnerRotateSecretCmd `cmd:"" help:"Replace the signing secret, with a time in which attempts are signed with both."`
	SetLimit     partnerSetLimitCmd     `cmd:"" help:"Set a partner's requests a minute (0: the default)."`
}

// newPartner is what `partner create` prints: the only time that the key and
// the secret can be read.
type newPartner struct {
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	APIKey        string `json:"apiKey,omitempty"`
	SigningSecret string `json:"signingSecret,omitempty"`
}

// provenSealer refuses keys of which none is the one that the secrets of the
// registry were sealed with: dispatch could open either those or the next one. And
// it refuses to seal what a running dispatcher could not open. A registry without
// partners takes any key.
func provenSealer(ctx context.Context, pool *pgxpool.Pool, key string) (*registry.Sealer, error) {
	sealer, err := registry.NewSealer(key)
	if err != nil {
		return nil, err
	}
	q := db.New(pool)
	known, err := q.AnyEndpoint(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return sealer, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a signing secret to check NAVLOG_SECRET_KEY: %w", err)
	}
	if _, err := sealer.Open(known.PartnerID, known.Secret); err != nil {
		return nil, fmt.Errorf("%w: give the key that dispatch has; where it is lost, give every partner a new secret with `navlog partner rotate-secret ID --lost-key`", err)
	}
	newest := sealer.KeyIDs()[0]
	without, err := q.DispatchersWithoutKey(ctx, newest)
	if err != nil {
		return nil, fmt.Errorf("look which keys the running dispatchers have: %w", err)
	}
	if without > 0 {
		return nil, fmt.Errorf("%d running dispatchers could not open what is sealed with the newest key of NAVLOG_SECRET_KEY, whose id is %s: start them again with the same NAVLOG_SECRET_KEY as here, and run this again", without, newest)
	}
	return sealer, nil
}

// createPartner makes partner, endpoint, key and secret in one transaction. An
// id of 0 takes the next free one.
func createPartner(ctx context.Context, pool *pgxpool.Pool, by signature, sealer *registry.Sealer, id int64, name string, testKey bool) (newPartner, error) {
	created := newPartner{ID: id, Name: name, APIKey: registry.NewAPIKey(testKey), SigningSecret: registry.NewSigningSecret()}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		q := db.New(tx)
		if id == 0 {
			created.ID, err = q.CreatePartner(ctx, name)
		} else {
			_, err = q.CreatePartnerWithID(ctx, db.CreatePartnerWithIDParams{ID: id, Name: name})
		}
		if err != nil {
			return err
		}
		if err := q.CreateEndpoint(ctx, db.CreateEndpointParams{PartnerID: created.ID, Secret: sealer.Seal(created.ID, created.SigningSecret)}); err != nil {
			return err
		}
		if err := addKey(ctx, q, created.ID, created.APIKey); err != nil {
			return err
		}
		return by.record(ctx, q, deed{"partner create", created.ID, fmt.Sprintf("%q, key ...%s", name, last4(created.APIKey))}, auditDone)
	})
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && pgErr.Code == "23505" && id == 0:
		return newPartner{}, fmt.Errorf("create partner %q: somebody else made a partner at the same time and took the next free id: run it again", name)
	case errors.As(err, &pgErr) && pgErr.Code == "23505":
		return newPartner{}, fmt.Errorf("partner %d exists already: choose another --id or leave it out", id)
	case err != nil:
		return newPartner{}, fmt.Errorf("create partner %q: %w", name, err)
	}
	return created, nil
}

func addKey(ctx context.Context, q *db.Queries, partnerID int64, key string) error {
	return q.CreateKey(ctx, db.CreateKeyParams{PartnerID: partnerID, Hash: registry.HashKey(key), Last4: last4(key)})
}

// last4 is by what people tell keys apart.
func last4(key string) string { return key[len(key)-4:] }

func (p newPartner) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(p)
	}
	fmt.Fprintf(w, "partner %d (%s)\n", p.ID, p.Name)
	if p.APIKey != "" {
		fmt.Fprintf(w, "  API key         %s\n", p.APIKey)
	}
	if p.SigningSecret != "" {
		fmt.Fprintf(w, "  signing secret  %s\n", p.SigningSecret)
	}
	_, err := fmt.Fprintln(w, "Keep what is shown here: navlog never shows it again.")
	return err
}

type partnerCreateCmd struct {
	changeFlags
	Name string `arg:"" help:"Name shown in the partner's statistics."`
	ID   int64  `help:"The partner id that deposits name on chain, 1 to 4294967295 (default: the next free one)."`
	Test bool   `help:"Issue a test key (nk_test_), for a development chain."`
}

// Run creates the partner.
func (cmd partnerCreateCmd) Run(ctx context.Context, s *streams) error {
	if cmd.ID < 0 || cmd.ID > 1<<32-1 {
		return fmt.Errorf("--id is %d and must be 1 to 4294967295, the range of the id on chain", cmd.ID)
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config) error {
		sealer, err := provenSealer(ctx, pool, c.SecretKey)
		if err != nil {
			return err
		}
		created, err := createPartner(ctx, pool, cmd.signature, sealer, cmd.ID, cmd.Name, cmd.Test)
		if err != nil {
			return err
		}
		return created.print(s.out, cmd.JSON)
	}, needSecretKey)
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
}

// Run lists the partners.
func (cmd partnerListCmd) Run(ctx context.Context, s *streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config) error {
		found, err := db.New(pool).ListPartners(ctx)
		if err != nil {
			return fmt.Errorf("list partners: %w", err)
		}
		rows := make([]partnerRow, len(found))
		for i, p := range found {
			rows[i] = partnerRow{p.ID, p.Name, p.Disabled, p.RateLimit, p.LiveKeys, p.Url, p.CreatedAt}
		}
		if cmd.JSON {
			return json.NewEncoder(s.out).Encode(rows)
		}
		w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNAME\tSTATE\tLIMIT/MIN\tKEYS\tWEBHOOK URL")
		for _, p := range rows {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\n", p.ID, p.Name, partnerState(p.Disabled), orDefault(p.RateLimit), p.LiveKeys, orNone(p.URL))
		}
		return w.Flush()
	})
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
	ID int64 `arg:"" help:"Partner id."`
}

type keyRow struct {
	Last4     string    `json:"last4"`
	CreatedAt time.Time `json:"createdAt"`
}

// Run shows one partner.
func (cmd partnerShowCmd) Run(ctx context.Context, s *streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config) error {
		q := db.New(pool)
		p, err := q.GetPartner(ctx, cmd.ID)
		if errors.Is(err, pgx.ErrNoRows) {
			return noPartner(cmd.ID)
		}
		if err != nil {
			return fmt.Errorf("read partner %d: %w", cmd.ID, err)
		}
		live, err := q.ListLiveKeys(ctx, cmd.ID)
		if err != nil {
			return fmt.Errorf("read the keys of partner %d: %w", cmd.ID, err)
		}
		keys := make([]keyRow, len(live))
		for i, k := range live {
			keys[i] = keyRow{k.Last4, k.CreatedAt}
		}
		if cmd.JSON {
			return json.NewEncoder(s.out).Encode(struct {
				partnerRow
				Keys []keyRow `json:"keys"`
			}{partnerRow{p.ID, p.Name, p.Disabled, p.RateLimit, int64(len(keys)), p.Url, p.CreatedAt}, keys})
		}
		fmt.Fprintf(s.out, "partner      %d (%s), %s, created %s\nlimit        %s requests a minute\nwebhook URL  %s (version %d, changed %s)\n",
			p.ID, p.Name, partnerState(p.Disabled), p.CreatedAt.UTC().Format(time.RFC3339), orDefault(p.RateLimit), orNone(p.Url), p.Version, p.UpdatedAt.UTC().Format(time.RFC3339))
		for _, k := range keys {
			fmt.Fprintf(s.out, "key          ...%s, issued %s\n", k.Last4, k.CreatedAt.UTC().Format(time.RFC3339))
		}
		return nil
	})
}

func noPartner(id int64) error {
	return fmt.Errorf("there is no partner %d: `navlog partner list` shows them", id)
}

type partnerDisableCmd struct {
	changeFlags
	ID int64 `arg:"" help:"Partner id."`
}

// Run disables the partner.
func (cmd partnerDisableCmd) Run(ctx context.Context, s *streams) error {
	return cmd.setDisabled(ctx, s, "partner disable", cmd.ID, true)
}

type partnerEnableCmd struct {
	changeFlags
	ID int64 `arg:"" help:"Partner id."`
}

// Run enables the partner.
func (cmd partnerEnableCmd) Run(ctx context.Context, s *streams) error {
	return cmd.setDisabled(ctx, s, "partner enable", cmd.ID, false)
}

func (f changeFlags) setDisabled(ctx context.Context, s *streams, command string, id int64, disabled bool) error {
	return f.update(ctx, s, deed{command, id, partnerState(disabled)}, func(q *db.Queries) (int64, error) {
		return q.SetPartnerDisabled(ctx, db.SetPartnerDisabledParams{ID: id, Disabled: disabled})
	})
}

// update changes the row of one partner and says so.
func (f changeFlags) update(ctx context.Context, s *streams, d deed, do func(*db.Queries) (int64, error)) error {
	return f.withRegistry(ctx, func(pool *pgxpool.Pool, _ config) error {
		err := f.change(ctx, pool, func(q *db.Queries) (deed, error) {
			rows, err := do(q)
			switch {
			case err != nil:
				return d, fmt.Errorf("change partner %d: %w", d.partner, err)
			case rows == 0:
				return d, noPartner(d.partner)
			}
			return d, nil
		})
		if err != nil {
			return err
		}
		if f.JSON {
			return json.NewEncoder(s.out).Encode(map[string]any{"id": d.partner, "changed": d.detail})
		}
		_, err = fmt.Fprintf(s.out, "partner %d: %s\n", d.partner, d.detail)
		return err
	})
}

type partnerSetLimitCmd struct {
	changeFlags
	ID    int64 `arg:"" help:"Partner id."`
	Limit int32 `arg:"" help:"Requests a minute, 1 to 1000000; 0 goes back to the default."`
}

// Run sets the limit.
func (cmd partnerSetLimitCmd) Run(ctx context.Context, s *streams) error {
	if cmd.Limit < 0 || cmd.Limit > 1_000_000 {
		return fmt.Errorf("the limit is %d and must be 0 to 1000000 requests a minute", cmd.Limit)
	}
	p := db.SetPartnerRateLimitParams{ID: cmd.ID}
	if cmd.Limit > 0 {
		p.RateLimit = &cmd.Limit
	}
	return cmd.update(ctx, s, deed{"partner set-limit", cmd.ID, "limit " + orDefault(p.RateLimit)}, func(q *db.Queries) (int64, error) {
		return q.SetPartnerRateLimit(ctx, p)
	})
}

// maxLiveKeys lets a partner change its key without a gap.
const maxLiveKeys = 2

type partnerRotateKeyCmd struct {
	changeFlags
	ID   int64 `arg:"" help:"Partner id."`
	Test bool  `help:"Issue a test key (nk_test_), for a development chain."`
}

// Run issues a key and revokes the oldest one beyond two.
func (cmd partnerRotateKeyCmd) Run(ctx context.Context, s *streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config) error {
		key := registry.NewAPIKey(cmd.Test)
		var name string
		err := cmd.change(ctx, pool, func(q *db.Queries) (deed, error) {
			d := deed{"partner rotate-key", cmd.ID, "issued ..." + last4(key)}
			if _, err := q.LockPartner(ctx, cmd.ID); err != nil {
				return d, err
			}
			p, err := q.GetPartner(ctx, cmd.ID)
			if err != nil {
				return d, err
			}
			name = p.Name
			live, err := q.ListLiveKeys(ctx, cmd.ID)
			if err != nil {
				return d, err
			}
			for ; len(live) >= maxLiveKeys; live = live[1:] {
				if err := q.RevokeKey(ctx, live[0].ID); err != nil {
					return d, err
				}
				d.detail += ", revoked ..." + live[0].Last4
			}
			return d, addKey(ctx, q, cmd.ID, key)
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return noPartner(cmd.ID)
		}
		if err != nil {
			return fmt.Errorf("issue a key to partner %d: %w", cmd.ID, err)
		}
		return newPartner{ID: cmd.ID, Name: name, APIKey: key}.print(s.out, cmd.JSON)
	})
}

type partnerRevokeKeyCmd struct {
	changeFlags
	ID    int64  `arg:"" help:"Partner id."`
	Last4 string `arg:"" optional:"" help:"The last four characters of the key, as partner show has them."`
	All   bool   `help:"All of the partner's keys; partner rotate-key issues another one."`
}

// revokedWithin is how long a key may still count: for as long query trusts what
// it was told of a key.
const revokedWithin = "a second"

// Run revokes.
func (cmd partnerRevokeKeyCmd) Run(ctx context.Context, s *streams) error {
	if cmd.All != (cmd.Last4 == "") || cmd.Last4 != "" && len(cmd.Last4) != 4 {
		return fmt.Errorf("say which key of partner %d ends: its last four characters, as `navlog partner show %d` has them, or --all", cmd.ID, cmd.ID)
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config) error {
		var revoked []string
		err := cmd.change(ctx, pool, func(q *db.Queries) (deed, error) {
			var err error
			if _, err = q.LockPartner(ctx, cmd.ID); errors.Is(err, pgx.ErrNoRows) {
				return deed{}, noPartner(cmd.ID)
			}
			if err == nil {
				revoked, err = q.RevokeKeys(ctx, db.RevokeKeysParams{PartnerID: cmd.ID, Last4: cmd.Last4})
			}
			if err != nil {
				return deed{}, fmt.Errorf("revoke keys of partner %d: %w", cmd.ID, err)
			}
			if len(revoked) == 0 && !cmd.All {
				return deed{}, fmt.Errorf("partner %d has no live key that ends with %q: `navlog partner show %d` has the live ones", cmd.ID, cmd.Last4, cmd.ID)
			}
			return deed{"partner revoke-key", cmd.ID, "revoked " + keyNames(revoked)}, nil
		})
		if err != nil {
			return err
		}
		if cmd.JSON {
			return json.NewEncoder(s.out).Encode(map[string]any{"id": cmd.ID, "revoked": append([]string{}, revoked...)})
		}
		_, err = fmt.Fprintf(s.out, "partner %d: revoked %s; within %s no instance takes it any more\n", cmd.ID, keyNames(revoked), revokedWithin)
		return err
	})
}

func keyNames(ends []string) string {
	if len(ends) == 0 {
		return "no key, for none was live"
	}
	return "..." + strings.Join(ends, ", ...")
}

type partnerResealCmd struct{ changeFlags }

// Run seals again whatever is not sealed with the newest key.
func (cmd partnerResealCmd) Run(ctx context.Context, s *streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config) error {
		sealer, err := provenSealer(ctx, pool, c.SecretKey)
		if err != nil {
			return err
		}
		newest, resealed, partners := sealer.KeyIDs()[0], 0, 0
		err = cmd.change(ctx, pool, func(q *db.Queries) (deed, error) {
			rows, err := q.LockSecrets(ctx)
			if err != nil {
				return deed{}, fmt.Errorf("read the sealed secrets: %w", err)
			}
			partners = len(rows)
			for _, r := range rows {
				n, err := reseal(ctx, q, sealer, r)
				if err != nil {
					return deed{}, err
				}
				resealed += n
			}
			return deed{"partner reseal", 0, fmt.Sprintf("%d secrets of %d partners sealed again, with key %s", resealed, partners, newest)}, nil
		})
		if err != nil {
			return err
		}
		if cmd.JSON {
			return json.NewEncoder(s.out).Encode(map[string]any{"keyId": newest, "partners": partners, "resealed": resealed})
		}
		_, err = fmt.Fprintf(s.out, "all secrets of %d partners are sealed with key %s, %d of them since now: the other keys can be taken out of NAVLOG_SECRET_KEY\n", partners, newest, resealed)
		return err
	}, needSecretKey)
}

// reseal seals a partner's secrets with the newest key, and tells how many were
// not.
func reseal(ctx context.Context, q *db.Queries, sealer *registry.Sealer, row db.LockSecretsRow) (int, error) {
	resealed := 0
	again := func(sealed []byte) ([]byte, error) {
		if len(sealed) == 0 || sealer.Newest(sealed) {
			return sealed, nil
		}
		secret, err := sealer.Open(row.PartnerID, sealed)
		if err != nil {
			return nil, err
		}
		resealed++
		return sealer.Seal(row.PartnerID, secret), nil
	}
	secret, err := again(row.Secret)
	if err != nil {
		return 0, err
	}
	next, err := again(row.NextSecret)
	if err != nil || resealed == 0 {
		return 0, err
	}
	if err := q.ReplaceSealed(ctx, db.ReplaceSealedParams{PartnerID: row.PartnerID, Secret: secret, NextSecret: next}); err != nil {
		return 0, fmt.Errorf("seal the secret of partner %d again: %w", row.PartnerID, err)
	}
	return resealed, nil
}

type partnerRotateSecretCmd struct {
	changeFlags
	ID      int64         `arg:"" help:"Partner id."`
	Overlap time.Duration `default:"24h" help:"How long the old secret still signs, with the new signature in X-Service-Signature-Next beside it: up to 720h; 0s replaces a secret that leaked at once."`
	LostKey bool          `help:"NAVLOG_SECRET_KEY is a new one, because the old one is lost: replace the secret at once, without opening any."`
}

// Run replaces the secret.
func (cmd partnerRotateSecretCmd) Run(ctx context.Context, s *streams) error {
	if cmd.Overlap < 0 || cmd.Overlap > 720*time.Hour {
		return fmt.Errorf("--overlap is %s and must be 0s to 720h", cmd.Overlap)
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config) error {
		sealer, err := cmd.sealer(ctx, pool, c.SecretKey)
		if err != nil {
			return err
		}
		q := db.New(pool)
		p, err := q.GetPartner(ctx, cmd.ID)
		if errors.Is(err, pgx.ErrNoRows) {
			return noPartner(cmd.ID)
		}
		if err != nil {
			return fmt.Errorf("read partner %d: %w", cmd.ID, err)
		}
		secret := registry.NewSigningSecret()
		sealed := sealer.Seal(cmd.ID, secret)
		err = cmd.change(ctx, pool, func(q *db.Queries) (deed, error) {
			d, replaced := deed{"partner rotate-secret", cmd.ID, "at once"}, int64(0)
			var err error
			if cmd.Overlap > 0 && !cmd.LostKey {
				d.detail = "with an overlap of " + cmd.Overlap.String()
				replaced, err = q.RotateSecret(ctx, db.RotateSecretParams{PartnerID: cmd.ID, NextSecret: sealed, OverlapSeconds: int64(cmd.Overlap.Seconds())})
			} else {
				replaced, err = q.SetSecret(ctx, db.SetSecretParams{PartnerID: cmd.ID, Secret: sealed})
			}
			if err == nil && replaced == 0 {
				return d, rotating(ctx, q, cmd.ID)
			}
			if err != nil {
				return d, fmt.Errorf("replace the secret of partner %d: %w", cmd.ID, err)
			}
			return d, nil
		})
		if err != nil {
			return err
		}
		return newPartner{ID: cmd.ID, Name: p.Name, SigningSecret: secret}.print(s.out, cmd.JSON)
	}, needSecretKey)
}

// rotating says until when a partner's last rotation is under way.
func rotating(ctx context.Context, q *db.Queries, id int64) error {
	end, err := q.EndOfRotation(ctx, id)
	if err != nil {
		return fmt.Errorf("read until when the secret of partner %d is replaced: %w", id, err)
	}
	return fmt.Errorf("the secret that partner %d was given last takes over at %s: run it again then, or replace both secrets at once with --overlap 0s",
		id, end.UTC().Format(time.RFC3339))
}

func (cmd partnerRotateSecretCmd) sealer(ctx context.Context, pool *pgxpool.Pool, key string) (*registry.Sealer, error) {
	if cmd.LostKey {
		return registry.NewSealer(key)
	}
	return provenSealer(ctx, pool, key)
}
