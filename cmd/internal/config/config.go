// Package config reads the configuration of navlog: a YAML file and the environment, which takes precedence. It reports
// every mistake at once, in terms that need no knowledge of the code, and rejects settings that would have no effect.
package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/dispatch"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// Config is navlog.yaml. Every key can also be set by an environment variable: kafka.replicationFactor is
// NAVLOG_KAFKA_REPLICATION_FACTOR. A variable with the suffix _FILE names a file with the value.
type Config struct {
	Chain       ingest.Config      `yaml:"chain" envPrefix:"CHAIN_"`
	Kafka       chainlog.Config    `yaml:"kafka" envPrefix:"KAFKA_"`
	ClickHouse  readmodel.Config   `yaml:"clickhouse" envPrefix:"CLICKHOUSE_"`
	Postgres    registry.Config    `yaml:"postgres" envPrefix:"POSTGRES_"`
	Projections projections.Config `yaml:"projections" envPrefix:"PROJECTIONS_"`
	HTTP        query.Config       `yaml:"http" envPrefix:"HTTP_"`
	Webhooks    dispatch.Config    `yaml:"webhooks" envPrefix:"WEBHOOKS_"`
	Guard       guard.Config       `yaml:"guard" envPrefix:"GUARD_"`
	Ops         Ops                `yaml:"ops" envPrefix:"OPS_"`

	// unread is set if reading the file stopped at a mistake: Validate cannot check the rest.
	unread bool

	// absent is set if no file is named and the default one does not exist. Settings may all be variables, so it is
	// reported only beside mistakes.
	absent error

	// SecretKey encrypts the signing secrets at rest. During a rotation it is several keys, separated by commas, the
	// newest first. It is only read from the environment.
	SecretKey string `yaml:"-" env:"SECRET_KEY"`
}

// Default returns the defaults of all optional settings.
func Default() Config {
	return Config{
		Chain:       ingest.DefaultConfig(),
		Kafka:       chainlog.DefaultConfig(),
		ClickHouse:  readmodel.DefaultConfig(),
		Postgres:    registry.DefaultConfig(),
		Projections: projections.DefaultConfig(),
		HTTP:        query.DefaultConfig(),
		Webhooks:    dispatch.DefaultConfig(),
	}
}

// Ops is the section ops of navlog.yaml: a small HTTP server next to each of the four programs, with /healthz, /readyz
// and /metrics, for operators; it has no login. The API's port has the first two as well, but no metrics. `navlog-dev
// up` has one such server for all four programs.
type Ops struct {
	// Listen is host:port; default empty: no such server, or a free port of this machine for `navlog-dev up`. Programs
	// on one host cannot share it: give each its own by NAVLOG_OPS_LISTEN.
	Listen string `yaml:"listen" env:"LISTEN"`
}

func (c Ops) validate() error {
	if c.Listen == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("ops.listen is %q and must be host:port, for example 127.0.0.1:9464", c.Listen)
	}
	return portFault("ops.listen", c.Listen)
}

const defaultFile = "navlog.yaml"

// Load reads the file (the default one may be missing) and then the environment. It reports every mistake of form at
// once; Validate checks the values.
func Load(file string, environ []string) (Config, error) {
	c := Default()
	name, optional := file, false
	if name == "" {
		name, optional = defaultFile, true
	}
	var faults []error
	switch b, err := os.ReadFile(name); {
	case err == nil:
		faults = append(faults, parseYAML(name, b, &c))
	case optional && errors.Is(err, os.ErrNotExist):
		c.absent = noFile()
	default:
		c.unread = true
		faults = append(faults, fmt.Errorf("read configuration: %w", err))
	}
	faults = append(faults, parseEnvironment(environ, &c), clean(&c))
	c.Chain = c.Chain.Complete()
	return c, errors.Join(faults...)
}

// noFile describes where no configuration file was found.
func noFile() error {
	folder, err := os.Getwd()
	if err != nil {
		folder = "this folder"
	}
	return fmt.Errorf("there is no %s in %s, and neither --config nor NAVLOG_CONFIG names one", defaultFile, folder)
}

// documentedType matches "field x not found in type main.config", to replace it by a text that needs no knowledge of
// the code.
var documentedType = regexp.MustCompile(`field (\S+) not found in type \S+`)

// wrongType matches the decoder's error about a value of another type: the line, the value if it is short, and the Go
// type.
var wrongType = regexp.MustCompile("^(line \\d+:) cannot unmarshal !+\\w+( `.*`)? into (\\S+)$")

// describeType describes the values of a Go type to a reader who does not know Go.
func describeType(goType string) string {
	switch {
	case goType == "time.Duration":
		return "a duration with its unit, such as 250ms, 10s or 1m"
	case goType == "bool":
		return "true or false"
	case slices.Contains([]string{"string", "ingest.Profile", "proof.Level"}, goType), strings.HasPrefix(goType, "*"):
		return "a text"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "uint8":
		return "a whole number, 0 to 255"
	case strings.HasPrefix(goType, "uint"):
		return "a whole number, 0 or more"
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	}
	return "a section: keys with values"
}

type replacement struct{ field, variable, advice string }

// replaced are the settings of earlier versions: as an error of the YAML decoder and as a variable, and what replaces
// each.
var replaced = []replacement{{
	"field prove not found in type ingest.Config", envPrefix + "CHAIN_PROVE",
	"chain.receiptsEvery replaces chain.prove, and proves blocks by their receipts: set it, for example, to 24h",
}}

func parseYAML(name string, b []byte, c *Config) error {
	decoder := yaml.NewDecoder(bytes.NewReader(b))
	decoder.KnownFields(true)
	err := decoder.Decode(c)
	var wrong *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF):
		return nil // an empty file
	case err == nil || errors.As(err, &wrong):
		return errors.Join(typeFaults(name, wrong), numberFaults(name, b), secondDocument(name, decoder))
	}
	c.unread = true
	return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
}

func typeFaults(name string, wrong *yaml.TypeError) error {
	if wrong == nil {
		return nil
	}
	faults := make([]error, len(wrong.Errors))
	for i, e := range wrong.Errors {
		for _, r := range replaced {
			e = strings.Replace(e, r.field, r.advice, 1)
		}
		e = documentedType.ReplaceAllString(e, "unknown key $1: remove it or correct its spelling")
		if m := wrongType.FindStringSubmatch(e); m != nil {
			e = m[1] + m[2] + " must be " + describeType(m[3])
		}
		faults[i] = fmt.Errorf("%s, %s", name, e)
	}
	return errors.Join(faults...)
}

// secondDocument rejects a second YAML document, which would have no effect.
func secondDocument(name string, decoder *yaml.Decoder) error {
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return fmt.Errorf("%s, line %d: a second document begins here, but only the first one is read: remove the --- "+
		"above it", name, second.Line)
}

const envPrefix = "NAVLOG_"

// notSettings are variables with the prefix NAVLOG_ that are not part of the configuration.
var notSettings = []string{
	"NAVLOG_CONFIG", "NAVLOG_OPERATOR", "NAVLOG_API_KEY", "NAVLOG_STATEMENT_RPC",
	"NAVLOG_STATEMENT_RPC_FILE", "NAVLOG_EXPLAIN_RPC", "NAVLOG_EXPLAIN_RPC_FILE", "NAVLOG_MAPPING_RPC",
	"NAVLOG_MAPPING_RPC_FILE", "NAVLOG_FAULTPROXY_UPSTREAM",
	"NAVLOG_ENGINES", "NAVLOG_ENGINE_CHILD",
}

// parseEnvironment applies the environment to c, and reports all mistakes at once.
func parseEnvironment(environ []string, c *Config) error {
	given := env.ToMap(environ)
	maps.DeleteFunc(given, func(key, _ string) bool {
		return !strings.HasPrefix(key, envPrefix) || slices.Contains(notSettings, key)
	})
	unreadable := readFiles(given)
	set := map[string]bool{}
	err := env.ParseWithOptions(c,
		env.Options{Prefix: envPrefix, Environment: given, OnSet: func(key string, _ any, _ bool) { set[key] = true }})
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		switch {
		case !set[key]:
			if i := slices.IndexFunc(replaced, func(r replacement) bool { return r.variable == key }); i >= 0 {
				faults = append(faults, fmt.Errorf("environment variable %s: %s", key, replaced[i].advice))
				continue
			}
			faults = append(faults, fmt.Errorf("environment variable %s is not a setting of navlog: remove it (those of "+
				"Kubernetes by enableServiceLinks: false) or correct its spelling", key))
		case err != nil:
			faults = append(faults, mistakeIn(key, given))
		}
	}
	if err != nil && errors.Join(faults...) == nil {
		return fmt.Errorf("environment: %w", err)
	}
	return errors.Join(append(faults, unreadable)...)
}

// readFiles replaces each variable X_FILE by X with the content of the file, so that a secret need not be in the
// environment, which other users can see. A setting whose own name ends in _FILE, such as NAVLOG_WEBHOOKS_CA_FILE, is
// left as it is.
func readFiles(given map[string]string) error {
	settings := settingsOf(given)
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		setting, found := strings.CutSuffix(key, cli.FileSuffix)
		if !found || settings[key] || !settings[setting] {
			continue
		}
		name := given[key]
		value, err := cli.ReadSecret(name)
		_, twice := given[setting]
		delete(given, key)
		switch {
		case twice:
			faults = append(faults, fmt.Errorf("environment variables %s and %s are both given: give one of them", setting, key))
		case name == "":
			faults = append(faults, fmt.Errorf("environment variable %s is empty: give it the name of a file, or remove it",
				key))
		case err != nil:
			faults = append(faults, fmt.Errorf("environment variable %s: %w", key, err))
		default:
			given[setting] = value
		}
	}
	return errors.Join(faults...)
}

// settingsOf returns the settings that the variables can mean, with and without FileSuffix. Only the values of lists
// matter here, because they determine the number of elements; mistakes in them are found when they are parsed.
func settingsOf(given map[string]string) map[string]bool {
	names := map[string]string{}
	for key := range given {
		names[strings.TrimSuffix(key, cli.FileSuffix)] = ""
	}
	maps.Copy(names, given)
	settings := map[string]bool{}
	_ = env.ParseWithOptions(new(Config),
		env.Options{Prefix: envPrefix, Environment: names, OnSet: func(key string, _ any, _ bool) { settings[key] = true }})
	return settings
}

// mistakeIn describes what is wrong with one variable. The library names the field that it could not set, not the
// variable, so each variable is parsed by itself: the others keep their names, which determine the number of elements
// of a list, but lose their values.
func mistakeIn(key string, given map[string]string) error {
	isolated := make(map[string]string, len(given))
	for name := range given {
		isolated[name] = ""
	}
	isolated[key] = given[key]
	err := env.ParseWithOptions(new(Config), env.Options{Prefix: envPrefix, Environment: isolated})
	var wrong env.ParseError
	var number *strconv.NumError
	switch {
	case errors.As(err, &wrong) && (errors.As(wrong.Err, &number) || wrong.Type == reflect.TypeFor[time.Duration]()):
		if errors.Is(wrong.Err, strconv.ErrRange) {
			return fmt.Errorf("environment variable %s is %q, which is out of range", key, given[key])
		}
		return fmt.Errorf("environment variable %s is %q and must be %s", key, given[key], describeType(wrong.Type.String()))
	case errors.As(err, &wrong):
		return fmt.Errorf("environment variable %s: %w", key, wrong.Err)
	case err != nil:
		return fmt.Errorf("environment variable %s: %w", key, err)
	}
	return nil
}

// A Section is a part of the configuration that a command needs; the command fails if the section is invalid.
type Section int

const (
	NeedChain        Section = iota
	NeedChainNoNodes         // NeedChain, on a machine where chain.rpc is not given
	NeedChainID
	NeedKafka
	NeedClickHouse
	NeedPostgres
	NeedProjections
	NeedHTTP
	NeedWebhooks
	NeedSecretKey
	NeedSession
)

// AllSections are the sections that the four programs need together.
var AllSections = []Section{NeedChain, NeedKafka, NeedClickHouse, NeedPostgres, NeedProjections, NeedHTTP, NeedWebhooks,
	NeedSecretKey}

// Needs are the sections that each of the four programs needs.
var Needs = map[string][]Section{
	"ingest":   {NeedChain, NeedKafka, NeedPostgres},
	"project":  {NeedChainID, NeedKafka, NeedClickHouse, NeedPostgres, NeedProjections},
	"serve":    {NeedChainID, NeedClickHouse, NeedPostgres, NeedHTTP},
	"dispatch": {NeedChainID, NeedKafka, NeedPostgres, NeedWebhooks, NeedSecretKey},
}

// WasRead reports whether the file could be read. If not, the engines in c are only defaults, and Validate reports
// nothing.
func (c Config) WasRead() bool { return !c.unread }

// Validate reports every mistake in the sections at once, and first that there is no file, if there are mistakes and no
// file was found.
func (c Config) Validate(sections ...Section) error {
	if c.unread {
		return nil
	}
	var faults []error
	for _, s := range sections {
		switch s {
		case NeedChain:
			faults = append(faults, c.Chain.Validate(), c.untouchedChain())
		case NeedChainNoNodes:
			faults = append(faults, c.Chain.ValidateWithoutNodes(), c.untouchedChain())
		case NeedChainID:
			if c.Chain.ID == 0 {
				faults = append(faults, errors.New("chain.id is missing: give the chain id, such as 1 for Ethereum"))
			}
		case NeedKafka:
			faults = append(faults, c.Kafka.Validate())
		case NeedClickHouse:
			faults = append(faults, c.ClickHouse.Validate())
		case NeedPostgres:
			faults = append(faults, c.Postgres.Validate())
		case NeedProjections:
			faults = append(faults, c.Projections.Validate())
		case NeedHTTP:
			faults = append(faults, c.HTTP.Validate(), c.rotation(sections),
				untouched("http.router", c.HTTP.Router, exampleRouter), portFault("http.listen", c.HTTP.Listen))
		case NeedWebhooks:
			faults = append(faults, c.Webhooks.Validate(), c.Guard.Validate())
		case NeedSession:
			if c.Postgres.Pooled {
				faults = append(faults, errors.New("postgres.pooled is true, but this needs a lock of a PostgreSQL session: "+
					"give it a postgres.url of the server itself (NAVLOG_POSTGRES_URL), and NAVLOG_POSTGRES_POOLED=false"))
			}
		case NeedSecretKey:
			_, err := registry.NewSealer(c.SecretKey)
			faults = append(faults, err)
		}
	}
	err := errors.Join(append(faults, c.Ops.validate())...)
	if err != nil && c.absent != nil {
		err = errors.Join(c.absent, err)
	}
	return err
}

// rotation reports a missing or wrong secret key where serve needs it, unless NeedSecretKey reports it.
func (c Config) rotation(sections []Section) error {
	if !c.HTTP.PartnerRotation || slices.Contains(sections, NeedSecretKey) {
		return nil
	}
	if _, err := registry.NewSealer(c.SecretKey); err != nil {
		return fmt.Errorf("http.partnerRotation is true, so serve needs the same key as dispatch: %w", err)
	}
	return nil
}

// What deploy/navlog.example.yaml has where the operator has to decide. The addresses of precompiles belong to no
// contract, and .example domains belong to no one.
const (
	exampleVault  = "0x0000000000000000000000000000000000000001"
	exampleRouter = "0x0000000000000000000000000000000000000002"
)

var exampleHosts = []string{"node.example", "provider.example"}

// untouchedChain reports values that were copied from the example and never changed.
func (c Config) untouchedChain() error {
	var faults []error
	for i, v := range c.Chain.Vaults {
		faults = append(faults, untouched(fmt.Sprintf("chain.vaults[%d].address", i), v.Address, exampleVault))
	}
	for i, endpoint := range c.Chain.RPC {
		if u, err := url.Parse(endpoint.URL); err == nil && slices.Contains(exampleHosts, u.Hostname()) {
			faults = append(faults, untouched(fmt.Sprintf("chain.rpc[%d]", i), u.Hostname(), u.Hostname()))
		}
	}
	return errors.Join(faults...)
}

func untouched(key, value, example string) error {
	if !strings.EqualFold(value, example) {
		return nil
	}
	return fmt.Errorf("%s still has the example's value, %s: give your own", key, example)
}

// portFault reports a port number that is out of range. An address without a port is reported by its section.
func portFault(key, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%s is %q and its port must be 0 to 65535", key, address)
	}
	return nil
}

// Read reads the configuration that a command's flags and the environment give, and checks the given sections. It
// reports all mistakes at once.
func Read(flags cli.Flags, sections ...Section) (Config, error) {
	return read(flags, "navlog config check", sections)
}

// kafkaWithin is the time limit for the first response of a Kafka broker.
const kafkaWithin = 15 * time.Second

// ReadReaching is Read for a command that does not wait for Kafka. If it needs Kafka, a broker must respond, because a
// Kafka client would retry forever. The configuration has only the brokers that respond.
func ReadReaching(ctx context.Context, flags cli.Flags, sections ...Section) (Config, error) {
	c, err := Read(flags, sections...)
	if err != nil || !slices.Contains(sections, NeedKafka) {
		return c, err
	}
	c.Kafka.Brokers, _, err = c.Kafka.Reach(ctx, kafkaWithin)
	return c, cli.Unreachable.With(err)
}

// ReadFor is Read for one of the four programs.
func ReadFor(flags cli.Flags, program string) (Config, error) {
	return read(flags, "navlog config check --program "+program, Needs[program])
}

// read is Read. check is the command that names all mistakes, not only those of the sections.
func read(flags cli.Flags, check string, sections []Section) (Config, error) {
	c, err := Load(flags.Config, os.Environ())
	if err = errors.Join(err, c.Validate(sections...)); err != nil {
		return Config{}, cli.Configuration.With(fmt.Errorf("the configuration has mistakes (`%s` lists all of them):\n%w",
			check, err))
	}
	return c, nil
}
