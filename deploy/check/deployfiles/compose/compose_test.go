// Package compose checks the files of deploy/docker with the library that Docker Compose itself uses to read them.
package compose

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const folder = "../../../docker"

// overlays lists the overlays for compose.yaml, and the services that each adds.
var overlays = map[string][]string{
	"compose.prometheus.yaml": {"prometheus", "node", "blackbox"},
	"compose.grafana.yaml":    {"grafana"},
	"compose.tls.yaml":        {"proxy"},
}

// load reads files as `docker compose -f ... --profile operate` does: validated against the schema, with variables
// substituted.
func load(t *testing.T, variables []string, files ...string) (*types.Project, error) {
	t.Helper()
	var paths []string
	for _, file := range files {
		paths = append(paths, filepath.Join(folder, file))
	}
	options, err := cli.NewProjectOptions(paths, cli.WithEnv(variables), cli.WithProfiles([]string{"operate"}),
		cli.WithInterpolation(true))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func mustLoad(t *testing.T, variables []string, files ...string) *types.Project {
	t.Helper()
	project, err := load(t, variables, files...)
	if err != nil {
		t.Fatalf("%v: %v", files, err)
	}
	return project
}

// sets are the combinations of files that docs/operations.md names.
var sets = [][]string{
	{"compose.yaml"},
	{"compose.yaml", "compose.prometheus.yaml"},
	{"compose.yaml", "compose.prometheus.yaml", "compose.grafana.yaml"},
	{"compose.yaml", "compose.tls.yaml"},
	{"compose.yaml", "compose.prometheus.yaml", "compose.grafana.yaml", "compose.tls.yaml"},
}

func asJSON(t *testing.T, s types.ServiceConfig) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var domain = []string{"NAVLOG_DOMAIN=navlog.example"}

// Compose accepts each combination of files, and an overlay adds its services without changing any other.
func TestComposeAcceptsEachSetOfFiles(t *testing.T) {
	base := mustLoad(t, domain, "compose.yaml")
	for _, files := range sets {
		project := mustLoad(t, domain, files...)
		want := base.ServiceNames()
		for _, file := range files[1:] {
			want = append(want, overlays[file]...)
		}
		got := project.ServiceNames()
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%v have the services %v, want %v", files, got, want)
		}
		for _, name := range base.ServiceNames() {
			if asJSON(t, base.Services[name]) != asJSON(t, project.Services[name]) {
				t.Errorf("%v change service %s", files, name)
			}
		}
	}
	// Without a host name there is no certificate, and the error names the variable.
	if _, err := load(t, nil, "compose.yaml", "compose.tls.yaml"); err == nil ||
		!strings.Contains(err.Error(), "deploy/docker/.env") {
		t.Errorf("a proxy without a domain: %v", err)
	}
}

// No service can use all memory, processors or disk space of the machine; each is restarted, and each has time to shut
// down.
func TestEachServiceIsBounded(t *testing.T) {
	for name, s := range mustLoad(t, domain, sets[len(sets)-1]...).Services {
		if s.MemLimit < 256<<20 || s.MemLimit > 4<<30 {
			t.Errorf("service %s may take %d bytes of memory", name, s.MemLimit)
		}
		// Docker rejects a limit above the machine's number of processors, and a small machine has two.
		if s.CPUS <= 0 || s.CPUS > 2 {
			t.Errorf("service %s may take %v processors", name, s.CPUS)
		}
		if s.Logging == nil || s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
			t.Errorf("the log of service %s grows without bound", name)
		}
		if s.Restart == "" {
			t.Errorf("service %s has no restart policy", name)
		}
	}
}

// Starting one program starts no other: after the brokers were restored from a snapshot, an ingest that starts together
// with dispatch costs partners their webhooks (docs/operations-dispatch.md).
func TestProgramsStartOneByOne(t *testing.T) {
	programs := []string{"ingest", "project", "serve", "dispatch"}
	for _, program := range programs {
		started, err := mustLoad(t, domain, "compose.yaml").WithSelectedServices([]string{program})
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range started.ServiceNames() {
			if other != program && slices.Contains(programs, other) {
				t.Errorf("`up -d %s` also starts %s", program, other)
			}
		}
	}
}

// The limits are variables, so a larger machine does not require changing a file.
func TestLimitsAreVariables(t *testing.T) {
	variables := append([]string{"NAVLOG_MEMORY=3g", "NAVLOG_CPUS=7", "CLICKHOUSE_MEMORY=64g"}, domain...)
	services := mustLoad(t, variables, sets[len(sets)-1]...).Services
	if s := services["project"]; s.MemLimit != 3<<30 || s.CPUS != 7 {
		t.Errorf("project may take %d bytes and %v processors", s.MemLimit, s.CPUS)
	}
	if s := services["clickhouse"]; s.MemLimit != 64<<30 {
		t.Errorf("ClickHouse may take %d bytes", s.MemLimit)
	}
}

// Traces are off until a variable names a collector.
func TestTracesByVariable(t *testing.T) {
	collector := "http://collector:4318"
	for _, given := range []string{"", collector} {
		project := mustLoad(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + given}, "compose.yaml")
		for _, program := range []string{"ingest", "project", "serve", "dispatch"} {
			environment := project.Services[program].Environment
			if got := environment["OTEL_EXPORTER_OTLP_ENDPOINT"]; got == nil || *got != given {
				t.Errorf("%s sends traces to %v, want %q", program, got, given)
			}
			if got := environment["OTEL_TRACES_SAMPLER"]; got == nil || *got != "parentbased_always_on" {
				t.Errorf("%s samples by %v", program, got)
			}
		}
	}
}

// A health check runs every ten seconds, so it starts no Java process, and it needs no password.
func TestHealthChecksAreCheap(t *testing.T) {
	checked := 0
	for name, s := range mustLoad(t, domain, sets[len(sets)-1]...).Services {
		if s.HealthCheck == nil {
			continue
		}
		checked++
		test := strings.Join(s.HealthCheck.Test, " ")
		for _, word := range []string{"kafka-", "java", "/run/secrets", "properties"} {
			if strings.Contains(test, word) {
				t.Errorf("the health check of service %s is %q", name, test)
			}
		}
		if s.HealthCheck.Interval == nil || s.HealthCheck.Timeout == nil || s.HealthCheck.Retries == nil {
			t.Errorf("the health check of service %s has no interval, timeout or retries", name)
		}
	}
	if checked < 10 {
		t.Errorf("%d services have a health check", checked)
	}
}

// Each file that a service mounts is in the repository. Otherwise Docker would create an empty folder in its place.
func TestMountedFilesExist(t *testing.T) {
	mounted, folders := 0, 0
	for name, s := range mustLoad(t, domain, sets[len(sets)-1]...).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind || filepath.Base(v.Source) == "navlog.yaml" {
				continue // navlog.yaml is provided by the operator
			}
			mounted++
			if v.Target == "/etc/navlog/files" {
				folders++
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("service %s mounts %s: %v", name, v.Source, err)
			}
			if !v.ReadOnly {
				t.Errorf("service %s may write %s", name, v.Source)
			}
		}
	}
	if mounted < 8 {
		t.Errorf("%d files are mounted", mounted)
	}
	if folders != 8 { // each program, each job and the services of operators
		t.Errorf("%d services have the files that navlog.yaml names", folders)
	}
}

// Services that overlays add publish nothing outside this machine except the TLS ports, have only their own secrets,
// and have no privileges.
func TestOverlaysAreSafe(t *testing.T) {
	project := mustLoad(t, domain, sets[len(sets)-1]...)
	secrets := map[string][]string{"prometheus": nil, "node": nil, "blackbox": nil, "grafana": {"grafana_admin"},
		"proxy": nil}
	for name, want := range secrets {
		s := project.Services[name]
		var got []string
		for _, secret := range s.Secrets {
			got = append(got, secret.Source)
		}
		if !slices.Equal(got, want) {
			t.Errorf("service %s gets the secrets %v", name, got)
		}
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("service %s keeps capabilities, or may get others", name)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" && (name != "proxy" || port.Published != "80" && port.Published != "443") {
				t.Errorf("service %s publishes port %s on %q", name, port.Published, port.HostIP)
			}
		}
	}
}

// The overlay of rotations gives serve the key of the signing secrets, as a file, and changes nothing else; without it
// only dispatch and operators have the key.
func TestRotationByPartners(t *testing.T) {
	keyHolders := func(p *types.Project) (found []string) {
		for name, s := range p.Services {
			if slices.ContainsFunc(s.Secrets,
				func(secret types.ServiceSecretConfig) bool { return secret.Source == "secret_key" }) {
				found = append(found, name)
			}
		}
		slices.Sort(found)
		return found
	}
	base := mustLoad(t, domain, "compose.yaml")
	project := mustLoad(t, domain, "compose.yaml", "compose.rotation.yaml")
	if got := keyHolders(base); !slices.Equal(got, []string{"dispatch", "operate"}) {
		t.Errorf("without rotation %v have the key", got)
	}
	if got := keyHolders(project); !slices.Equal(got, []string{"dispatch", "operate", "serve"}) {
		t.Errorf("with rotation %v have the key", got)
	}
	serve := project.Services["serve"]
	for name, want := range map[string]string{"NAVLOG_HTTP_PARTNER_ROTATION": "true",
		"NAVLOG_SECRET_KEY_FILE": "/run/secrets/secret_key"} {
		if got := serve.Environment[name]; got == nil || *got != want {
			t.Errorf("%s of serve is %v, want %q", name, got, want)
		}
		delete(serve.Environment, name)
	}
	serve.Secrets = slices.DeleteFunc(serve.Secrets,
		func(secret types.ServiceSecretConfig) bool { return secret.Source == "secret_key" })
	project.Services["serve"] = serve
	if !slices.Equal(base.ServiceNames(), project.ServiceNames()) {
		t.Errorf("the services are %v", project.ServiceNames())
	}
	for _, name := range base.ServiceNames() {
		if asJSON(t, base.Services[name]) != asJSON(t, project.Services[name]) {
			t.Errorf("the overlay changes service %s", name)
		}
	}
}

// Caddy accepts the configuration of the proxy. Debian and Ubuntu provide it as a package.
func TestCaddyAcceptsItsConfiguration(t *testing.T) {
	caddy, err := exec.LookPath("caddy")
	if err != nil {
		t.Skip("caddy is not installed: apt-get install caddy")
	}
	cmd := exec.Command(caddy, "adapt", "--validate", "--adapter", "caddyfile", "--config",
		filepath.Join(folder, "tls", "Caddyfile"))
	home := t.TempDir() // where Caddy would store certificates
	cmd.Env = append(os.Environ(), domain[0], "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, faults.String())
	}
	for _, part := range []string{`"host":["navlog.example"]`, `"dial":"serve:8080"`, `"flush_interval":-1`} {
		if !strings.Contains(string(out), part) {
			t.Errorf("the proxy is\n%s\nwithout %s", out, part)
		}
	}
}
