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

// by matches the labels that an aggregation keeps, or joins on; an aggregation without them sums over everything.
var by = regexp.MustCompile(`\b(?:by|on|sum|min|max|avg|count|group) ?\(([^()]*)[()]`)

// Each alert has a severity and links to its own section of docs/operations.md, and each section there is about an
// existing alert.
func TestAlertsHaveRunbooks(t *testing.T) {
	files, err := filepath.Glob("../../alerts/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("rule files %v: %v", files, err)
	}
	files = append(files, "../../alerts/exporters/machine.yaml")
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, found := strings.Cut(string(page), "\n## Alerts\n")
	if !found {
		t.Fatal("docs/operations.md has no chapter about alerts")
	}
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	paragraphs := map[string]string{}
	for _, part := range strings.Split(chapter, "\n### ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		paragraphs[name] = strings.TrimSpace(text)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rules struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Labels      map[string]string
					Annotations map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(b, &rules); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				if !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) {
					t.Errorf("%s has the severity %q", rule.Alert, rule.Labels["severity"])
				}
				for _, labels := range by.FindAllStringSubmatch(rule.Expr, -1) {
					if strings.Contains(rule.Expr, "navlog_") && !slices.Contains(strings.Split(labels[1], ", "), "chain") {
						t.Errorf("%s sums over all chains: by (%s)", rule.Alert, labels[1])
					}
				}
				// A heading's anchor is in lower case.
				want := "https://github.com/navlog/navlog/blob/main/docs/operations.md#" + strings.ToLower(rule.Alert)
				if got := rule.Annotations["runbook_url"]; got != want {
					t.Errorf("%s leads to %q, want %q", rule.Alert, got, want)
				}
				if len(paragraphs[rule.Alert]) < 40 {
					t.Errorf("docs/operations.md does not explain what to do about %s", rule.Alert)
				}
				delete(paragraphs, rule.Alert)
			}
		}
	}
	for name := range paragraphs {
		t.Errorf("docs/operations.md has a paragraph about the alert %s, which does not exist", name)
	}
}
