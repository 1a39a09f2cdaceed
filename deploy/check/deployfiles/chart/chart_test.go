// Package chart checks deploy/helm: Helm's own packages lint and render the chart, kubeconform validates the output
// against the schemas of Kubernetes, and the types of the Prometheus operator parse its resources.
package chart

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/yannh/kubeconform/pkg/validator"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const folder = "../../../helm/navlog"

// Helm logs each link that it follows to deploy/alerts and deploy/dashboards.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// A release is the rendered chart, by kind and name.
type release struct {
	objects map[string]map[string]runtime.Object
	texts   []string // one per document
}

var valueFiles = []string{"minimal", "full", "api-only", "token", "aws"}

// render renders the chart as `helm template navlog` does with a values file.
func render(t *testing.T, values map[string]any) (release, error) {
	t.Helper()
	loaded, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	options := chartutil.ReleaseOptions{Name: "navlog", Namespace: "vaults", Revision: 1, IsInstall: true}
	input, err := chartutil.ToRenderValues(loaded, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Engine{Strict: true}.Render(loaded, input)
	if err != nil {
		return release{}, err
	}
	r := release{objects: map[string]map[string]runtime.Object{}}
	codec := scheme.Codecs.UniversalDeserializer()
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq("\n"+text, "\n---") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			r.texts = append(r.texts, document)
			var head struct {
				APIVersion, Kind string
				Metadata         struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			if head.Kind == "" {
				continue
			}
			var object runtime.Object
			switch head.Kind {
			case monitoring.ServiceMonitorsKind:
				object = &monitoring.ServiceMonitor{}
			case monitoring.PrometheusRuleKind:
				object = &monitoring.PrometheusRule{}
			default:
				if object, _, err = codec.Decode([]byte(document), nil, nil); err != nil {
					t.Fatalf("%s: %v\n%s", name, err, document)
				}
			}
			// Strict: a field that the type does not have is a mistake that a cluster would accept.
			if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
				t.Errorf("%s: %s %s: %v", name, head.Kind, head.Metadata.Name, err)
			}
			if r.objects[head.Kind] == nil {
				r.objects[head.Kind] = map[string]runtime.Object{}
			}
			if r.objects[head.Kind][head.Metadata.Name] != nil {
				t.Errorf("two objects are the %s %s", head.Kind, head.Metadata.Name)
			}
			r.objects[head.Kind][head.Metadata.Name] = object
		}
	}
	return r, nil
}

func valuesOf(t *testing.T, name string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "ci", name+"-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(b, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func mustRender(t *testing.T, name string) release {
	t.Helper()
	r, err := render(t, valuesOf(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// get returns an object of a release.
func get[T runtime.Object](t *testing.T, r release, kind, name string) T {
	t.Helper()
	object, is := r.objects[kind][name].(T)
	if !is {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return object
}

// `helm lint --strict` with each values file.
func TestLint(t *testing.T) {
	for _, name := range valueFiles {
		linter := lint.All(folder, valuesOf(t, name), "vaults", true)
		for _, message := range linter.Messages {
			if message.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// Kubernetes accepts the output for each values file, both in a version at or near the oldest that the chart supports
// and in a recent one.
func TestSchemas(t *testing.T) {
	schemas := os.Getenv("NAVLOG_KUBERNETES_SCHEMAS")
	if schemas == "" {
		t.Skip("`make deployfiles` fetches the schemas, and names them in NAVLOG_KUBERNETES_SCHEMAS")
	}
	for _, version := range []string{"v1.27.0", "v1.37.0"} {
		location := place(t, filepath.Join(schemas, version+"-local-strict")) + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"
		judge, err := validator.New([]string{location}, validator.Opts{Strict: true, KubernetesVersion: "master",
			SkipKinds: map[string]struct{}{monitoring.ServiceMonitorsKind: {}, monitoring.PrometheusRuleKind: {}}})
		if err != nil {
			t.Fatal(err)
		}
		judged := 0
		for _, name := range valueFiles {
			for _, text := range mustRender(t, name).texts {
				for _, result := range judge.Validate(name, io.NopCloser(bytes.NewReader([]byte(text)))) {
					switch result.Status {
					case validator.Valid:
						judged++
					case validator.Skipped, validator.Empty:
					default:
						t.Errorf("%s, Kubernetes %s: %v\n%s", name, version, result.Err, text)
					}
				}
			}
		}
		if judged < 30 {
			t.Errorf("%d objects were compared with the schemas of %s", judged, version)
		}
		// A schema that accepts everything would prove nothing.
		wrong := strings.NewReader("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: many}\n")
		for _, result := range judge.Validate("wrong", io.NopCloser(wrong)) {
			if result.Status != validator.Invalid {
				t.Errorf("Kubernetes %s: a wrong Service is accepted: %v", version, result.Err)
			}
		}
	}
}

// place copies schemas to the paths at which their references to shared definitions, which are URLs, can be resolved
// locally.
func place(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	files, err := filepath.Glob(filepath.Join(from, "*-v[12].json"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d schemas in %s: %v", len(files), from, err)
	}
	for _, file := range append(files, filepath.Join(from, "_definitions.json")) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.ReplaceAll(b, []byte(`"/api/_definitions.json`),
			[]byte(`"file://`+filepath.ToSlash(to)+`/_definitions.json`))
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

var programs = []string{"ingest", "project", "serve", "dispatch"}

// pods returns the pod templates of a release, by component.
func pods(t *testing.T, r release) map[string]core.PodTemplateSpec {
	t.Helper()
	found := map[string]core.PodTemplateSpec{}
	for _, object := range r.objects["Deployment"] {
		d := object.(*apps.Deployment)
		found[d.Labels["app.kubernetes.io/component"]] = d.Spec.Template
	}
	for _, object := range r.objects["Job"] {
		found["migrate"] = object.(*batch.Job).Spec.Template
	}
	for _, object := range r.objects["CronJob"] {
		job := object.(*batch.CronJob)
		found[job.Labels["app.kubernetes.io/component"]] = job.Spec.JobTemplate.Spec.Template
	}
	return found
}

// No pod has privileges, writes to its file system, or mounts a service account token; each has resource limits, and
// time to shut down.
func TestPodsAreSafe(t *testing.T) {
	for _, name := range valueFiles {
		for component, pod := range pods(t, mustRender(t, name)) {
			spec := pod.Spec
			security := spec.SecurityContext
			if security == nil || security.RunAsNonRoot == nil || !*security.RunAsNonRoot || security.SeccompProfile == nil {
				t.Errorf("%s: %s may be root", name, component)
			}
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
				t.Errorf("%s: %s gets the token of an account", name, component)
			}
			if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
				t.Errorf("%s: %s gets NAVLOG_ variables that are not settings", name, component)
			}
			if spec.TerminationGracePeriodSeconds == nil || *spec.TerminationGracePeriodSeconds < 90 {
				t.Errorf("%s: %s is killed while it commits", name, component)
			}
			for _, c := range spec.Containers {
				s := c.SecurityContext
				if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
					s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
					!slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
					t.Errorf("%s: the container of %s has rights", name, component)
				}
				if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().IsZero() ||
					c.Resources.Requests.Cpu().IsZero() {
					t.Errorf("%s: the container of %s has no bounds", name, component)
				}
			}
		}
	}
}

// http.drain and http.shutdownTimeout may be minutes. Then an operator raises the time until the kill.
func TestTimeToStopCanBeRaised(t *testing.T) {
	values := valuesOf(t, "minimal")
	values["terminationGracePeriodSeconds"] = 700
	r, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	for component, pod := range pods(t, r) {
		if grace := pod.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != 700 {
			t.Errorf("%s is not given 700 seconds to end", component)
		}
	}
}

// Each program gets only its own secrets, each value as a file, and only ingest gets the nodes' URLs.
func TestSecretsPerProgram(t *testing.T) {
	want := map[string][]string{
		"migrate": {"NAVLOG_POSTGRES_URL_FILE=postgres-url"},
		"ingest": {"NAVLOG_CHAIN_RPC_FILE=chain-rpc", "NAVLOG_KAFKA_SASL_PASSWORD_FILE=kafka-password",
			"NAVLOG_POSTGRES_URL_FILE=postgres-url"},
		"project": {"NAVLOG_CLICKHOUSE_PASSWORD_FILE=clickhouse-password", "NAVLOG_KAFKA_SASL_PASSWORD_FILE=kafka-password",
			"NAVLOG_POSTGRES_URL_FILE=postgres-url"},
		"serve": {"NAVLOG_CLICKHOUSE_QUERY_PASSWORD_FILE=clickhouse-password",
			"NAVLOG_HTTP_STATEMENT_KEY_FILE=statement-key", "NAVLOG_POSTGRES_URL_FILE=postgres-url"},
		"dispatch": {"NAVLOG_KAFKA_SASL_PASSWORD_FILE=kafka-password", "NAVLOG_POSTGRES_URL_FILE=postgres-url",
			"NAVLOG_SECRET_KEY_FILE=secret-key"},
	}
	r := mustRender(t, "minimal")
	found := pods(t, r)
	for component, files := range want {
		spec := found[component].Spec
		var got, keys []string
		for _, v := range spec.Containers[0].Env {
			if path, is := strings.CutPrefix(v.Value, "/run/secrets/navlog/"); is {
				got = append(got, v.Name+"="+path)
				keys = append(keys, path)
			}
			if v.ValueFrom != nil {
				t.Errorf("%s: %s is a secret in the environment", component, v.Name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, files) {
			t.Errorf("%s reads %q, want %q", component, got, files)
		}
		var names, mounted []string
		for _, volume := range spec.Volumes {
			if volume.Secret != nil {
				names = append(names, volume.Secret.SecretName)
				for _, item := range volume.Secret.Items {
					mounted = append(mounted, item.Path)
				}
			}
		}
		slices.Sort(keys)
		if !slices.Equal(names, []string{"navlog-" + component}) || !slices.Equal(mounted, keys) {
			t.Errorf("%s gets the secrets %v with %v", component, names, mounted)
		}
	}
	if len(r.objects["Secret"]) > 0 {
		t.Error("the chart makes a secret, which would be in the values and in the release")
	}
}

// serve gets the key of the signing secrets only if partners may rotate them, from its own secret and as a file.
func TestRotationByPartners(t *testing.T) {
	for _, on := range []bool{false, true} {
		values := valuesOf(t, "minimal")
		if config, is := values["config"].(map[string]any); is {
			config["http"] = map[string]any{"partnerRotation": on}
		} else {
			values["config"] = map[string]any{"http": map[string]any{"partnerRotation": on}}
		}
		r, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		for component, pod := range pods(t, r) {
			want := component == "dispatch" || component == "serve" && on
			reads := slices.ContainsFunc(pod.Spec.Containers[0].Env, func(v core.EnvVar) bool {
				return v.Name == "NAVLOG_SECRET_KEY_FILE" && v.Value == "/run/secrets/navlog/secret-key"
			})
			mounts := slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool {
				return v.Secret != nil && v.Secret.SecretName == "navlog-"+component &&
					slices.ContainsFunc(v.Secret.Items, func(i core.KeyToPath) bool { return i.Key == "secret-key" })
			})
			if reads != want || mounts != want {
				t.Errorf("rotation %t: %s reads the secret key: %t, gets it: %t", on, component, reads, mounts)
			}
		}
	}
}

// A secret in the configuration, which all programs read, is rejected, and the error names the right place for it.
func TestSecretsInConfigurationAreRejected(t *testing.T) {
	for _, config := range []map[string]any{
		{"chain": map[string]any{"rpc": []any{"https://node.example"}}},
		{"postgres": map[string]any{"url": "postgres://a:b@c/d"}},
		{"postgres": map[string]any{"password": "a"}},
		{"clickhouse": map[string]any{"password": "a"}},
		{"clickhouse": map[string]any{"queryPassword": "a"}},
		{"http": map[string]any{"statementKey": "a"}},
		{"http": map[string]any{"proofRpc": "https://node.example/key"}},
		{"kafka": map[string]any{"sasl": map[string]any{"password": "a"}}},
	} {
		if _, err := render(t, map[string]any{"config": config}); err == nil || !strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", config, err)
		}
	}
	// A value of the chart determines whether a login has a password.
	for _, setting := range []string{"mechanism", "user"} {
		config := map[string]any{"kafka": map[string]any{"sasl": map[string]any{setting: "a"}}}
		if _, err := render(t, map[string]any{"config": config}); err == nil ||
			!strings.Contains(err.Error(), "set kafka.mechanism and kafka.users") {
			t.Errorf("%v: %v", config, err)
		}
	}
}

// The containers have the ports on which the programs listen: services, probes and policies name them.
func TestPortsFollowTheConfiguration(t *testing.T) {
	values := valuesOf(t, "minimal")
	values["config"] = map[string]any{"http": map[string]any{"listen": "0.0.0.0:9000"},
		"ops": map[string]any{"listen": "[::]:9100"}}
	r, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	found := pods(t, r)
	for _, program := range programs {
		want := map[string]int32{"ops": 9100}
		if program == "serve" {
			want["http"] = 9000
		}
		got := map[string]int32{}
		for _, p := range found[program].Spec.Containers[0].Ports {
			got[p.Name] = p.ContainerPort
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s listens on %v, and its container has %v", program, want, got)
		}
		// The Service is headless, so its clients connect to the container's port.
		if s := get[*core.Service](t, r, "Service", "navlog-"+program+"-ops"); s.Spec.Ports[0].Port != 9100 {
			t.Errorf("%s listens on 9100, and its Service has %v", program, s.Spec.Ports)
		}
	}
	for _, listen := range []string{"", "10.0.0.1", "0.0.0.0:", "0.0.0.0:0", "0.0.0.0:999999"} {
		values["config"] = map[string]any{"ops": map[string]any{"listen": listen}}
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), "config.ops.listen must name a port") {
			t.Errorf("with probes at %q: %v", listen, err)
		}
	}
	values = valuesOf(t, "minimal")
	values["serve"] = map[string]any{"env": map[string]any{"NAVLOG_HTTP_LISTEN": "0.0.0.0:9000"}}
	if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), "set config.http.listen") {
		t.Errorf("with a port in the environment: %v", err)
	}
}

// A rollout of ingest or project completes: the new pod is ready as a standby while the old one is active, so they do
// not wait for each other, and one is always running. The probes use the endpoints that distinguish the two states.
func TestRolloutsComplete(t *testing.T) {
	r := mustRender(t, "minimal")
	for _, program := range programs {
		d := get[*apps.Deployment](t, r, "Deployment", "navlog-"+program)
		rolling := d.Spec.Strategy.RollingUpdate
		if d.Spec.Strategy.Type != apps.RollingUpdateDeploymentStrategyType || rolling == nil ||
			*rolling.MaxUnavailable != intstr.FromInt32(0) || *rolling.MaxSurge != intstr.FromInt32(1) {
			t.Errorf("%s is rolled out by %v", program, d.Spec.Strategy)
		}
		if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
			t.Errorf("%s has one pod: no other takes over when its machine fails", program)
		}
		c := d.Spec.Template.Spec.Containers[0]
		if !slices.Equal(c.Args, []string{program, "--log-json"}) {
			t.Errorf("%s runs %v", program, c.Args)
		}
		for kind, probe := range map[string]*core.Probe{"/healthz": c.LivenessProbe, "/healthz ": c.StartupProbe,
			"/readyz": c.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != strings.TrimSpace(kind) {
				t.Fatalf("%s: probe %s is %v", program, kind, probe)
			}
			if !slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal }) {
				t.Errorf("%s: probe %s uses port %s, which the container does not have", program, kind, probe.HTTPGet.Port.StrVal)
			}
		}
		if starts := c.StartupProbe.PeriodSeconds * c.StartupProbe.FailureThreshold; starts < 120 {
			t.Errorf("%s is killed if it does not start within %d s", program, starts)
		}
		// When a generation of another schema is made live, old pods of serve respond for 30 s: they leave well before,
		// but later than new ones come.
		if probe := c.ReadinessProbe; program == "serve" &&
			(probe.PeriodSeconds != 1 || probe.FailureThreshold < 5 || probe.FailureThreshold > 15) {
			t.Errorf("pods of serve come within %d s and leave after %d failures", probe.PeriodSeconds, probe.FailureThreshold)
		}
		// Kubernetes stops a pod and takes it out of the Service at the same time.
		if config := get[*core.ConfigMap](t, r, "ConfigMap", "navlog").Data["navlog.yaml"]; !strings.Contains(config,
			"\n  drain: 5s\n") {
			t.Errorf("serve rejects requests that Kubernetes still sends to a pod that ends:\n%s", config)
		}
		// A change of the configuration restarts the pods.
		if d.Spec.Template.Annotations["checksum/config"] == "" {
			t.Errorf("%s continues with an old configuration", program)
		}
		budget := get[*policy.PodDisruptionBudget](t, r, "PodDisruptionBudget", "navlog-"+program)
		if budget.Spec.MaxUnavailable == nil || *budget.Spec.MaxUnavailable != intstr.FromInt32(1) ||
			budget.Spec.MinAvailable != nil {
			t.Errorf("the budget of %s is %v: with one pod it must not keep a machine from being drained", program, budget.Spec)
		}
	}
	// The job finishes before the programs start: a program that started first would reject old tables.
	job := get[*batch.Job](t, r, "Job", "navlog-migrate")
	for object, annotations := range map[string]map[string]string{
		"job":           job.Annotations,
		"configuration": get[*core.ConfigMap](t, r, "ConfigMap", "navlog-migrate").Annotations,
		"policy":        get[*networking.NetworkPolicy](t, r, "NetworkPolicy", "navlog-migrate").Annotations,
	} {
		if annotations["helm.sh/hook"] != "pre-install,pre-upgrade" {
			t.Errorf("the %s of migrate is made with the hook %q", object, annotations["helm.sh/hook"])
		}
	}
}

// A Deployment that is autoscaled sets no replica count, because an upgrade would reset it.
func TestAutoscaling(t *testing.T) {
	r := mustRender(t, "full")
	for _, program := range []string{"serve", "dispatch"} {
		scaler := get[*autoscaling.HorizontalPodAutoscaler](t, r, "HorizontalPodAutoscaler", "navlog-"+program)
		if scaler.Spec.ScaleTargetRef.Name != "navlog-"+program || *scaler.Spec.MinReplicas < 2 {
			t.Errorf("the scaler of %s is %v", program, scaler.Spec)
		}
		if d := get[*apps.Deployment](t, r, "Deployment", "navlog-"+program); d.Spec.Replicas != nil {
			t.Errorf("%s has %d pods instead of the number of its scaler", program, *d.Spec.Replicas)
		}
	}
	if len(r.objects["HorizontalPodAutoscaler"]) != 2 {
		t.Errorf("%d programs are scaled: ingest and project have one writer", len(r.objects["HorizontalPodAutoscaler"]))
	}
}

// Each program can connect to its own engines only, and only ingest and dispatch can connect to the outside.
func TestNetworkPolicies(t *testing.T) {
	want := map[string][]string{
		"ingest":   {"443", "53", "53", "5432", "9092"},
		"project":  {"53", "53", "5432", "9000", "9092"},
		"serve":    {"53", "53", "5432", "9000"},
		"dispatch": {"443", "53", "53", "5432", "9092"},
		"migrate":  {"53", "53", "5432"},
	}
	r := mustRender(t, "minimal")
	found := pods(t, r)
	for component, ports := range want {
		p := get[*networking.NetworkPolicy](t, r, "NetworkPolicy", "navlog-"+component)
		if got := egress(t, r, component); !slices.Equal(got, ports) {
			t.Errorf("%s may connect to the ports %v, want %v", component, got, ports)
		}
		if len(p.Spec.PolicyTypes) != 2 {
			t.Errorf("%s: the policy is about %v", component, p.Spec.PolicyTypes)
		}
		for key, value := range p.Spec.PodSelector.MatchLabels {
			if found[component].Labels[key] != value {
				t.Errorf("the policy of %s is about no pod: %s=%s", component, key, value)
			}
		}
		open := 0
		for _, rule := range p.Spec.Ingress {
			if len(rule.From) == 0 {
				open++
				if component != "serve" || len(rule.Ports) != 1 || rule.Ports[0].Port.StrVal != "http" {
					t.Errorf("any pod may connect to %s", component)
				}
			}
		}
		if open > 0 != (component == "serve") {
			t.Errorf("%s is open to any pod by %d rules", component, open)
		}
	}
	// Webhooks cannot be sent to internal addresses.
	for _, rule := range get[*networking.NetworkPolicy](t, r, "NetworkPolicy", "navlog-dispatch").Spec.Egress {
		for _, peer := range rule.To {
			if peer.IPBlock != nil && peer.IPBlock.CIDR == "0.0.0.0/0" &&
				!slices.Contains(peer.IPBlock.Except, "169.254.0.0/16") {
				t.Errorf("webhooks reach %v", peer.IPBlock)
			}
		}
	}
	if len(mustRender(t, "api-only").objects["NetworkPolicy"]) > 0 {
		t.Error("policies cannot be left out")
	}
}

// egress returns the ports that a component may connect to, in order.
func egress(t *testing.T, r release, component string) (ports []string) {
	t.Helper()
	for _, rule := range get[*networking.NetworkPolicy](t, r, "NetworkPolicy", "navlog-"+component).Spec.Egress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.String())
		}
	}
	slices.Sort(ports)
	return ports
}

// serve may connect to nodes only if it has one for proofs, however it is named.
func TestServeReachesTheNodeForProofs(t *testing.T) {
	key := "NAVLOG_HTTP_PROOF_RPC"
	for _, c := range []struct {
		name   string
		values map[string]any
		proves bool
	}{
		{"none", map[string]any{}, false},
		{"an empty key", map[string]any{"serve": map[string]any{"secretFiles": map[string]any{key: ""}}}, false},
		{"a secret", map[string]any{"serve": map[string]any{"secretFiles": map[string]any{key: "proof-rpc"}}}, true},
		{"a variable", map[string]any{"serve": map[string]any{"env": map[string]any{key: "https://node.example"}}}, true},
		{"a file", map[string]any{"serve": map[string]any{"env": map[string]any{key + "_FILE": "/run/proof/rpc"}}}, true},
	} {
		c.values["image"] = valuesOf(t, "minimal")["image"]
		r, err := render(t, c.values)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := slices.Contains(egress(t, r, "serve"), "443"); got != c.proves {
			t.Errorf("%s: serve may connect to nodes: %t", c.name, got)
		}
	}
	if got := egress(t, mustRender(t, "full"), "serve"); !slices.Contains(got, "8545") {
		t.Errorf("serve may connect to %v, and not to the ports of the nodes", got)
	}
}

// A program may connect to the server of its tokens if a value allows it, and the others may not.
func TestMoreEgress(t *testing.T) {
	r := mustRender(t, "aws")
	for component, want := range map[string]bool{"ingest": true, "project": true, "serve": false, "migrate": false} {
		if got := slices.Contains(egress(t, r, component), "443"); got != want {
			t.Errorf("%s may connect to port 443: %t", component, got)
		}
	}
	if got := egress(t, r, "ingest"); !slices.Equal(got, []string{"443", "443", "53", "53", "5432", "9098"}) {
		t.Errorf("ingest may connect to %v: its nodes and the server of its tokens are two rules", got)
	}
}

// Without a password (a token, a role, or no login) no program gets a user or a password of Kafka, which navlog
// rejects, and its secret needs no key for it.
func TestKafkaLogins(t *testing.T) {
	for mechanism, hasPassword := range map[string]bool{
		"": false, "PLAIN": true, "SCRAM-SHA-256": true, "SCRAM-SHA-512": true, "OAUTHBEARER": false, "AWS_MSK_IAM": false,
	} {
		values := valuesOf(t, "token") // has every component
		values["kafka"] = map[string]any{"mechanism": mechanism}
		r, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		for component, pod := range pods(t, r) {
			uses := component != "serve" && component != "migrate"
			variables := map[string]string{}
			for _, v := range pod.Spec.Containers[0].Env {
				variables[v.Name] = v.Value
			}
			_, user := variables["NAVLOG_KAFKA_SASL_USER"]
			_, password := variables["NAVLOG_KAFKA_SASL_PASSWORD_FILE"]
			key := slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool {
				return v.Secret != nil &&
					slices.ContainsFunc(v.Secret.Items, func(i core.KeyToPath) bool { return i.Key == "kafka-password" })
			})
			if want := uses && hasPassword; user != want || password != want || key != want {
				t.Errorf("%q: %s has a user: %t, a password: %t, its key: %t", mechanism, component, user, password, key)
			}
			if uses && variables["NAVLOG_KAFKA_SASL_MECHANISM"] != mechanism {
				t.Errorf("%q: %s logs in by %q", mechanism, component, variables["NAVLOG_KAFKA_SASL_MECHANISM"])
			}
		}
	}
}

// No volume has a secret's every key: each lists its keys, or is one that the values name.
func TestNoWholeSecrets(t *testing.T) {
	for _, name := range valueFiles {
		for component, pod := range pods(t, mustRender(t, name)) {
			for _, volume := range pod.Spec.Volumes {
				if volume.Name == "secrets" && len(volume.Secret.Items) == 0 {
					t.Errorf("%s: %s gets all of %s", name, component, volume.Secret.SecretName)
				}
			}
			for _, c := range pod.Spec.Containers {
				for _, mount := range c.VolumeMounts {
					if !slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == mount.Name }) {
						t.Errorf("%s: %s mounts %s, which is no volume", name, component, mount.Name)
					}
				}
			}
		}
	}
}

// Volumes of the values are mounted in the component that they are for.
func TestExtraVolumes(t *testing.T) {
	found := pods(t, mustRender(t, "token"))
	for component, want := range map[string][]string{
		"ingest": {"/run/authority", "/run/client", "/run/kafka"}, "project": {"/run/authority", "/run/client", "/run/kafka"},
		"dispatch": {"/run/authority", "/run/client", "/run/kafka"}, "migrate": {"/run/authority"}, "serve": nil,
		"operate": {"/run/authority", "/run/client", "/run/kafka"}, "verify": {"/run/authority", "/run/client", "/run/kafka"},
		"backup": {"/run/authority", "/run/client", "/run/kafka"}, "restore": {"/run/authority", "/run/client", "/run/kafka"},
	} {
		var got []string
		for _, mount := range found[component].Spec.Containers[0].VolumeMounts {
			if strings.HasPrefix(mount.MountPath, "/run/") && mount.MountPath != "/run/secrets/navlog" {
				got = append(got, mount.MountPath)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s mounts %v, want %v", component, got, want)
		}
	}
	beside := pods(t, mustRender(t, "aws"))["project"].Spec.Containers
	if len(beside) != 2 || beside[1].Name != "credentials" {
		t.Errorf("beside project there are %d containers", len(beside)-1)
	}
}

// The examples of docs/operations.md are values: each gives ingest an account, and a token file that is mounted or a
// way to the server of its tokens.
func TestExamplesOfTheDocumentation(t *testing.T) {
	b, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n### Certificates, tokens and roles in Kubernetes\n")
	section, _, _ = strings.Cut(section, "\n### ")
	examples := strings.Split(section, "```yaml\n")[1:]
	if len(examples) != 2 {
		t.Fatalf("there are %d examples, and this test expects two", len(examples))
	}
	for _, example := range examples {
		text, _, _ := strings.Cut(example, "```")
		values := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		values["image"] = valuesOf(t, "minimal")["image"]
		r, err := render(t, values)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		spec := pods(t, r)["ingest"].Spec
		mounted := slices.ContainsFunc(spec.Containers[0].VolumeMounts,
			func(m core.VolumeMount) bool { return m.MountPath == "/run/kafka" })
		server := len(slices.DeleteFunc(egress(t, r, "ingest"), func(port string) bool { return port != "443" })) == 2
		if spec.ServiceAccountName != "navlog-ingest" || mounted == server {
			t.Errorf("ingest is %q, has a token: %t, or may ask for one: %t\n%s", spec.ServiceAccountName, mounted, server, text)
		}
	}
}

// A component has the account that its values name; the chart makes it only if they request it, and before the job that
// uses it.
func TestServiceAccounts(t *testing.T) {
	r := mustRender(t, "aws")
	for component, want := range map[string]string{
		"ingest": "navlog-ingest", "project": "vaults-project", "dispatch": "vaults-dispatch", "serve": "",
		"migrate": "navlog-migrate",
	} {
		if got := pods(t, r)[component].Spec.ServiceAccountName; got != want {
			t.Errorf("%s is the account %q, want %q", component, got, want)
		}
	}
	var made []string
	for name, object := range r.objects["ServiceAccount"] {
		made = append(made, name)
		if account := object.(*core.ServiceAccount); account.AutomountServiceAccountToken == nil ||
			*account.AutomountServiceAccountToken {
			t.Errorf("pods of %s get its token", name)
		}
	}
	slices.Sort(made)
	if !slices.Equal(made, []string{"navlog-ingest", "navlog-migrate", "vaults-dispatch"}) {
		t.Errorf("the chart makes the accounts %v", made)
	}
	if role := get[*core.ServiceAccount](t, r, "ServiceAccount",
		"navlog-ingest").Annotations["eks.amazonaws.com/role-arn"]; !strings.HasSuffix(role, ":role/navlog-ingest") {
		t.Errorf("the account of ingest has the role %q", role)
	}
	if hook := get[*core.ServiceAccount](t, r, "ServiceAccount",
		"navlog-migrate").Annotations["helm.sh/hook"]; hook != "pre-install,pre-upgrade" {
		t.Errorf("the account of migrate is made with the hook %q", hook)
	}
	if len(mustRender(t, "minimal").objects["ServiceAccount"]) > 0 {
		t.Error("the chart creates accounts although no value requests one")
	}
}

// operators are the pods for commands, each with the secret, the settings and the ports that its commands need, as
// compose.yaml has them.
var operators = map[string]struct {
	secret, user string
	files, ports []string
}{
	"operate": {"navlog-operate", "navlog_operator",
		[]string{"NAVLOG_KAFKA_SASL_PASSWORD", "NAVLOG_POSTGRES_URL", "NAVLOG_SECRET_KEY"},
		[]string{"53", "53", "5432", "9092"}},
	"verify": {"navlog-verify", "navlog_project",
		[]string{"NAVLOG_CHAIN_RPC", "NAVLOG_CLICKHOUSE_PASSWORD", "NAVLOG_KAFKA_SASL_PASSWORD", "NAVLOG_POSTGRES_URL"},
		[]string{"443", "53", "53", "5432", "9000", "9092"}},
	"backup": {"navlog-operate", "navlog_operator", []string{"NAVLOG_KAFKA_SASL_PASSWORD"}, []string{"53", "53", "9092"}},
	"restore": {"navlog-ingest", "navlog_ingest", []string{"NAVLOG_KAFKA_SASL_PASSWORD", "NAVLOG_POSTGRES_URL"},
		[]string{"53", "53", "5432", "9092"}},
}

func TestOperatorsPods(t *testing.T) {
	values := valuesOf(t, "minimal")
	for component := range operators {
		values[component] = map[string]any{"enabled": true}
	}
	if _, err := render(t, values); err == nil ||
		!strings.Contains(err.Error(), "backup.volume is where the backup is kept") {
		t.Errorf("a backup without a volume: %v", err)
	}
	values["backup"].(map[string]any)["volume"] = map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "kept"}}
	r, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	found, off := pods(t, r), pods(t, mustRender(t, "minimal"))
	for component, want := range operators {
		if _, has := off[component]; has {
			t.Errorf("%s exists although it is not enabled", component)
		}
		spec := found[component].Spec
		var files []string
		user := ""
		for _, v := range spec.Containers[0].Env {
			if strings.HasPrefix(v.Value, "/run/secrets/navlog/") {
				files = append(files, strings.TrimSuffix(v.Name, "_FILE"))
			}
			if v.Name == "NAVLOG_KAFKA_SASL_USER" {
				user = v.Value
			}
		}
		slices.Sort(files)
		if !slices.Equal(files, want.files) || user != want.user {
			t.Errorf("%s reads %v as %s, want %v as %s", component, files, user, want.files, want.user)
		}
		kept := false
		for _, volume := range spec.Volumes {
			if volume.Secret != nil && volume.Secret.SecretName != want.secret {
				t.Errorf("%s gets the secret %s", component, volume.Secret.SecretName)
			}
			kept = kept || volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == "kept"
		}
		if kept != (component == "backup" || component == "restore") {
			t.Errorf("%s has the volume of the backup: %t", component, kept)
		}
		if got := egress(t, r, component); !slices.Equal(got, want.ports) {
			t.Errorf("%s may connect to %v, want %v", component, got, want.ports)
		}
		p := get[*networking.NetworkPolicy](t, r, "NetworkPolicy", "navlog-"+component)
		if len(p.Spec.Ingress) > 0 || len(p.Spec.PolicyTypes) != 2 ||
			p.Spec.PodSelector.MatchLabels["app.kubernetes.io/component"] != component ||
			found[component].Labels["app.kubernetes.io/component"] != component {
			t.Errorf("others may connect to %s, or its policy is about no pod: %v", component, p.Spec)
		}
	}
	// The pod for `kubectl exec` waits; the others run a command, and only at a schedule by themselves.
	if got := found["operate"].Spec.Containers[0].Args; !slices.Equal(got,
		[]string{"status", "--watch", "--every", "1h"}) {
		t.Errorf("operate runs %v", got)
	}
	scheduled := mustRender(t, "token")
	for component, want := range map[string]struct {
		args     []string
		schedule string
	}{
		"verify":  {[]string{"verify", "--receipts"}, "0 3 * * 0"},
		"backup":  {[]string{"backup", "/backup/navlog"}, "30 * * * *"},
		"restore": {[]string{"restore", "/backup/navlog"}, ""},
	} {
		on, off := get[*batch.CronJob](t, scheduled, "CronJob", "navlog-"+component),
			get[*batch.CronJob](t, r, "CronJob", "navlog-"+component)
		if !*off.Spec.Suspend || *on.Spec.Suspend != (want.schedule == "") || want.schedule != "" &&
			on.Spec.Schedule != want.schedule {
			t.Errorf("%s runs at %q: %t", component, on.Spec.Schedule, !*on.Spec.Suspend)
		}
		if got := pods(t, scheduled)[component].Spec.Containers[0].Args; !slices.Equal(got, want.args) {
			t.Errorf("%s runs %v", component, got)
		}
		if *off.Spec.JobTemplate.Spec.BackoffLimit != 0 || off.Spec.ConcurrencyPolicy != batch.ForbidConcurrent {
			t.Errorf("%s is repeated, or runs twice at once", component)
		}
	}
	// A CronJob's name has at most 52 characters.
	values["fullnameOverride"] = strings.Repeat("n", 60)
	if r, err = render(t, values); err != nil {
		t.Fatal(err)
	}
	for name := range r.objects["CronJob"] {
		if len(name) > 52 {
			t.Errorf("Kubernetes rejects the CronJob %s", name)
		}
	}
}

// The image has no default: a registry's user could own a short name such as navlog.
func TestImageIsNamed(t *testing.T) {
	values := valuesOf(t, "minimal")
	delete(values, "image")
	if _, err := render(t, values); err == nil ||
		!strings.Contains(err.Error(), "image.repository is the name of the image") {
		t.Errorf("without an image: %v", err)
	}
}

// Without image.tag the chart runs the image of its own version, tagged as the workflow of a release does: as in git.
func TestImageOfTheRelease(t *testing.T) {
	loaded, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := "v" + loaded.Metadata.Version; loaded.Metadata.AppVersion != want {
		t.Errorf("appVersion is %s, and the tag of the release is %s", loaded.Metadata.AppVersion, want)
	}
	for component, pod := range pods(t, mustRender(t, "token")) {
		if got, want := pod.Spec.Containers[0].Image, "registry.example/navlog:v"+loaded.Metadata.Version; got != want {
			t.Errorf("%s runs %s, want %s", component, got, want)
		}
	}
	b, err := os.ReadFile("../../../../.github/workflows/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "tags: ['v*']") || !strings.Contains(string(b), "}}:${{ github.ref_name }}\n") {
		t.Error("the workflow of a release tags the image in another way: change appVersion of the chart, and this test")
	}
}

// With a collector, each program gets its address and may connect to it; without one, no program has an OpenTelemetry
// variable.
func TestTraces(t *testing.T) {
	for values, traced := range map[string]bool{"minimal": false, "full": true} {
		r := mustRender(t, values)
		for component, pod := range pods(t, r) {
			variables := map[string]core.EnvVar{}
			for _, v := range pod.Spec.Containers[0].Env {
				if strings.HasPrefix(v.Name, "OTEL_") {
					variables[v.Name] = v
				}
			}
			reached := false
			for _, rule := range get[*networking.NetworkPolicy](t, r, "NetworkPolicy", "navlog-"+component).Spec.Egress {
				for _, port := range rule.Ports {
					reached = reached || port.Port.String() == "4318"
				}
			}
			wanted := traced && component != "migrate"
			if reached != wanted || len(variables) > 0 != wanted {
				t.Errorf("%s, %s: it may connect to a collector: %t; %v", values, component, reached, variables)
			}
			if !wanted {
				continue
			}
			if got := variables["OTEL_TRACES_SAMPLER_ARG"].Value; got != "0.1" {
				t.Errorf("%s samples %q", component, got)
			}
			headers := variables["OTEL_EXPORTER_OTLP_HEADERS"]
			if headers.ValueFrom == nil || headers.ValueFrom.SecretKeyRef.Name != "navlog-otel" {
				t.Errorf("the token of %s is not a secret: %v", component, headers)
			}
		}
	}
}

// The operator's rules are exactly those of deploy/alerts, and its monitor finds each program.
func TestMonitoring(t *testing.T) {
	r := mustRender(t, "full")
	var want []monitoring.RuleGroup
	files, err := filepath.Glob("../../../alerts/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rules monitoring.PrometheusRuleSpec
		if err := yaml.UnmarshalStrict(b, &rules); err != nil {
			t.Fatal(err)
		}
		want = append(want, rules.Groups...)
	}
	got := get[*monitoring.PrometheusRule](t, r, "PrometheusRule", "navlog").Spec.Groups
	if a, b := asYAML(t, got), asYAML(t, want); a != b || len(want) < 2 {
		t.Errorf("the rules are\n%s\nand deploy/alerts has\n%s", a, b)
	}
	monitor := get[*monitoring.ServiceMonitor](t, r, "ServiceMonitor", "navlog")
	found := 0
	for _, object := range r.objects["Service"] {
		service := object.(*core.Service)
		chosen := true
		for key, value := range monitor.Spec.Selector.MatchLabels {
			chosen = chosen && service.Labels[key] == value
		}
		if chosen {
			found++
			if service.Spec.Ports[0].Name != monitor.Spec.Endpoints[0].Port {
				t.Errorf("the monitor scrapes port %s of %s", monitor.Spec.Endpoints[0].Port, service.Name)
			}
		}
	}
	if found != len(programs) {
		t.Errorf("the monitor finds %d programs", found)
	}
	dashboard, err := os.ReadFile("../../../dashboards/navlog.json")
	if err != nil {
		t.Fatal(err)
	}
	if text := get[*core.ConfigMap](t, r, "ConfigMap",
		"navlog-dashboard").Data["navlog.json"]; strings.TrimSpace(text) != strings.TrimSpace(string(dashboard)) {
		t.Error("the dashboard is not that of deploy/dashboards")
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A Service selects the pods of its program and uses a port that they have.
func TestServicesFindPods(t *testing.T) {
	for _, name := range valueFiles {
		r := mustRender(t, name)
		found := pods(t, r)
		for _, object := range r.objects["Service"] {
			service := object.(*core.Service)
			pod := found[service.Labels["app.kubernetes.io/component"]]
			for key, value := range service.Spec.Selector {
				if pod.Labels[key] != value {
					t.Errorf("%s: service %s finds no pod: %s=%s", name, service.Name, key, value)
				}
			}
			for _, port := range service.Spec.Ports {
				if !slices.ContainsFunc(pod.Spec.Containers[0].Ports,
					func(p core.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }) {
					t.Errorf("%s: service %s leads to port %s, which the pod does not have", name, service.Name,
						port.TargetPort.StrVal)
				}
			}
		}
	}
	if n := len(mustRender(t, "api-only").objects["Deployment"]); n != 1 {
		t.Errorf("with only serve there are %d deployments", n)
	}
}

// Each configuration key that the chart writes is known to navlog, which rejects unknown ones.
func TestConfigurationHasKnownKeys(t *testing.T) {
	b, err := os.ReadFile("../../../navlog.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var example map[string]any
	if err := yaml.Unmarshal(b, &example); err != nil {
		t.Fatal(err)
	}
	for _, name := range valueFiles {
		var config map[string]any
		text := get[*core.ConfigMap](t, mustRender(t, name), "ConfigMap", "navlog").Data["navlog.yaml"]
		if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, fault := range unknown("", config, example) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// A mapping is mounted at the path where a vault names it, in the programs and in the job; changing it restarts the
// pods.
func TestMappings(t *testing.T) {
	r := mustRender(t, "full")
	for _, name := range []string{"navlog", "navlog-migrate"} {
		if text := get[*core.ConfigMap](t, r, "ConfigMap", name).Data["own.yaml"]; !strings.HasPrefix(text, "name: own\n") {
			t.Errorf("ConfigMap %s has the mapping %q", name, text)
		}
	}
	values := valuesOf(t, "full")
	values["mappings"] = map[string]any{"own.yaml": "name: other\n"}
	other, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		if a, b := pods(t, r)[program].Annotations,
			pods(t, other)[program].Annotations; a["checksum/config"] == b["checksum/config"] {
			t.Errorf("%s continues with an old mapping", program)
		}
	}
}

func unknown(path string, config, example map[string]any) (faults []string) {
	for key, value := range config {
		known, has := example[key]
		if !has {
			faults = append(faults, fmt.Sprintf("%s%s is not a setting", path, key))
			continue
		}
		below, is := value.(map[string]any)
		if knownBelow, too := known.(map[string]any); is && too {
			faults = append(faults, unknown(path+key+".", below, knownBelow)...)
		}
	}
	return faults
}
