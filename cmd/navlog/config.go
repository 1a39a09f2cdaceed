package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/dispatch"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// config is navlog.yaml. Every key can be given as an environment variable
// too: kafka.replicationFactor is NAVLOG_KAFKA_REPLICATION_FACTOR.
type config struct {
	Chain       ingest.Config      `yaml:"chain" envPrefix:"CHAIN_"`
	Kafka       chainlog.Config    `yaml:"kafka" envPrefix:"KAFKA_"`
	ClickHouse  readmodel.Config   `yaml:"clickhouse" envPrefix:"CLICKHOUSE_"`
	Postgres    registry.Config    `yaml:"postgres" envPrefix:"POSTGRES_"`
	Projections projections.Config `yaml:"projections" envPrefix:"PROJECTIONS_"`
	HTTP        query.Config       `yaml:"http" envPrefix:"HTTP_"`
	Webhooks    dispatch.Config    `yaml:"webhooks" envPrefix:"WEBHOOKS_"`
	Guard       guard.Config       `yaml:"guard" envPrefix:"GUARD_"`
	Ops         opsConfig          `yaml:"ops" envPrefix:"OPS_"`

	// unread says that reading the file stopped at a mistake: what validate would
	// say of the rest would be wrong.
	unread bool

	// SecretKey encrypts the signing secrets at rest, or several keys with commas
	// between, the newest first, while one takes over; only ever from the
	// environment.
	SecretKey string `yaml:"-" env:"SECRET_KEY"`
}

func defaultConfig() config {
	return config{
		Chain:       ingest.DefaultConfig(),
		Kafka:       chainlog.DefaultConfig(),
		ClickHouse:  readmodel.DefaultConfig(),
		Postgres:    registry.DefaultConfig(),
		Projections: projections.DefaultConfig(),
		HTTP:        query.DefaultConfig(),
		Webhooks:    dispatch.DefaultConfig(),
	}
}

const defaultFile = "navlog.yaml"

// loadConfig reads the file (the default one may be missing) and then the
// environment. It reports every mistake of form at once; validate says what is
// wrong with the values.
func loadConfig(file string, environ []string) (config, error) {
	c := defaultConfig()
	name, optional := file, false
	if name == "" {
		name, optional = defaultFile, true
	}
	var faults []error
	switch b, err := os.ReadFile(name); {
	case err == nil:
		faults = append(faults, parseYAML(name, b, &c))
	case optional && errors.Is(err, os.ErrNotExist):
	default:
		c.unread = true
		faults = append(faults, fmt.Errorf("read configuration: %w", err))
	}
	faults = append(faults, parseEnvironment(environ, &c))
	return c, errors.Join(faults...)
}

// documentedType turns "field x not found in type main.config" into words that
// need no knowledge of the code.
var documentedType = regexp.MustCompile(`field (\S+) not found in type \S+`)

func parseYAML(name string, b []byte, c *config) error {
	decoder := yaml.NewDecoder(bytes.NewReader(b))
	decoder.KnownFields(true)
	err := decoder.Decode(c)
	var wrong *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF):
		return nil // an empty file
	case err == nil || errors.As(err, &wrong):
		return errors.Join(typeFaults(name, wrong), secondDocument(name, decoder))
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
		faults[i] = fmt.Errorf("%s, %s", name, documentedType.ReplaceAllString(e, "unknown key $1: remove it or correct its spelling"))
	}
	return errors.Join(faults...)
}

// secondDocument refuses what would have no effect.
func secondDocument(name string, decoder *yaml.Decoder) error {
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return fmt.Errorf("%s, line %d: a second document begins, of which nothing is read: remove the --- above it", name, second.Line)
}

const envPrefix = "NAVLOG_"

// notSettings are variables of that prefix that are not part of the
// configuration.
var notSettings = []string{"NAVLOG_CONFIG", "NAVLOG_OPERATOR", "NAVLOG_ENGINES", "NAVLOG_ENGINE_CHILD"}

// parseEnvironment sets each variable apart, so that what is wrong with it can be
// said with its name. They are taken in order: a list goes before its elements.
func parseEnvironment(environ []string, c *config) error {
	given := env.ToMap(environ)
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if strings.HasPrefix(key, envPrefix) && !slices.Contains(notSettings, key) {
			faults = append(faults, setFromEnvironment(key, given, c))
		}
	}
	return errors.Join(faults...)
}

// setFromEnvironment sets what one variable names. The others lose their values,
// by which they set nothing, and keep their names, which tell how many elements
// a list has.
func setFromEnvironment(key string, given map[string]string, c *config) error {
	alone := make(map[string]string, len(given))
	for name := range given {
		alone[name] = ""
	}
	alone[key] = given[key]
	known := false
	err := env.ParseWithOptions(c, env.Options{Prefix: envPrefix, Environment: alone, OnSet: func(name string, _ any, _ bool) {
		known = known || name == key
	}})
	var wrong env.ParseError
	var number *strconv.NumError
	switch {
	case errors.As(err, &wrong) && errors.As(wrong.Err, &number):
		return fmt.Errorf("environment variable %s is %q and must be of type %s: %w", key, number.Num, wrong.Type, number.Err)
	case errors.As(err, &wrong):
		return fmt.Errorf("environment variable %s: %w", key, wrong.Err)
	case err != nil:
		return fmt.Errorf("environment variable %s: %w", key, err)
	case !known:
		return fmt.Errorf("environment variable %s is not a setting of navlog: remove it or correct its spelling", key)
	}
	return nil
}

// Sections that a command needs; it is refused when one of them is wrong.
type section int

const (
	needChain section = iota
	needChainID
	needKafka
	needClickHouse
	needPostgres
	needProjections
	needHTTP
	needWebhooks
	needSecretKey
	needSession
)

var allSections = []section{needChain, needKafka, needClickHouse, needPostgres, needProjections, needHTTP, needWebhooks, needSecretKey}

// validate reports every mistake in the sections at once.
func (c config) validate(sections ...section) error {
	if c.unread {
		return nil
	}
	var faults []error
	for _, s := range sections {
		switch s {
		case needChain:
			faults = append(faults, c.Chain.Validate())
		case needChainID:
			if c.Chain.ID == 0 {
				faults = append(faults, errors.New("chain.id is missing: give the chain id, such as 1 for Ethereum"))
			}
		case needKafka:
			faults = append(faults, c.Kafka.Validate())
		case needClickHouse:
			faults = append(faults, c.ClickHouse.Validate())
		case needPostgres:
			faults = append(faults, c.Postgres.Validate())
		case needProjections:
			faults = append(faults, c.Projections.Validate())
		case needHTTP:
			faults = append(faults, c.HTTP.Validate(), portFault("http.listen", c.HTTP.Listen))
		case needWebhooks:
			faults = append(faults, c.Webhooks.Validate(), c.Guard.Validate())
		case needSession:
			if c.Postgres.Pooled {
				faults = append(faults, errors.New("postgres.pooled is true, and this takes a lock of a PostgreSQL session: give it a postgres.url that leads to the server itself (NAVLOG_POSTGRES_URL), and NAVLOG_POSTGRES_POOLED=false"))
			}
		case needSecretKey:
			_, err := registry.NewSealer(c.SecretKey)
			faults = append(faults, err)
		}
	}
	return errors.Join(append(faults, c.Ops.validate())...)
}

// portFault names a port that nobody can listen on. What has no port at all is
// named by its section.
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

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Say everything that is wrong with the configuration, at once."`
}

type configCheckCmd struct {
	common
}

// Run exits with 0 and one line, or with every mistake on a line of its own.
func (cmd configCheckCmd) Run(s *streams) error {
	c, err := loadConfig(cmd.Config, os.Environ())
	if err = errors.Join(err, c.validate(allSections...)); err != nil {
		return fmt.Errorf("the configuration has mistakes:\n%w", err)
	}
	_, err = fmt.Fprintf(s.out, "configuration is sound: chain %d, %d vaults\n", c.Chain.ID, len(c.Chain.Vaults))
	return err
}

// load is what every program starts with: the file, the environment, and the
// sections it needs, all mistakes at once.
func (cmd common) load(sections ...section) (config, error) {
	c, err := loadConfig(cmd.Config, os.Environ())
	if err = errors.Join(err, c.validate(sections...)); err != nil {
		return config{}, fmt.Errorf("the configuration has mistakes (`navlog config check` names them all):\n%w", err)
	}
	return c, nil
}
