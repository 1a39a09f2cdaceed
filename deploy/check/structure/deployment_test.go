package structure

import (
	"encoding/xml"
	"maps"
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
	"github.com/navlog/navlog/schemas/chainlog"
)

type compose struct {
	Services map[string]service               `yaml:"services"`
	Secrets  map[string]struct{ File string } `yaml:"secrets"`
}

type service struct {
	Image       string                                `yaml:"image"`
	Build       struct{ Dockerfile string }           `yaml:"build"`
	Command     []string                              `yaml:"command"`
	Environment map[string]string                     `yaml:"environment"`
	Entrypoint  []string                              `yaml:"entrypoint"`
	Secrets     []string                              `yaml:"secrets"`
	NetworkMode string                                `yaml:"network_mode"`
	Volumes     []string                              `yaml:"volumes"`
	Ports       []string                              `yaml:"ports"`
	PullPolicy  string                                `yaml:"pull_policy"`
	ReadOnly    bool                                  `yaml:"read_only"`
	CapDrop     []string                              `yaml:"cap_drop"`
	Healthcheck struct{ Test []string }               `yaml:"healthcheck"`
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	StopGrace   time.Duration                         `yaml:"stop_grace_period"`
}

func loadCompose(t *testing.T) compose {
	t.Helper()
	return readCompose(t, "../../docker/compose.yaml")
}

func readCompose(t *testing.T, file string) compose {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// composeFiles are compose.yaml and its overlays.
func composeFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docker/compose*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("compose files %v: %v", files, err)
	}
	return files
}

// kafkaUsers is the Kafka user of each service.
var kafkaUsers = map[string]string{"ingest": chainlog.Ingest, "project": chainlog.Project,
	"dispatch": chainlog.Dispatch, "operate": chainlog.Operator, "verify": chainlog.Project}

// Every service has a health check, and starts only after the services that it cannot work without are
// healthy.
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
		"grant":    {"kafka"},
		"verify":   {"kafka", "clickhouse", "postgres"},
	}
	end := []string{"migrate", "operate", "grant", "verify"} // these do their work and exit
	if len(c.Services) != len(needs) {
		t.Errorf("compose.yaml has %d services, want %d", len(c.Services), len(needs))
	}
	for name, engines := range needs {
		s, ok := c.Services[name]
		if !ok {
			t.Errorf("compose.yaml lacks service %s", name)
			continue
		}
		if len(s.Healthcheck.Test) < 2 && !slices.Contains(end, name) {
			t.Errorf("service %s has no health check", name)
		}
		if _, comes := kafkaUsers[name]; comes && name != "operate" &&
			s.DependsOn["grant"].Condition != "service_completed_successfully" {
			t.Errorf("service %s does not wait until Kafka knows its user", name)
		}
		if slices.Contains([]string{"ingest", "project", "serve", "dispatch", "operate", "grant", "verify"}, name) &&
			s.DependsOn["migrate"].Condition != "service_completed_successfully" {
			t.Errorf("service %s does not wait until the tables are up to date", name)
		}
		for _, engine := range engines {
			if s.DependsOn[engine].Condition != "service_healthy" {
				t.Errorf("service %s does not wait until %s is healthy", name, engine)
			}
		}
	}
}

// The programs run without privileges, receive every secret from outside, and publish nothing but the API, on loopback.
func TestComposeIsSafe(t *testing.T) {
	c := loadCompose(t)
	for _, name := range []string{"ingest", "project", "serve", "dispatch", "migrate", "operate", "grant", "verify"} {
		s := c.Services[name]
		login := "navlog_" + name
		if name == "operate" || name == "grant" {
			login = "navlog_operator"
		}
		if name == "verify" {
			login = "navlog_project" // it reads what project wrote
		}
		if at := s.Environment["NAVLOG_POSTGRES_URL"]; !strings.HasPrefix(at, "postgres://"+login+"@") ||
			s.Environment["NAVLOG_POSTGRES_SKIP_MIGRATIONS"] != "true" {
			t.Errorf("service %s uses PostgreSQL as %s, or migrates by itself", name, at)
		}
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
			t.Errorf("service %s may write its file system or keeps capabilities", name)
		}
		switch name {
		case "operate":
			name = "status" // the default command
		case "grant":
			name = "kafka"
		}
		if s.Image != built || s.PullPolicy != "${NAVLOG_PULL:-never}" || len(s.Command) == 0 || s.Command[0] != name {
			t.Errorf("service %s does not run `navlog %s` of the image that is built here, or of the released one in .env", name,
				name)
		}
		// Several services that build the same tag would race for it.
		if builds := s.Build.Dockerfile == "deploy/docker/Dockerfile"; builds != (name == "migrate") {
			t.Errorf("service %s builds the image: %t; migrate does, which the others wait for", name, builds)
		}
	}
	for name, s := range c.Services {
		for key, value := range s.Environment {
			file := strings.HasPrefix(value, "/run/secrets/")
			if secret := secretSetting.MatchString(key); secret && (!file || !strings.HasSuffix(key, "_FILE")) {
				t.Errorf("service %s: %s=%s must be a file, which other users cannot read", name, key, value)
			}
			if file && !slices.Contains(s.Secrets, strings.TrimPrefix(value, "/run/secrets/")) {
				t.Errorf("service %s: %s names a secret that it does not get", name, key)
			}
			if strings.Contains(value, "://") && strings.Contains(value, "${") {
				t.Errorf("service %s: %s is a URL with a variable in it, which a / or # in its value breaks", name, key)
			}
		}
		// A service gets nothing that it does not use.
		given := strings.Join(slices.Concat(slices.Collect(maps.Values(s.Environment)), s.Entrypoint, mounted(t, s)), "\n")
		if strings.Contains(given, "--passwords") || slices.Contains(s.Command, "--passwords") {
			for _, user := range chainlog.Users {
				given += "\n/run/secrets/kafka_" + user
			}
		}
		for _, secret := range s.Secrets {
			if c.Secrets[secret].File != "./secrets/"+secret {
				t.Errorf("service %s: secret %s is in %q", name, secret, c.Secrets[secret].File)
			}
			if !regexp.MustCompile(`/run/secrets[/:]` + secret + `\b`).MatchString(given) {
				t.Errorf("service %s gets secret %s and does not use it", name, secret)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("service %s publishes %s beyond loopback", name, port)
			}
		}
		if s.Image != built && !pinnable.MatchString(s.Image) {
			t.Errorf("service %s: image %q is not a variable with a version", name, s.Image)
		}
		for _, word := range s.Healthcheck.Test {
			if strings.Contains(word, "/run/secrets") || strings.Contains(word, "PASSWORD") {
				t.Errorf("service %s: its health check has a password on its command line", name)
			}
		}
	}
	// Each program has only its own secrets, so that an intruder in one of them gains no more than these.
	for secret, holders := range map[string][]string{
		"secret_key": {"dispatch", "operate"}, "statement_key": {"serve"},
		"postgres": {"postgres"}, "postgres_migrate": {"migrate", "postgres"}, "postgres_ingest": {"ingest", "postgres"},
		"postgres_project": {"postgres", "project", "verify"},
		"postgres_serve":   {"postgres", "serve"}, "postgres_dispatch": {"dispatch", "postgres"},
		"postgres_operator": {"grant", "operate", "postgres"},
		"clickhouse":        {"clickhouse"}, "clickhouse_project": {"clickhouse", "project", "verify"},
		"chain_rpc": {"ingest", "verify"}, "clickhouse_query": {"clickhouse", "serve"},
		"kafka_admin": {"grant", "kafka"}, "kafka_ingest": {"grant", "ingest"},
		"kafka_project": {"grant", "project", "verify"}, "kafka_dispatch": {"dispatch", "grant"},
		"kafka_operator": {"grant", "operate"},
	} {
		var have []string
		for name, s := range c.Services {
			if slices.Contains(s.Secrets, secret) {
				have = append(have, name)
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, holders) {
			t.Errorf("secret %s is given to %v; only %v need it and must get it", secret, have, holders)
		}
		delete(c.Secrets, secret)
	}
	if len(c.Secrets) > 0 {
		t.Errorf("no service needs %v", c.Secrets)
	}
}

// secretSetting matches settings that contain secrets: the URLs of nodes do, because they contain providers' keys.
var secretSetting = regexp.MustCompile(`PASSWORD|SECRET_KEY|STATEMENT_KEY|RPC`)

// The URLs of nodes are a secret of the programs that call nodes (see TestComposeIsSafe), so they must not be in the
// configuration, which a program that serves the internet or connects to receivers reads too.
func TestComposeStatesWhereNodesBelong(t *testing.T) {
	b, err := os.ReadFile("../../docker/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), "\nname: navlog")
	if !strings.Contains(head, "without chain.rpc: every program reads this file") {
		t.Error("compose.yaml does not state that the configuration, which all programs read, must not have the nodes")
	}
}

// The login of project has exactly the rights that docs/operations.md lists, and no program has the login with all
// rights.
func TestComposeClickHouseRights(t *testing.T) {
	c := loadCompose(t)
	all := c.Services["clickhouse"].Environment["CLICKHOUSE_USER"]
	for name, s := range c.Services {
		for _, key := range []string{"NAVLOG_CLICKHOUSE_USER", "NAVLOG_CLICKHOUSE_QUERY_USER"} {
			if user, has := s.Environment[key]; has && user == all {
				t.Errorf("service %s is %s, which has all rights in ClickHouse", name, user)
			}
		}
	}
	for _, name := range []string{"project", "verify"} {
		if user := c.Services[name].Environment["NAVLOG_CLICKHOUSE_USER"]; user != "navlog_project" {
			t.Errorf("service %s writes to ClickHouse as %q", name, user)
		}
	}
	if !slices.Contains(c.Services["clickhouse"].Volumes,
		"./clickhouse-project-user.xml:/etc/clickhouse-server/users.d/navlog-project.xml:ro") {
		t.Error("ClickHouse does not know the login of project")
	}
	var file struct {
		Project []string `xml:"users>navlog_project>grants>query"`
		Query   []string `xml:"users>navlog_query>grants>query"`
	}
	for _, name := range []string{"project", "query"} {
		b, err := os.ReadFile("../../docker/clickhouse-" + name + "-user.xml")
		if err == nil {
			err = xml.Unmarshal(b, &file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, needs, _ := strings.Cut(string(page), "### Logins on ClickHouse")
	needs, _, _ = strings.Cut(needs, "-- with clickhouse.cluster")
	for login, may := range map[string][]string{"navlog_project": file.Project, "navlog_query": file.Query} {
		var want []string
		for line := range strings.Lines(needs) {
			if grant, _, is := strings.Cut(line, " TO "+login+";"); is {
				want = append(want, grant)
			}
		}
		if len(want) == 0 || !slices.Equal(may, want) || !strings.Contains(needs, "CREATE USER "+login+" IDENTIFIED BY") {
			t.Errorf("%s may\n%s\nand the page grants\n%s", login, strings.Join(may, "\n"), strings.Join(want, "\n"))
		}
	}
}

// built is the image of the programs: built locally, unless .env names a released one. Without NAVLOG_PULL Compose
// pulls it from no registry, because any publisher could own the name "navlog" there.
const built = "${NAVLOG_IMAGE:-navlog}"

// pinnable matches an image that pin.sh can pin, with its default.
var pinnable = regexp.MustCompile(`^\$\{[A-Z]+_IMAGE:-[a-z/-]+:v?[0-9]+(\.[0-9]+)*\}$`)

// mounted returns the text of the files that a service mounts from deploy/docker.
func mounted(t *testing.T, s service) (texts []string) {
	t.Helper()
	for _, v := range s.Volumes {
		if file, _, _ := strings.Cut(v, ":"); strings.HasPrefix(file, "./") && file != "./files" {
			// whose files are the operator's
			b, err := os.ReadFile("../../docker/" + file)
			if err != nil {
				t.Fatal(err)
			}
			// The broker writes /run/secrets:kafka_admin.
			texts = append(texts, string(b))
		}
	}
	return texts
}

// Each program connects to Kafka as its own user, through the listener for programs; serve does not connect. The
// service that grants the rights uses the superuser's listener, which no other machine can reach, and grants the rights
// that the tests of chainlog cover.
func TestComposeUsersOfKafka(t *testing.T) {
	c := loadCompose(t)
	for name, s := range c.Services {
		user, comes := kafkaUsers[name]
		want := map[string]string{}
		if comes {
			want = map[string]string{"BROKERS": "kafka:9092", "SASL_MECHANISM": "SCRAM-SHA-512",
				"SASL_USER": chainlog.UserName(user), "SASL_PASSWORD_FILE": "/run/secrets/kafka_" + user}
		}
		if name == "grant" {
			want = map[string]string{"BROKERS": "127.0.0.1:9094", "SASL_MECHANISM": "PLAIN", "SASL_USER": "admin",
				"SASL_PASSWORD_FILE": "/run/secrets/kafka_admin"}
		}
		got := map[string]string{}
		for key, value := range s.Environment {
			if setting, found := strings.CutPrefix(key, "NAVLOG_KAFKA_"); found {
				got[setting] = value
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("service %s connects to Kafka as %v, want %v", name, got, want)
		}
	}
	if s := c.Services["grant"]; !slices.Equal(s.Command, []string{"kafka", "grant", "--passwords", "/run/secrets"}) ||
		s.NetworkMode != "service:kafka" {
		t.Errorf("the users of Kafka get their rights by %v in network %q", s.Command, s.NetworkMode)
	}
	if s := c.Services["kafka"]; !slices.Contains(s.Volumes,
		"./kafka/server.properties:/mnt/shared/config/server.properties:ro") || len(s.Environment) > 0 || len(s.Ports) > 0 {
		t.Error("the broker does not run with kafka/server.properties only, which the tests run with")
	}
}

// inDocker runs a script in a copy of deploy/docker, with an additional folder in PATH.
func inDocker(t *testing.T, dir, script, path string) (string, error) {
	t.Helper()
	for _, file := range append(composeFiles(t), "../../docker/"+script) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), b, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(dir, script))
	cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// secrets.sh creates each secret of compose.yaml and its overlays, once: no two are equal, only their owner can read
// them, each program can read its own in its container, and values of an earlier .env, with which the databases were
// created, are kept.
func TestComposeSecrets(t *testing.T) {
	dir := t.TempDir()
	before := map[string]string{"postgres_serve": "an earlier password", "secret_key": "AAAA//BBBB+CCCC="}
	if err := os.WriteFile(filepath.Join(dir, ".env"),
		[]byte("POSTGRES_SERVE_PASSWORD=an earlier password\n# a comment\nNAVLOG_SECRET_KEY=AAAA//BBBB+CCCC=\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	read := func() map[string]string {
		t.Helper()
		out, err := inDocker(t, dir, "secrets.sh", dir)
		if err != nil {
			t.Fatalf("secrets.sh: %v\n%s", err, out)
		}
		values := map[string]string{}
		secrets := map[string]struct{ File string }{}
		for _, file := range composeFiles(t) {
			maps.Copy(secrets, readCompose(t, file).Secrets)
		}
		for name := range secrets {
			file := filepath.Join(dir, "secrets", name)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			values[name] = string(b)
			if name != "chain_rpc" && strings.Contains(out, values[name]) {
				t.Errorf("secrets.sh prints %s", name)
			}
			mode := os.FileMode(0o444)
			if name == "chain_rpc" {
				mode = 0o644 // written by its owner
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v: a program, which is another user in its container, has to read it", name, info.Mode(), err)
			}
		}
		return values
	}
	made := read()
	seen := map[string]string{}
	for name, value := range made {
		if name == "chain_rpc" { // secrets.sh cannot create it; ingest rejects this placeholder
			if value != "https://node.example:8545" {
				t.Errorf("the nodes are %q", value)
			}
			continue
		}
		if before[name] != "" {
			if value != before[name] {
				t.Errorf("%s is %q, and was %q", name, value, before[name])
			}
			continue
		}
		if len(value) < 40 || strings.ContainsAny(value, "\n\r") || seen[value] != "" {
			t.Errorf("%s is %q, and %s too", name, value, seen[value])
		}
		seen[value] = name
	}
	if info, err := os.Stat(filepath.Join(dir, "secrets")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("other users can read the folder: %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "secrets")); err != nil || len(left) != len(made) {
		t.Errorf("%d files for %d secrets (%v)", len(left), len(made), err)
	}
	if again := read(); !maps.Equal(again, made) {
		t.Error("the passwords of databases that exist are gone")
	}
}

// pin.sh writes the digest of each image, including the builder's, and leaves the rest of .env unchanged; an image
// without a digest is rejected and nothing is changed. A released image of navlog is pinned too, and one that is built
// locally is not looked up.
func TestComposePins(t *testing.T) {
	dir := t.TempDir()
	docker := func(answer string) {
		if err := os.WriteFile(filepath.Join(dir, "docker"),
			[]byte("#!/bin/sh\nfor last; do :; done\ncase $1 in pull) echo $last ;; image) "+answer+" ;; esac\n"),
			0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const kept = "NAVLOG_OPERATOR=alice\n"
	write(kept + "KAFKA_IMAGE=old\n")
	docker("echo '<no value>'")
	if out, err := inDocker(t, dir, "pin.sh", dir); err == nil {
		t.Errorf("an image without digest is pinned: %s", out)
	}
	there := []string{".env", "docker", "pin.sh"}
	for _, file := range composeFiles(t) {
		there = append(there, filepath.Base(file))
	}
	slices.Sort(there)
	if got := namesIn(t, dir); !slices.Equal(got, there) {
		t.Errorf("the failed script leaves %q", got)
	}
	if b, err := os.ReadFile(filepath.Join(dir, ".env")); err != nil || string(b) != kept+"KAFKA_IMAGE=old\n" {
		t.Errorf("the failed script leaves an .env of %q: %v", b, err)
	}
	docker("echo some/where@sha256:$(echo $last | sha256sum | cut -d' ' -f1)")
	others := []string{"BLACKBOX_EXPORTER", "CADDY", "CLICKHOUSE", "GO", "GRAFANA", "KAFKA", "NODE_EXPORTER", "POSTGRES",
		"PROMETHEUS"}
	for i, released := range []string{"", "", "registry.example/navlog:v1.2.0", "registry.example/navlog:v1.2.0"} {
		if i == 2 {
			write(kept + "NAVLOG_IMAGE=" + released + "\n")
		}
		if out, err := inDocker(t, dir, "pin.sh", dir); err != nil {
			t.Fatalf("pin.sh: %v\n%s", err, out)
		}
		b, err := os.ReadFile(filepath.Join(dir, ".env"))
		if err != nil {
			t.Fatal(err)
		}
		rest, found := strings.CutPrefix(string(b), kept)
		want, pinned := slices.Clone(others), []string{}
		if released != "" {
			want = append(want, "NAVLOG")
		}
		for line := range strings.Lines(rest) {
			parts := regexp.MustCompile(`^([A-Z_]+)_IMAGE=[a-z/.-]+:v?[0-9.]+(-bookworm)?@sha256:[0-9a-f]{64}\n$`).FindStringSubmatch(line)
			if parts == nil {
				t.Fatalf(".env is\n%s", b)
			}
			pinned = append(pinned, parts[1])
		}
		slices.Sort(want)
		slices.Sort(pinned)
		if !found || !slices.Equal(pinned, want) || released != "" &&
			!strings.Contains(rest, "NAVLOG_IMAGE="+released+"@sha256:") {
			t.Errorf(".env is\n%s", b)
		}
		if got := namesIn(t, dir); !slices.Equal(got, there) {
			t.Errorf("the script leaves %q", got)
		}
	}
}

// namesIn returns the names in a folder, sorted.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Clients are distinguished behind a proxy on the host or in a container, because the proxy's requests come from an
// address in Docker's default pools. A client outside of these is not trusted.
func TestComposeBehindAProxy(t *testing.T) {
	var networks []netip.Prefix
	for one := range strings.SplitSeq(loadCompose(t).Services["serve"].Environment["NAVLOG_HTTP_TRUSTED_PROXIES"], ",") {
		network, err := netip.ParsePrefix(one)
		if err != nil {
			t.Fatal(err)
		}
		networks = append(networks, network)
	}
	for peer, trusted := range map[string]bool{"172.17.0.1": true, "172.18.0.1": true, "172.31.255.254": true,
		"192.168.16.1": true, "8.8.8.8": false, "172.32.0.1": false} {
		if got := slices.ContainsFunc(networks,
			func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr(peer)) }); got != trusted {
			t.Errorf("X-Forwarded-For from %s is trusted: %v", peer, got)
		}
	}
}

// A program that receives a stop signal finishes its commit, and neither Compose nor systemd nor Kubernetes kills it
// before the longest time that this may take is over.
func TestProgramsCanStop(t *testing.T) {
	var chart struct {
		Grace  int `yaml:"terminationGracePeriodSeconds"`
		Config struct{ HTTP struct{ Drain time.Duration } }
	}
	values, err := os.ReadFile("../../helm/navlog/values.yaml")
	if err == nil {
		err = yaml.Unmarshal(values, &chart)
	}
	if err != nil {
		t.Fatal(err)
	}
	units, err := os.ReadFile("../../systemd/navlog-.service.d/10-navlog.conf")
	if err != nil {
		t.Fatal(err)
	}
	timeout := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindSubmatch(units)
	if timeout == nil {
		t.Fatal("no unit sets how long a program may take to end")
	}
	unit, err := strconv.Atoi(string(timeout[1]))
	if err != nil {
		t.Fatal(err)
	}
	longest := map[string]time.Duration{
		"ingest": chainlog.CommitTimeout,
		"project": seconds(t, "../../../projections/write/swap.go", "insertTimeout") + seconds(t,
			"../../../projections/write/swap.go", "cursorAge"),
		"serve": chart.Config.HTTP.Drain + query.DefaultConfig().ShutdownTimeout,
		"dispatch": seconds(t, "../../../dispatch/lane/timing.go", "Deadline") + seconds(t, "../../../dispatch/ledger.go",
			"writeGrace") + seconds(t, "../../../dispatch/ledger.go", "writeTimeout"),
	}
	c := loadCompose(t)
	for name, takes := range longest {
		for where, grace := range map[string]time.Duration{"Compose": c.Services[name].StopGrace,
			"systemd": time.Duration(unit) * time.Second, "the chart": time.Duration(chart.Grace) * time.Second} {
			if grace < takes+takes/2 {
				t.Errorf("%s kills %s after %s (0 means its default), but its end may take %s: give it one and a half times that",
					where, name, grace, takes)
			}
		}
	}
}

// seconds returns a duration from a source file in which it is not exported.
func seconds(t *testing.T, file, name string) time.Duration {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\s*(?:const )?` + name + `\s*(?:=|:)\s*(\d+) \* time\.Second\b`).FindSubmatch(b)
	if found == nil {
		t.Fatalf("%s has no %s in seconds: change its place here", file, name)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n) * time.Second
}

// The builder gets nothing of the machine except the sources, above all no keys. The version that the binary prints
// comes from .git.
func TestBuilderGetsSourcesOnly(t *testing.T) {
	b, err := os.ReadFile("../../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	ignored := strings.Split(string(b), "\n")
	for _, path := range []string{"/data", "/navlog.yaml", "/build", "/bin", "**/node_modules",
		"/deploy/engines/kafka/lib", "/deploy/docker/.env*", "/deploy/docker/secrets"} {
		if !slices.Contains(ignored, path) {
			t.Errorf(".dockerignore lacks %s, so the builder gets it", path)
		}
	}
	if slices.ContainsFunc(ignored,
		func(line string) bool { return strings.HasPrefix(strings.Trim(line, "*/"), ".git") }) {
		t.Error(".dockerignore has .git, without which `navlog version` prints no version")
	}
}

// The image is built in one stage and runs in another, which contains nothing but the binary and what it needs, and no
// privileged user.
func TestDockerfile(t *testing.T) {
	b, err := os.ReadFile("../../docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var stages [][]string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "FROM ") {
			stages = append(stages, nil)
		}
		if line != "" && !strings.HasPrefix(line, "#") && len(stages) > 0 {
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
