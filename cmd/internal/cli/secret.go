package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/input"
)

// Node is the node of a command that needs no configuration. Its URL may contain a key, and every user of a machine can
// read the arguments of its processes. So it comes from the flag --rpc, from a file that --rpc-file names, or from the
// environment.
type Node struct {
	RPC      string // value of --rpc
	File     string // value of --rpc-file
	Variable string // environment variable with the URL; with the suffix _FILE, it names a file
}

// URL returns the URL, or "" if there is none. Its errors do not contain it.
func (n Node) URL() (string, error) {
	if n.RPC != "" && n.File != "" {
		return "", Usage.With(errors.New("--rpc and --rpc-file are both given: give one of them"))
	}
	value, from := n.RPC, "--rpc"
	file, named := n.File, "--rpc-file"
	if value == "" && file == "" {
		value, from = os.Getenv(n.Variable), n.Variable
		file, named = os.Getenv(n.Variable+FileSuffix), n.Variable+FileSuffix
		if value != "" && file != "" {
			return "", Usage.With(fmt.Errorf("%s and %s are both given: give one of them", from, named))
		}
	}
	if file != "" {
		var err error
		if value, err = ReadSecret(file); err != nil {
			return "", Usage.With(fmt.Errorf("%s: %w", named, err))
		}
		from = named
	}
	value, err := input.Word(value)
	if err != nil {
		return "", Usage.With(fmt.Errorf("the value of %s %w", from, err))
	}
	if scheme, _, _ := strings.Cut(strings.ToLower(value), "://"); value != "" && scheme != "http" && scheme != "https" {
		return "", Usage.With(fmt.Errorf("the value of %s must be a URL that begins with http:// or https://", from))
	}
	return value, nil
}

// nodeWithin is the time limit for a node's response over HTTP: without one, a command would wait forever for a node
// that accepts the connection and does not respond. A variable, so that tests need not wait.
var nodeWithin = time.Minute

// Dial connects to the node. It returns the URL too, which contracts.Discreet hides in later errors.
func (n Node) Dial(ctx context.Context) (*ethclient.Client, string, error) {
	url, err := n.URL()
	if err != nil {
		return nil, "", err
	}
	if url == "" {
		return nil, "", Usage.With(fmt.Errorf("there is no node of the chain: name a file with its URL as --rpc-file, set "+
			"%s, or pass a URL without a key as --rpc", n.Variable))
	}
	overHTTP := contracts.NodeClient(http.DefaultTransport)
	overHTTP.Timeout = nodeWithin
	client, err := rpc.DialOptions(ctx, url, rpc.WithHTTPClient(overHTTP))
	if err != nil {
		return nil, "", Unreachable.With(fmt.Errorf("reach the node: %w", contracts.Discreet(err, url)))
	}
	return ethclient.NewClient(client), url, nil
}

// FileSuffix ends the name of a variable that names a file with the value of a setting.
const FileSuffix = "_FILE"

// fileLimit limits the size of such a file, in bytes.
const fileLimit = 64 << 10

// ReadSecret reads a file and trims the newline at its end, which editors add. It rejects a file that is empty or too
// large to be a secret.
func ReadSecret(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	if err != nil {
		return "", err
	}
	if len(b) > fileLimit {
		return "", fmt.Errorf("%s has more than %d bytes: it cannot be the value of a setting", name, fileLimit)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if value == "" {
		return "", fmt.Errorf("%s is empty: write the value into it", name)
	}
	if _, err := input.Password(value); err != nil {
		return "", fmt.Errorf("%s %w", name, err)
	}
	return value, nil
}

// warnOfSecrets warns about each flag of the command line with a URL that may contain a key. Such a flag has the tag
// secret, which names what to use instead.
func warnOfSecrets(out io.Writer, parsed *kong.Context) {
	for _, path := range parsed.Path {
		if path.Flag == nil || path.Resolved || !path.Flag.Tag.Has("secret") {
			continue
		}
		for given := range strings.FieldsSeq(fmt.Sprint(parsed.FlagValue(path.Flag))) { // one value, or a list in brackets
			given = strings.Trim(given, "[]/")
			if strings.Contains(given, "://") && given != contracts.EndpointName(given) {
				Fprintf(out, "%s: warning: everybody on this machine can read --%s, and a key in it, "+
					"in the list of processes: use %s\n", parsed.Model.Name, path.Flag.Name, path.Flag.Tag.Get("secret"))
				break
			}
		}
	}
}
