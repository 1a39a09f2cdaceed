package structure

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/query"
)

type compose struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Image       string                                `yaml:"image"`
	Build       map[string]string                     `yaml:"build"`
	Command     []string                              `yaml:"command"`
	Environment map[string]string                     `yaml:"environment"`
	Volumes     []string                              `yaml:"volumes"`
	Ports       []string                              `yaml:"ports"`
	PullPolicy  string                                `yaml:"pull_policy"`
	ReadOnly    bool                                  `yaml:"read_only"`
	CapDrop     []string                              `yaml:"cap_drop"`
	Healthcheck struct{ Test []string }               `yaml:"healthcheck"`
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Restart     string                                `yaml:"restart"`
	StopGrace   time.Duration                         `yaml:"stop_grace_period"`
}

func loadCompose(t *testing.T) compose {
	t.Helper()
	b, err := os.ReadFile("../docker/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatalf("compose.yaml: %v", err)
	}
	return c
}

// Every service is watched, restarted, and started only after the ones that it
// cannot live without answer.
func TestComposeOrder(t *testing.T) {
	c := loadCompose(t)
	needs := map[string][]string{
		"kafka": nil, "clickhouse": nil, "postgres": nil,
		"ingest":   {"kafka", "postgres"},
		"project":  {"kafka", "clickhouse", "postgres"},
		"serve":    {"clickhouse", "postgres"},
		"dispatch": {"kafka", "postgres"},
		"migrate":  {"postgres"},
		"operate":  {"postgres"},
	}
	end := []string{"migrate", "operate"} // do what they are for and end
	if len(c.Services) != len(needs) {
		t.Errorf("compose.yaml has %d services, want %d", len(c.Services), len(needs))
	}
	for name, engines := range needs {
		s, ok := c.Services[name]
		if !ok {
			t.Errorf("compose.yaml lacks service %s", name)
			continue
		}
		if (len(s.Healthcheck.Test) < 2 && !slices.Contains(end, name)) || s.Restart == "" {
			t.Errorf("service %s has no health check or no restart policy", name)
		}
		if slices.Contains([]string{"ingest", "project", "serve", "dispatch", "operate"}, name) && s.DependsOn["migrate"].Condition != "service_completed_successfully" {
			t.Errorf("service %s does not wait until the tables are up to date", name)
		}
		for _, engine := range engines {
			if s.DependsOn[engine].Condition != "service_healthy" {
				t.Errorf("service %s does not wait until %s is healthy", name, engine)
			}
		}
		for dependency := range s.DependsOn {
			if _, ok := c.Services[dependency]; !ok {
				t.Errorf("service %s depends on %s, which does not exist", name, dependency)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[volume]; !ok && !strings.HasPrefix(volume, ".") {
				t.Errorf("service %s uses volume %s, which is not declared", name, volume)
			}
		}
	}
}

// The programs run without rights, take every secret from outside, and publish
// nothing but the API, on loopback.
func TestComposeIsSafe(t *testing.T) {
	c := loadCompose(t)
	for _, name := range []string{"ingest", "project", "serve", "dispatch", "migrate", "operate"} {
		s := c.Services[name]
		login := "navlog_" + name
		if name == "operate" {
			login = "navlog_operator"
		}
		if at := s.Environment["NAVLOG_POSTGRES_URL"]; !strings.HasPrefix(at, "postgres://"+login+"@") || s.Environment["NAVLOG_POSTGRES_SKIP_MIGRATIONS"] != "true" {
			t.Errorf("service %s uses PostgreSQL as %s, or migrates by itself", name, at)
		}
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
			t.Errorf("service %s may write its file system or keeps capabilities", name)
		}
		if name == "operate" {
			name = "status" // until another command is given
		}
		if s.Image != "navlog" || s.PullPolicy != "never" || len(s.Command) == 0 || s.Command[0] != name {
			t.Errorf("service %s does not run `navlog %s` of the image that is built here", name, name)
		}
		// Several that build one tag would race for it.
		if builds := s.Build["dockerfile"] == "deploy/docker/Dockerfile"; builds != (name == "migrate") {
			t.Errorf("service %s builds the image: %t; migrate does, which the others wait for", name, builds)
		}
	}
	required := regexp.MustCompile(`\$\{[A-Z_]+:\?`)
	for name, s := range c.Services {
		for key, value := range s.Environment {
			if (strings.Contains(key, "PASSWORD") || strings.Contains(key, "SECRET")) && !required.MatchString(value) {
				t.Errorf("service %s: %s must come from the environment and be refused when unset", name, key)
			}
			if strings.Contains(value, "://") && strings.Contains(value, "${") {
				t.Errorf("service %s: %s is a URL with a variable in it, which a / or # in its value breaks", name, key)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("service %s publishes %s beyond loopback", name, port)
			}
		}
		if s.Image != "navlog" && !regexp.MustCompile(`:[0-9]+(\.[0-9]+)*$`).MatchString(s.Image) {
			t.Errorf("service %s: image %q is not pinned to a version", name, s.Image)
		}
	}
	// Each program has its own rights, so that one that is broken into gives away
	// no more than these.
	for secret, holders := range map[string][]string{
		"NAVLOG_SECRET_KEY":                {"dispatch", "operate"},
		"NAVLOG_HTTP_STATEMENT_KEY":        {"serve"},
		"NAVLOG_CLICKHOUSE_PASSWORD":       {"project"},
		"NAVLOG_CLICKHOUSE_QUERY_PASSWORD": {"serve"},
		"POSTGRES_PASSWORD":                {"postgres"},
	} {
		for name, s := range c.Services {
			if _, ok := s.Environment[secret]; ok != slices.Contains(holders, name) {
				t.Errorf("service %s: has %s: %v; only %v need it and must get it", name, secret, ok, holders)
			}
		}
	}
}

// What has to be set stands in .env.example, and env.sh gives each of it a value, once.
func TestComposeEnvironment(t *testing.T) {
	text, err := os.ReadFile("../docker/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"env.sh", ".env.example"} {
		b, err := os.ReadFile("../docker/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(filepath.Join(dir, "env.sh")).CombinedOutput(); err != nil {
		t.Fatalf("env.sh: %v\n%s", err, out)
	}
	made, err := os.ReadFile(filepath.Join(dir, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(made)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			values[name] = value
		}
	}
	for _, match := range regexp.MustCompile(`\$\{([A-Z_]+):\?`).FindAllStringSubmatch(string(text), -1) {
		if len(values[match[1]]) < 40 {
			t.Errorf("%s, which compose.yaml demands, is %q in .env", match[1], values[match[1]])
		}
	}
	if info, err := os.Stat(filepath.Join(dir, ".env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf(".env may be read by others: %v, %v", info.Mode(), err)
	}
	if out, err := exec.Command(filepath.Join(dir, "env.sh")).CombinedOutput(); err == nil {
		t.Errorf("env.sh made another .env: %s", out)
	}
	if again, err := os.ReadFile(filepath.Join(dir, ".env")); err != nil || string(again) != string(made) {
		t.Errorf("the passwords of databases that exist are gone: %v", err)
	}
}

// Behind a proxy on the host, or in a container, clients are told apart: it comes in by
// an address out of Docker's default pools. Nobody outside is believed.
func TestComposeBehindAProxy(t *testing.T) {
	var networks []netip.Prefix
	for one := range strings.SplitSeq(loadCompose(t).Services["serve"].Environment["NAVLOG_HTTP_TRUSTED_PROXIES"], ",") {
		network, err := netip.ParsePrefix(one)
		if err != nil {
			t.Fatal(err)
		}
		networks = append(networks, network)
	}
	for peer, trusted := range map[string]bool{"172.17.0.1": true, "172.18.0.1": true, "172.31.255.254": true, "192.168.16.1": true, "8.8.8.8": false, "172.32.0.1": false} {
		if got := slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr(peer)) }); got != trusted {
			t.Errorf("X-Forwarded-For from %s is believed: %v", peer, got)
		}
	}
}

// A program that is told to stop finishes what it is committing, and has more time for
// that than it may take, before it is killed.
func TestComposeLetsProgramsEnd(t *testing.T) {
	longest := map[string]time.Duration{
		"ingest":   seconds(t, "../../ingest/commit.go", "commitTimeout"),
		"project":  seconds(t, "../../projections/write/swap.go", "insertTimeout") + seconds(t, "../../projections/write/swap.go", "cursorAge"),
		"serve":    query.DefaultConfig().ShutdownTimeout,
		"dispatch": seconds(t, "../../dispatch/lane/timing.go", "Deadline") + seconds(t, "../../dispatch/ledger.go", "writeGrace") + seconds(t, "../../dispatch/ledger.go", "writeTimeout"),
	}
	c := loadCompose(t)
	for name, takes := range longest {
		if grace := c.Services[name].StopGrace; grace < takes+takes/2 {
			t.Errorf("service %s is killed after %s (0 means 10s), and what it is committing may take %s: give it half more than that", name, grace, takes)
		}
	}
}

// seconds is a time in a source file, which is of no use outside of its package.
func seconds(t *testing.T, file, name string) time.Duration {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\s*(?:const )?` + name + `\s*(?:=|:)\s*(\d+) \* time\.Second\b`).FindSubmatch(b)
	if found == nil {
		t.Fatalf("%s has no %s in seconds: say here where it is now", file, name)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n) * time.Second
}

// What is on the machine beside the sources stays there, above all keys. The
// version that the binary prints comes from .git.
func TestBuilderGetsSourcesOnly(t *testing.T) {
	b, err := os.ReadFile("../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	ignored := strings.Split(string(b), "\n")
	for _, path := range []string{"/data", "/navlog.yaml", "/build", "/bin", "**/node_modules", "/deploy/local/kafka/lib"} {
		if !slices.Contains(ignored, path) {
			t.Errorf(".dockerignore lacks %s, so the builder gets it", path)
		}
	}
	if slices.ContainsFunc(ignored, func(line string) bool { return strings.HasPrefix(strings.Trim(line, "*/"), ".git") }) {
		t.Error(".dockerignore has .git, without which `navlog version` knows none")
	}
}

// The image is built in one stage and run in another, in which there is nothing
// but the binary and what it needs, and no user with rights.
func TestDockerfile(t *testing.T) {
	b, err := os.ReadFile("../docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var stages [][]string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "FROM ") {
			stages = append(stages, nil)
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			stages[len(stages)-1] = append(stages[len(stages)-1], line)
		}
	}
	if len(stages) != 2 {
		t.Fatalf("the Dockerfile has %d stages, want a build and a run stage", len(stages))
	}
	build, final := strings.Join(stages[0], "\n"), stages[1]
	if !strings.Contains(build, "CGO_ENABLED=0") {
		t.Error("the binary is not built statically")
	}
	if final[0] != "FROM scratch" {
		t.Errorf("the run stage begins with %q and must be empty: FROM scratch", final[0])
	}
	if !slices.ContainsFunc(final, func(line string) bool {
		return strings.HasPrefix(line, "COPY ") && strings.HasSuffix(line, " /etc/ssl/certs/ca-certificates.crt")
	}) {
		t.Error("the run stage has no CA certificates: no node, partner or engine could be reached over TLS")
	}
	user := ""
	for _, line := range final {
		if rest, ok := strings.CutPrefix(line, "USER "); ok {
			user = rest
		}
		if strings.HasPrefix(line, "RUN ") {
			t.Errorf("the run stage runs a command: %s", line)
		}
	}
	if user == "" || strings.HasPrefix(user, "0") || strings.HasPrefix(user, "root") {
		t.Errorf("the run stage's user is %q", user)
	}
	if !strings.HasPrefix(final[len(final)-1], "ENTRYPOINT [") {
		t.Error("the run stage has no exec-form entry point")
	}
}
