package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A workflow is a workflow file of GitHub, as far as it matters here.
type workflow struct {
	On          yaml.Node              `yaml:"on"`
	Permissions yaml.Node              `yaml:"permissions"`
	Jobs        map[string]workflowJob `yaml:"jobs"`
}

type workflowJob struct {
	Uses        string            `yaml:"uses"`
	Needs       oneOrMany         `yaml:"needs"`
	If          string            `yaml:"if"`
	Continue    any               `yaml:"continue-on-error"`
	Permissions map[string]string `yaml:"permissions"`
	Strategy    struct {
		Matrix map[string][]string `yaml:"matrix"`
	} `yaml:"strategy"`
	Steps []struct {
		Uses     string         `yaml:"uses"`
		Run      string         `yaml:"run"`
		If       string         `yaml:"if"`
		With     map[string]any `yaml:"with"`
		Continue any            `yaml:"continue-on-error"`
	} `yaml:"steps"`
}

// oneOrMany is a name or a list of names.
type oneOrMany []string

func (o *oneOrMany) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*o = oneOrMany{node.Value}
		return nil
	}
	return node.Decode((*[]string)(o))
}

func loadWorkflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob("../../../.github/workflows/*.y*ml")
	if err != nil || len(files) < 2 {
		t.Fatalf("workflows %v: %v", files, err)
	}
	workflows := map[string]workflow{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(b, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		workflows[filepath.Base(file)] = w
	}
	return workflows
}

// triggers returns the events that start a workflow.
func (w workflow) triggers() (names []string) {
	switch w.On.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(w.On.Content); i += 2 {
			names = append(names, w.On.Content[i].Value)
		}
	case yaml.SequenceNode:
		for _, n := range w.On.Content {
			names = append(names, n.Value)
		}
	default:
		names = append(names, w.On.Value)
	}
	return names
}

// publishes reports whether a job can publish something: it has more write permissions than a check may have, or uses
// an action that publishes.
func (j workflowJob) publishes() bool {
	for to, right := range j.Permissions {
		if right == "write" && to != "security-events" { // findings of an analysis, for the owners of the repository
			return true
		}
	}
	for _, s := range j.Steps {
		all := s.Uses + " " + s.Run
		for _, v := range s.With {
			if text, is := v.(string); is {
				all += " " + text
			}
		}
		for _, word := range []string{"goreleaser", "build-push-action", "login-action", "docker push", "npm publish",
			"gh release"} {
			if strings.Contains(all, word) {
				return true
			}
		}
	}
	return false
}

// A job that publishes waits for the checks of the same commit, those of ci.yaml, and runs only if they have passed: it
// has no condition that lets it run after a failure.
func TestPublishingWaitsForChecks(t *testing.T) {
	workflows := loadWorkflows(t)
	ci := workflows["ci.yaml"]
	if !slices.Contains(ci.triggers(), "workflow_call") {
		t.Errorf("ci.yaml cannot be called by another workflow: it begins with %v", ci.triggers())
	}
	checked := false
	var runs []string
	for name, j := range ci.Jobs {
		if j.publishes() || j.If != "" || j.Continue != nil {
			t.Errorf("ci.yaml: job %s publishes, may be left out, or may fail", name)
		}
		for _, s := range j.Steps {
			if s.Run == ".ci/run ${{ matrix.steps }}" {
				checked = s.If == "" && s.Continue == nil
				runs = strings.Fields(strings.Join(j.Strategy.Matrix["steps"], " "))
			}
		}
	}
	if !checked {
		t.Error("no step of ci.yaml has to pass .ci/run")
	}
	script, err := os.ReadFile("../../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, found := range regexp.MustCompile(`(?m)^step ([a-z]+) `).FindAllStringSubmatch(string(script), -1) {
		steps = append(steps, found[1])
	}
	slices.Sort(runs)
	slices.Sort(steps)
	if len(steps) < 5 || !slices.Equal(runs, steps) {
		t.Errorf("ci.yaml runs the steps %v, and .ci/run has %v", runs, steps)
	}
	published := 0
	for file, w := range workflows {
		if w.Permissions.Kind == yaml.MappingNode {
			for i := 1; i < len(w.Permissions.Content); i += 2 {
				if w.Permissions.Content[i].Value == "write" {
					t.Errorf("%s: every job may write %s, even those that check", file, w.Permissions.Content[i-1].Value)
				}
			}
		} else {
			t.Errorf("%s does not declare the permissions of its jobs", file)
		}
		for name, j := range w.Jobs {
			if !j.publishes() {
				continue
			}
			published++
			waits := slices.ContainsFunc(j.Needs, func(need string) bool {
				checks := w.Jobs[need]
				return checks.Uses == "./.github/workflows/ci.yaml" && checks.If == "" && checks.Continue == nil
			})
			if !waits {
				t.Errorf("%s: job %s publishes and needs %v: none of these is ci.yaml of the same commit", file, name, j.Needs)
			}
			if j.If != "" {
				t.Errorf("%s: job %s runs if %q, which may be true after the checks have failed", file, name, j.If)
			}
		}
	}
	if published < 2 {
		t.Errorf("%d jobs publish: the binaries and the image were not checked", published)
	}
}
