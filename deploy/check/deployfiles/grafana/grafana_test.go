package grafana

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

var update = flag.Bool("update", false, "rewrite the dashboard")

const file = "../../../dashboards/navlog.json"

// TestFileIsCurrent compares the committed dashboard with panels.go.
func TestFileIsCurrent(t *testing.T) {
	want, err := Text()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t); !bytes.Equal(got, want) {
		t.Errorf("%s is not what panels.go describes: change panels.go and run make dashboard", file)
	}
}

// TestFileMatchesSchema decodes the committed dashboard as strictly as Grafana's SDK can: no field is unknown, missing
// or of another type.
func TestFileMatchesSchema(t *testing.T) {
	got, err := decode(read(t))
	if err != nil {
		t.Fatalf("%s does not match Grafana's schema: %v", file, err)
	}
	title := map[uint32]string{}
	for _, p := range got.Panels {
		if p.Panel == nil {
			continue
		}
		id, name, at := *p.Panel.Id, *p.Panel.Title, p.Panel.GridPos
		if title[id] != "" {
			t.Errorf("the panels %q and %q have the id %d", title[id], name, id)
		}
		if title[id] = name; at.X+at.W > 24 {
			t.Errorf("panel %q ends at column %d of 24: change the width of a panel beside it", name, at.X+at.W)
		}
	}
	if len(title) < 30 {
		t.Errorf("%s has only %d panels", file, len(title))
	}
}

// TestDecodeRejects breaks the dashboard in one place at a time.
func TestDecodeRejects(t *testing.T) {
	for _, try := range []struct{ what, old, broken, want string }{
		{"an unknown field of the dashboard", `"uid": "navlog",`, `"uid": "navlog", "colour": 1,`, "colour"},
		{"an unknown field of a panel", `"title": "Ready",`, `"title": "Ready", "note": "",`, "note"},
		{"an unknown option of a kind", `"graphMode": "none",`, `"graphMode": "none", "graph": 1,`, "graph"},
		{"an unknown field of a query", `"legendFormat": "ingest",`, `"legendFormat": "ingest", "legend": "",`, "legend"},
		{"an unknown field of a style", `"drawStyle": "line",`, `"drawStyle": "line", "width": 2,`, "width"},
		{"an unknown field of values", `"unit": "s"`, `"unit": "s", "units": "s"`, "units"},
		{"text instead of a number", `"lineWidth": 1`, `"lineWidth": "1"`, "lineWidth"},
		{"a number instead of a text", `"unit": "s"`, `"unit": 1`, "unit"},
		{"an option that is missing", `"graphMode": "none",`, ``, "graphMode"},
		{"a panel of an unknown type", `"type": "timeseries"`, `"type": "time series"`, `unknown type "time series"`},
		{"a query of another data source", `"type": "prometheus"`, `"type": "prometeus"`, "not a query of Prometheus"},
	} {
		text := read(t)
		broken := bytes.ReplaceAll(text, []byte(try.old), []byte(try.broken))
		if bytes.Equal(broken, text) {
			t.Fatalf("%s: the dashboard does not contain %s", try.what, try.old)
		}
		if _, err := decode(broken); err == nil || !strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: error %v, want one that contains %q", try.what, err, try.want)
		}
	}
}

// decode decodes a dashboard strictly, even where the SDK accepts everything: options of a type of panel and queries of
// a data source that are not registered, and unknown fields of fieldConfig.
func decode(text []byte) (board, error) {
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(statetimeline.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	// The strict decoding leaves out the panels, so it only looks for mistakes.
	if err := mistakes(new(board).UnmarshalJSONStrict(text)); err != nil {
		return board{}, err
	}
	var d board
	var raw struct {
		Panels []struct{ FieldConfig json.RawMessage }
	}
	if err := errors.Join(json.Unmarshal(text, &d), json.Unmarshal(text, &raw)); err != nil {
		return d, err
	}
	for i, p := range d.Panels {
		if p.Panel == nil {
			continue
		}
		if _, found := cog.ConfigForPanelcfgVariant(p.Panel.Type); !found {
			return d, fmt.Errorf("panel %q has the unknown type %q", *p.Panel.Title, p.Panel.Type)
		}
		if err := mistakes(new(dashboard.FieldConfigSource).UnmarshalJSONStrict(raw.Panels[i].FieldConfig)); err != nil {
			return d, fmt.Errorf("fieldConfig of panel %q: %w", *p.Panel.Title, err)
		}
		for _, target := range p.Panel.Targets {
			if _, ok := target.(*prometheus.Dataquery); !ok {
				return d, fmt.Errorf("panel %q: %T is not a query of Prometheus", *p.Panel.Title, target)
			}
		}
	}
	return d, d.Validate()
}

// mistakes returns nil for an empty list of mistakes, which the SDK returns instead of nil.
func mistakes(err error) error {
	if list, ok := errors.AsType[cog.BuildErrors](err); ok && len(list) == 0 {
		return nil
	}
	return err
}

func read(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
