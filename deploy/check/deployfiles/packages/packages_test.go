// Package packages checks deploy/systemd and the packages of a release: systemd's own tools read the units, and nfpm,
// which goreleaser uses, builds the deb and the rpm from .goreleaser.yaml.
package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/blakesmith/ar"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
	"github.com/sassoftware/go-rpmutils"
	"sigs.k8s.io/yaml"
)

const root = "../../../.."

// A file is a file in a package.
type file struct {
	mode os.FileMode
	dir  bool
	text string
}

// build builds a package as a release does, with a few bytes in place of the binary, and returns its files by path.
func build(t *testing.T, format string) map[string]file {
	t.Helper()
	t.Chdir(root) // paths in .goreleaser.yaml are relative to the root
	b, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var release struct {
		NFPMs []map[string]any `json:"nfpms"`
	}
	if err := yaml.Unmarshal(b, &release); err != nil || len(release.NFPMs) != 1 {
		t.Fatalf("%d packages: %v", len(release.NFPMs), err)
	}
	config := release.NFPMs[0]
	if !slices.Contains(config["formats"].([]any), any(format)) {
		t.Fatalf("a release has no %s", format)
	}
	binary := filepath.Join(t.TempDir(), "navlog")
	if err := os.WriteFile(binary, []byte("the binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Add what goreleaser adds, and remove the keys that only goreleaser knows.
	config["name"], config["arch"], config["platform"], config["version"] = config["package_name"], "amd64", "linux",
		"1.2.3"
	config["contents"] = append(config["contents"].([]any),
		map[string]any{"src": binary, "dst": config["bindir"].(string) + "/navlog",
			"file_info": map[string]any{"mode": 0o755}})
	for _, key := range []string{"id", "ids", "package_name", "formats", "bindir"} {
		delete(config, key)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	// nfpm rejects unknown keys.
	parsed, err := nfpm.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	info, err := parsed.Get(format)
	if err != nil {
		t.Fatal(err)
	}
	if err := nfpm.Validate(nfpm.WithDefaults(info)); err != nil {
		t.Fatal(err)
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	if err := packager.Package(info, &made); err != nil {
		t.Fatal(err)
	}
	if format == "deb" {
		return readDeb(t, made.Bytes())
	}
	return readRPM(t, made.Bytes())
}

func readDeb(t *testing.T, b []byte) map[string]file {
	t.Helper()
	found := map[string]file{}
	parts := ar.NewReader(bytes.NewReader(b))
	for {
		part, err := parts.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(part.Name, "/")
		if !strings.HasSuffix(name, ".tar.gz") {
			continue
		}
		unzipped, err := gzip.NewReader(parts)
		if err != nil {
			t.Fatal(err)
		}
		files := tar.NewReader(unzipped)
		for {
			head, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			path := strings.TrimSuffix(strings.TrimPrefix(head.Name, "."), "/")
			if strings.HasPrefix(name, "control") {
				path = "DEBIAN/" + strings.TrimPrefix(path, "/")
			}
			found[path] = file{mode: head.FileInfo().Mode().Perm(), dir: head.FileInfo().IsDir(), text: string(text)}
		}
	}
}

func readRPM(t *testing.T, b []byte) map[string]file {
	t.Helper()
	r, err := rpmutils.ReadRpm(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	infos, err := r.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]file{}
	for _, info := range infos {
		found[strings.TrimSuffix(info.Name(), "/")] = file{mode: os.FileMode(info.Mode()) & os.ModePerm,
			dir: info.Mode()&0o040000 != 0 && info.Mode()&0o100000 == 0}
	}
	return found
}

var programs = []string{"ingest", "project", "serve", "dispatch"}

// withPassword are the units that log in to Kafka, with a password unless the operator masks the drop-in of each.
var withPassword = []string{"ingest", "project", "dispatch", "verify", "backup"}

// A package contains the binary, a unit for each program with its restrictions, a folder for each program's secrets
// that only root can read, and documents for operators. It contains no configuration file, so it never overwrites the
// operator's.
func TestPackages(t *testing.T) {
	for _, format := range []string{"deb", "rpm"} {
		t.Run(format, func(t *testing.T) {
			found := build(t, format)
			want := map[string]os.FileMode{
				"/usr/bin/navlog": 0o755, "/usr/share/doc/navlog/navlog.example.yaml": 0o644,
				"/usr/share/doc/navlog/copyright": 0o644,
				"/usr/share/doc/navlog/NOTICE":    0o644, "/usr/share/doc/navlog/operations.md": 0o644,
				"/usr/share/doc/navlog/alerts/programs.yaml":               0o644,
				"/usr/lib/systemd/system/navlog-.service.d/10-navlog.conf": 0o644,
				"/usr/lib/systemd/system/navlog-migrate.service":           0o644,
				"/usr/share/doc/navlog/navlog-serve-rotation.conf":         0o644,
				"/usr/share/doc/navlog/postgres-logins.sql":                0o644,
				"/usr/share/doc/navlog/clickhouse-project-user.xml":        0o644,
				"/usr/share/doc/navlog/clickhouse-query-user.xml":          0o644,
				"/usr/share/doc/navlog/alerts/exporters/machine.yaml":      0o644,
				"/usr/share/doc/navlog/dashboards/navlog.json":             0o644, "/etc/navlog/secrets": 0o700,
				"/etc/navlog/secrets/migrate": 0o700, "/etc/navlog": 0o755,
			}
			for _, program := range programs {
				want["/usr/lib/systemd/system/navlog-"+program+".service"] = 0o644
				want["/etc/navlog/secrets/"+program] = 0o700
			}
			for _, unit := range withPassword {
				want["/usr/lib/systemd/system/navlog-"+unit+".service"] = 0o644
				want["/usr/lib/systemd/system/navlog-"+unit+".service.d/20-kafka-password.conf"] = 0o644
			}
			want["/usr/lib/systemd/system/navlog-backup.timer"] = 0o644
			want["/etc/navlog/secrets/operate"], want["/etc/navlog/secrets/verify"] = 0o700, 0o700
			for path, mode := range want {
				if f, has := found[path]; !has || f.mode != mode {
					t.Errorf("%s: in the package %t, mode %o, want %o", path, has, f.mode, mode)
				}
			}
			for _, path := range slices.Sorted(maps.Keys(found)) {
				if strings.HasPrefix(path, "/etc/") && !found[path].dir {
					t.Errorf("%s is the operator's", path)
				}
				if found[path].mode&0o022 != 0 {
					t.Errorf("others may write %s", path)
				}
			}
			if format == "deb" {
				if control := found["DEBIAN/control"].text; !strings.Contains(control, "Package: navlog\nVersion: 1.2.3\n") ||
					!strings.Contains(control, "Architecture: amd64") {
					t.Errorf("the package is\n%s", control)
				}
				for _, script := range []string{"postinst", "prerm"} {
					if f := found["DEBIAN/"+script]; f.mode&0o100 == 0 || !strings.HasPrefix(f.text, "#!/bin/sh\n") {
						t.Errorf("%s cannot run", script)
					}
				}
			}
		})
	}
}

// Upgrading the package does not stop the programs; removing it does.
func TestScripts(t *testing.T) {
	for argument, stops := range map[string]bool{"remove": true, "0": true, "upgrade": false, "1": false, "": false} {
		b, err := os.ReadFile(root + "/deploy/systemd/preremove.sh")
		if err != nil {
			t.Fatal(err)
		}
		// Simulate a machine on which systemd runs.
		dir := t.TempDir()
		script := strings.ReplaceAll(string(b), "/run/systemd/system", dir)
		if err := os.WriteFile(dir+"/systemctl", []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", script, "preremove", argument)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", argument, err, out)
		}
		if got := strings.Contains(string(out), "disable --now"); got != stops {
			t.Errorf("with %q the script stops the programs: %t\n%s", argument, got, out)
		}
	}
}

// units copies deploy/systemd to a new folder, with a command that exists on this machine.
func units(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(root+"/deploy/systemd")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dir + "/*.service")
	if err != nil || len(files) != 7 {
		t.Fatalf("units %v: %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.ReplaceAll(b, []byte("/usr/bin/navlog "), []byte("/bin/true "))
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// systemd understands every line of the units, and rates the exposure of the programs as low: at most 2.0 of 10.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := units(t)
	run := func(arguments ...string) string {
		t.Helper()
		cmd := exec.Command(analyze, arguments...)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_COLORS=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("systemd-analyze %v: %v\n%s", arguments, err, out)
		}
		return string(out)
	}
	for _, unit := range append(slices.Clone(programs), "migrate", "verify", "backup") {
		name := "navlog-" + unit + ".service"
		if out := run("verify", "--man=no", name); strings.Contains(out, "navlog") {
			t.Errorf("systemd reports about %s: %s", name, out)
		}
		run("security", "--offline=true", "--threshold=20", name)
	}
	if out := run("verify", "--man=no", "navlog-backup.timer"); strings.Contains(out, "navlog") {
		t.Errorf("systemd reports about the timer: %s", out)
	}
}

// The login with a password is a separate drop-in, and nothing else of a unit names it: an operator who masks it has a
// unit without a user, a password and its file, which navlog rejects for a token or a role.
func TestKafkaPasswordCanBeMasked(t *testing.T) {
	users := map[string]string{"ingest": "navlog_ingest", "project": "navlog_project", "dispatch": "navlog_dispatch",
		"verify": "navlog_project", "backup": "navlog_operator"}
	for _, unit := range append(slices.Clone(withPassword), "serve", "migrate") {
		b, err := os.ReadFile(fmt.Sprintf("%s/deploy/systemd/navlog-%s.service", root, unit))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "SASL") || strings.Contains(string(b), "kafka-password") {
			t.Errorf("the unit of %s itself has the login of Kafka", unit)
		}
	}
	page, err := os.ReadFile(root + "/docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range withPassword {
		b, err := os.ReadFile(fmt.Sprintf("%s/deploy/systemd/navlog-%s.service.d/20-kafka-password.conf", root, unit))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "\nEnvironment=NAVLOG_KAFKA_SASL_USER="+users[unit]+"\n") {
			t.Errorf("%s is another user of Kafka than %s:\n%s", unit, users[unit], b)
		}
	}
	if !strings.Contains(string(page), "for unit in "+strings.Join(withPassword, " ")+"; do") {
		t.Error("docs/operations.md does not explain how to mask the drop-in of each unit")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	// The operator's folder comes first, as /etc/systemd/system does.
	dir, etc := units(t), t.TempDir()
	for _, unit := range withPassword {
		name := "navlog-" + unit + ".service"
		if err := errors.Join(os.Mkdir(filepath.Join(etc, name+".d"), 0o700),
			os.Symlink("/dev/null", filepath.Join(etc, name+".d", "20-kafka-password.conf"))); err != nil {
			t.Fatal(err)
		}
		// A fault in the masked file is not seen.
		if err := os.WriteFile(filepath.Join(dir, name+".d", "20-kafka-password.conf"),
			[]byte("[Service]\nNonsense=navlog\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{etc + ":" + dir + ":", dir + ":"} {
			cmd := exec.Command(analyze, "verify", "--man=no", name)
			cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+path, "SYSTEMD_COLORS=0")
			out, _ := cmd.CombinedOutput()
			if masked := !strings.Contains(string(out), "Nonsense"); masked != strings.HasPrefix(path, etc) {
				t.Errorf("%s: with the folders %s its login is masked: %t\n%s", unit, path, masked, out)
			}
		}
	}
}

// The backup has a folder that it may write, and the timer starts it.
func TestBackupUnit(t *testing.T) {
	b, err := os.ReadFile(root + "/deploy/systemd/navlog-backup.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ExecStart=/usr/bin/navlog backup %S/navlog-backup", "StateDirectory=navlog-backup",
		"Type=oneshot"} {
		if !strings.Contains(string(b), "\n"+line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
	timer, err := os.ReadFile(root + "/deploy/systemd/navlog-backup.timer")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(timer), "\nOnCalendar=daily\n") || strings.Contains(string(timer), "Unit=") {
		t.Errorf("the timer is\n%s", timer)
	}
}

// With the example drop-in serve gets the key of the signing secrets, and systemd rates it as before.
func TestRotationByPartners(t *testing.T) {
	b, err := os.ReadFile(root + "/deploy/systemd/navlog-serve-rotation.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"Environment=NAVLOG_HTTP_PARTNER_ROTATION=true", "LoadCredential=secret-key:/etc/navlog/secrets/serve/secret-key",
		"Environment=NAVLOG_SECRET_KEY_FILE=%d/secret-key",
	} {
		if !strings.Contains(string(b), "\n"+line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := units(t)
	if err := errors.Join(
		os.Mkdir(dir+"/navlog-serve.service.d", 0o700),
		os.Rename(dir+"/navlog-serve-rotation.conf", dir+"/navlog-serve.service.d/rotation.conf"),
	); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"verify", "--man=no"}, {"security", "--offline=true", "--threshold=20"}} {
		cmd := exec.Command(analyze, append(arguments, "navlog-serve.service")...)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_COLORS=0")
		if out, err := cmd.CombinedOutput(); err != nil || arguments[0] == "verify" &&
			strings.Contains(string(out), "navlog") {
			t.Errorf("systemd-analyze %v: %v\n%s", arguments, err, out)
		}
	}
}

var (
	credential = regexp.MustCompile(`(?m)^LoadCredential=([a-z-]+):(.+)$`)
	variable   = regexp.MustCompile(`(?m)^Environment=(NAVLOG_[A-Z_]+)=(.*)$`)
)

// Each program gets only the secrets of its own folder, each as the file of a setting, and its own port for metrics. No
// secret is in the environment.
func TestUnitsSecrets(t *testing.T) {
	want := map[string][]string{
		"ingest":   {"NAVLOG_CHAIN_RPC_FILE", "NAVLOG_KAFKA_SASL_PASSWORD_FILE", "NAVLOG_POSTGRES_URL_FILE"},
		"project":  {"NAVLOG_CLICKHOUSE_PASSWORD_FILE", "NAVLOG_KAFKA_SASL_PASSWORD_FILE", "NAVLOG_POSTGRES_URL_FILE"},
		"serve":    {"NAVLOG_CLICKHOUSE_QUERY_PASSWORD_FILE", "NAVLOG_HTTP_STATEMENT_KEY_FILE", "NAVLOG_POSTGRES_URL_FILE"},
		"dispatch": {"NAVLOG_KAFKA_SASL_PASSWORD_FILE", "NAVLOG_POSTGRES_URL_FILE", "NAVLOG_SECRET_KEY_FILE"},
		"migrate":  {"NAVLOG_POSTGRES_URL_FILE"},
		"verify": {"NAVLOG_CHAIN_RPC_FILE", "NAVLOG_CLICKHOUSE_PASSWORD_FILE", "NAVLOG_KAFKA_SASL_PASSWORD_FILE",
			"NAVLOG_POSTGRES_URL_FILE"},
		"backup": {"NAVLOG_KAFKA_SASL_PASSWORD_FILE"},
	}
	ports := map[string]string{}
	for program, settings := range want {
		b, err := os.ReadFile(fmt.Sprintf("%s/deploy/systemd/navlog-%s.service", root, program))
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(withPassword, program) {
			login, err := os.ReadFile(fmt.Sprintf("%s/deploy/systemd/navlog-%s.service.d/20-kafka-password.conf", root, program))
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, login...)
		}
		folder := program
		if program == "backup" {
			folder = "operate"
		}
		text, given := string(b), map[string]bool{}
		for _, c := range credential.FindAllStringSubmatch(text, -1) {
			if c[2] != "/etc/navlog/secrets/"+folder+"/"+c[1] {
				t.Errorf("%s gets %s", program, c[2])
			}
			given[c[1]] = true
		}
		var got []string
		for _, v := range variable.FindAllStringSubmatch(text, -1) {
			if name, is := strings.CutPrefix(v[2], "%d/"); is {
				if got = append(got, v[1]); !given[name] {
					t.Errorf("%s reads %s, and does not get it", program, name)
				}
				delete(given, name)
			}
			if v[1] == "NAVLOG_OPS_LISTEN" {
				if other := ports[v[2]]; other != "" {
					t.Errorf("%s and %s both listen on %s", program, other, v[2])
				}
				ports[v[2]] = program
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, settings) || len(given) > 0 {
			t.Errorf("%s reads %q, want %q; it gets %v beside them", program, got, settings, given)
		}
	}
	if len(ports) != len(programs) {
		t.Errorf("metrics are on %v", ports)
	}
	common, err := os.ReadFile(root + "/deploy/systemd/navlog-.service.d/10-navlog.conf")
	if err != nil {
		t.Fatal(err)
	}
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindSubmatch(common)
	if stop == nil {
		t.Fatal("no unit sets how long a program may take to end")
	}
	if seconds, err := strconv.Atoi(string(stop[1])); err != nil || seconds < 90 {
		t.Errorf("a program is killed after %s s", stop[1])
	}
}
