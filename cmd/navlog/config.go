package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
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

	// SecretKey encrypts the signing secrets at rest; only ever from the
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
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	faults := make([]error, len(wrong.Errors))
	for i, e := range wrong.Errors {
		faults[i] = fmt.Errorf("%s, %s", name, documentedType.ReplaceAllString(e, "unknown key $1: remove it or correct its spelling"))
	}
	return errors.Join(faults...)
}

const envPrefix = "NAVLOG_"

// notSettings are variables of that prefix that are not part of the
// configuration.
var notSettings = []string{"NAVLOG_CONFIG", "NAVLOG_ENGINES", "NAVLOG_ENGINE_CHILD"}

func parseEnvironment(environ []string, c *config) error {
	options := env.Options{Prefix: envPrefix, Environment: env.ToMap(environ)}
	var faults []error
	if err := env.ParseWithOptions(c, options); err != nil {
		var all env.AggregateError
		if errors.As(err, &all) {
			faults = append(faults, all.Errors...)
		} else {
			faults = append(faults, err)
		}
	}
	known, err := env.GetFieldParamsWithOptions(c, options)
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	for key := range options.Environment {
		if !strings.HasPrefix(key, envPrefix) || slices.Contains(notSettings, key) {
			continue
		}
		if !slices.ContainsFunc(known, func(p env.FieldParams) bool { return p.Key == key }) {
			faults = append(faults, fmt.Errorf("environment variable %s is not a setting of navlog: remove it or correct its spelling", key))
		}
	}
	return errors.Join(faults...)
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
)

var allSections = []section{needChain, needKafka, needClickHouse, needPostgres, needProjections, needHTTP, needWebhooks, needSecretKey}

// validate reports every mistake in the sections at once.
func (c config) validate(sections ...section) error {
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
			faults = append(faults, c.HTTP.Validate())
		case needWebhooks:
			faults = append(faults, c.Webhooks.Validate(), c.Guard.Validate())
		case needSecretKey:
			_, err := registry.NewSealer(c.SecretKey)
			faults = append(faults, err)
		}
	}
	return errors.Join(append(faults, c.Ops.validate())...)
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
