package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/input"
)

// Secret is a value that may contain a secret, such as the URL of a provider's node. It comes from a flag, from a file
// that another flag names, or from the environment: every user of a machine can read the arguments of its processes.
type Secret struct {
	Flag     string // such as --rpc; the flag of the file is the same with -file
	Given    string // value of the flag
	File     string // value of the flag of the file
	Variable string // environment variable with the value; with the suffix _FILE, it names a file
}

// Read returns the value, or "" if there is none. Its errors do not contain the value.
func (s Secret) Read() (string, error) {
	if s.Given != "" && s.File != "" {
		return "", Usage.With(fmt.Errorf("%s and %s-file are both given: give one of them", s.Flag, s.Flag))
	}
	value, from := s.Given, s.Flag
	file, named := s.File, s.Flag+"-file"
	if value == "" && file == "" {
		value, from = os.Getenv(s.Variable), s.Variable
		file, named = os.Getenv(s.Variable+FileSuffix), s.Variable+FileSuffix
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
	return value, nil
}

// Missing returns the error for a command that needs the value.
func (s Secret) Missing(what string) error {
	return Usage.With(fmt.Errorf("there is no %s: name a file with its URL as %s-file, set %s, or give a URL without a key as %s",
		what, s.Flag, s.Variable, s.Flag))
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
// secret, which says what to use instead.
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
