package chainlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Mechanisms of SASL.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
	OAuthBearer = "OAUTHBEARER" // RFC 7628
	AWSIAM      = "AWS_MSK_IAM"
)

const (
	// maxToken is the maximum size of a token, in bytes. OAuth servers issue tokens of a few hundred to a few thousand
	// bytes.
	maxToken = 64 << 10
	// credentialsTimeout is the time limit of the search for AWS credentials, which may call a server.
	credentialsTimeout = 15 * time.Second
)

// SASL is the login; an empty mechanism means none.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM; default none.
	Mechanism string `yaml:"mechanism" env:"MECHANISM"`
	// User and Password are required for PLAIN and SCRAM, and rejected for the others.
	User     string `yaml:"user" env:"USER"`
	Password string `yaml:"password" env:"PASSWORD"`
	// TokenFile is the file with the token of OAUTHBEARER. It is read for each login, so a renewed token needs no restart.
	TokenFile string `yaml:"tokenFile" env:"TOKEN_FILE"`
	// Extensions are sent with the token of OAUTHBEARER, each as name=value, such as logicalCluster=lkc-1 for a cluster of
	// Confluent; default none.
	Extensions []string `yaml:"extensions" env:"EXTENSIONS"`
}

// Who describes the login in messages: the user, or the mechanism if it has no user.
func (s SASL) Who() string {
	switch {
	case s.User != "":
		return "User:" + s.User
	case s.Mechanism != "":
		return "the login of " + s.Mechanism
	default:
		return "a client without a login"
	}
}

// validate returns the mistakes in the login; encrypted reports whether the brokers use TLS.
func (s SASL) validate(encrypted bool) error {
	var faults []error
	switch s.Mechanism {
	case "":
		if s.User != "" || s.Password != "" {
			faults = append(faults, errors.New("kafka.sasl has a user or a password, which have no effect without a "+
				"mechanism: set kafka.sasl.mechanism, or remove them"))
		}
	case Plain, ScramSHA256, ScramSHA512:
		if s.User == "" || s.Password == "" {
			faults = append(faults, errors.New("kafka.sasl needs user and password (NAVLOG_KAFKA_SASL_PASSWORD)"))
		}
	case OAuthBearer, AWSIAM:
		if s.User != "" || s.Password != "" {
			faults = append(faults, fmt.Errorf("kafka.sasl has a user or a password, which %s does not use: remove them",
				s.Mechanism))
		}
		if !encrypted {
			faults = append(faults, fmt.Errorf("kafka.sasl.mechanism is %s and kafka.tls is false: set it to true, "+
				"or anyone who can read the network can log in", s.Mechanism))
		}
	default:
		return fmt.Errorf("kafka.sasl.mechanism is %q and must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or "+
			"AWS_MSK_IAM", s.Mechanism)
	}
	switch {
	case s.Mechanism != OAuthBearer && s.TokenFile != "":
		faults = append(faults, errors.New("kafka.sasl.tokenFile is for the mechanism OAUTHBEARER only: remove it, or set "+
			"kafka.sasl.mechanism"))
	case s.Mechanism == OAuthBearer && s.TokenFile == "":
		faults = append(faults, errors.New("kafka.sasl.tokenFile is empty: name the file with the token of OAUTHBEARER"))
	case s.Mechanism == OAuthBearer:
		if _, err := s.token(); err != nil {
			faults = append(faults, err)
		}
	}
	if s.Mechanism != OAuthBearer && len(s.Extensions) > 0 {
		faults = append(faults, errors.New("kafka.sasl.extensions are for the mechanism OAUTHBEARER only: remove them, or "+
			"set kafka.sasl.mechanism"))
	}
	if _, err := s.extensions(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// mechanism returns the mechanism with which a client logs in; nil for no login.
func (s SASL) mechanism() sasl.Mechanism {
	switch s.Mechanism {
	case Plain:
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()
	case ScramSHA256:
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism()
	case ScramSHA512:
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism()
	case OAuthBearer:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := s.token()
			if err != nil {
				return oauth.Auth{}, err
			}
			extensions, err := s.extensions()
			return oauth.Auth{Token: token, Extensions: extensions}, err
		})
	case AWSIAM:
		return aws.ManagedStreamingIAM(awsLogin.credentials)
	default:
		return nil
	}
}

// token reads the token file. The error does not contain the file's content.
func (s SASL) token() (string, error) {
	f, err := os.Open(s.TokenFile)
	if err != nil {
		return "", fmt.Errorf("kafka.sasl.tokenFile cannot be read: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("kafka.sasl.tokenFile cannot be read: %w", err)
	}
	token := strings.TrimSpace(string(text))
	switch {
	case len(text) > maxToken:
		return "", fmt.Errorf("kafka.sasl.tokenFile %s has more than %d bytes: it must hold one token", s.TokenFile, maxToken)
	case token == "":
		return "", fmt.Errorf("kafka.sasl.tokenFile %s is empty: it must hold one token", s.TokenFile)
	case strings.ContainsFunc(token, notOfToken):
		return "", fmt.Errorf("kafka.sasl.tokenFile %s must hold one token and nothing else: letters, digits and -._~+/=",
			s.TokenFile)
	}
	return token, nil
}

// extensions parses the extensions, with the characters that brokers accept (RFC 7628, section 3.1).
func (s SASL) extensions() (map[string]string, error) {
	found := map[string]string{}
	for _, e := range s.Extensions {
		name, value, has := strings.Cut(e, "=")
		letters := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
		printable := !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
		switch {
		case !has || name == "" || value == "" || !letters || !printable:
			return nil, fmt.Errorf("kafka.sasl.extensions has %.80q, which must be name=value: letters, and printable ASCII", e)
		case name == "auth":
			return nil, errors.New("kafka.sasl.extensions has the name auth, which is for the token: remove it")
		case found[name] != "":
			return nil, fmt.Errorf("kafka.sasl.extensions has the name %.80s twice", name)
		}
		found[name] = value
	}
	return found, nil
}

// notOfToken reports whether a character is not allowed in a bearer token (RFC 6750, section 2.1).
func notOfToken(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/=", r)
}

// awsChain finds AWS credentials in the places that Amazon's own programs use: the environment, files, and the identity
// of a pod or a machine.
type awsChain struct {
	mu       sync.Mutex
	provider awssdk.CredentialsProvider // caches the credentials, and renews them before they expire
}

// awsLogin is shared by all clients of the program, so that they do not each request credentials from a server.
var awsLogin awsChain

func (c *awsChain) credentials(ctx context.Context) (aws.Auth, error) {
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	provider, err := c.find(ctx)
	if err != nil {
		return aws.Auth{}, fmt.Errorf("read the configuration of AWS for the login %s: %w", AWSIAM, err)
	}
	found, err := provider.Retrieve(ctx)
	if err != nil {
		return aws.Auth{}, fmt.Errorf("no credentials for the login %s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "+
			"or give the pod or the machine a role: %w", AWSIAM, err)
	}
	return aws.Auth{AccessKey: found.AccessKeyID, SecretKey: found.SecretAccessKey, SessionToken: found.SessionToken}, nil
}

func (c *awsChain) find(ctx context.Context) (awssdk.CredentialsProvider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.provider == nil {
		config, err := awsconfig.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, err
		}
		c.provider = config.Credentials
	}
	return c.provider, nil
}
