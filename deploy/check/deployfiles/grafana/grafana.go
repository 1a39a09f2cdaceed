// Package grafana builds deploy/dashboards/navlog.json from the panels of panels.go, with Grafana's own SDK. It is here
// and not in deploy/dashboards because the chart and Compose take that whole folder, and because navlog itself must not
// depend on the SDK.
package grafana

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// row is a heading with its panels, from left to right. Panels that do not fit beside each other continue below: the
// grid is 24 columns wide.
type row struct {
	id     uint32
	title  string
	panels []panel
}

// panel is a diagram. An id is never used again for another panel, because links to a panel contain it.
type panel struct {
	id            uint32
	title         string
	description   string // what to do about it
	alerts        string // the alerts that belong to it, separated by ", "
	queries       []query
	as            kind
	width, height uint32     // 8 and 8 unless set
	unit          string     // one of Grafana's ids, "none" unless set
	decimals      *float64   // Grafana chooses them unless set
	max           *float64   // where the axis ends
	negative      bool       // values may be below 0; for all others the axis starts at 0
	limit         float64    // a dashed red line
	texts         []text     // what a status shows instead of values
	colors        []coloring // for series whose legends match
	dashed        string     // a regular expression: legends of series that are limits of others
}

// query is an expression of PromQL with the legend of its series.
type query struct{ legend, expr string }

// text is what a panel shows instead of a value.
type text struct{ value, text, color string }

// coloring sets the colour of each series whose legend matches a regular expression.
type coloring struct{ legend, color string }

type kind int

const (
	lines    kind = iota
	stacked       // areas on top of each other
	status        // the newest values, as texts on a coloured background; texts has at least those for 0 and 1
	timeline      // states over time, red unless colors has another colour
)

// chosen is the data source that the reader chooses above the panels.
var chosen = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// Text returns the content of navlog.json.
func Text() ([]byte, error) {
	d, err := build()
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, err
	}
	// The SDK's types escape these characters for HTML, which makes expressions hard to read.
	for escaped, char := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
		b = bytes.ReplaceAll(b, []byte(escaped), []byte(char))
	}
	return append(b, '\n'), nil
}

// board is a dashboard in the schema that every version of Grafana imports.
type board = dashboard.Dashboard //nolint:staticcheck // its successor, dashboardv2, is not for older versions

var newBoard = dashboard.NewDashboardBuilder //nolint:staticcheck // for the same reason

func build() (board, error) {
	const chains = "label_values(navlog_build_info, chain)"
	b := newBoard("navlog").Uid("navlog").Tags([]string{"navlog"}).Version(1).
		Description("One navlog: from the chain to responses and webhooks, in the order in which a log passes through it.").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).Refresh("30s").Time("now-6h", "now").
		Timezone(""). // that of the reader's settings
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus").
			Hide(dashboard.VariableHideDontHide)).
		WithVariable(dashboard.NewQueryVariableBuilder("chain").Label("Chain").Datasource(chosen).
			Query(dashboard.StringOrMap{Map: map[string]any{"query": chains, "refId": "chain"}}).Definition(chains).
			Hide(dashboard.VariableHideDontHide).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Sort(dashboard.VariableSortNumericalAsc))
	for _, r := range rows {
		b.WithRow(dashboard.NewRowBuilder(r.title).Id(r.id))
		for _, p := range r.panels {
			b.WithPanel(p.builder())
		}
	}
	return b.Build()
}

// builder returns the SDK's builder of the panel's kind.
func (p panel) builder() cog.Builder[dashboard.Panel] {
	switch p.as {
	case status:
		return p.status()
	case timeline:
		return p.timeline()
	default:
		return p.lines()
	}
}

func (p panel) lines() *timeseries.PanelBuilder {
	b := fill(timeseries.NewPanelBuilder(), p).ColorScheme(color(dashboard.FieldColorModeIdPaletteClassic)).
		DrawStyle(common.GraphDrawStyleLine).LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeNever).
		SpanNulls(common.BoolOrFloat64{Bool: new(false)}).
		Legend(legend().ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if !p.negative {
		b.Min(0)
	}
	if p.as == stacked {
		b.FillOpacity(30).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	}
	if p.limit > 0 {
		b.Thresholds(thresholds("transparent", "red", p.limit)).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	if p.dashed != "" {
		b.OverrideByRegexp(p.dashed, []dashboard.DynamicConfigValue{
			{Id: "custom.lineStyle", Value: common.LineStyle{Fill: new(common.LineStyleFillDash), Dash: []float64{6, 6}}},
			{Id: "custom.fillOpacity", Value: 0},
			fixed("text"),
		})
	}
	return b
}

func (p panel) status() *stat.PanelBuilder {
	shown := map[string]dashboard.ValueMappingResult{}
	for i, t := range p.texts {
		shown[t.value] = dashboard.ValueMappingResult{Text: &t.text, Color: &t.color, Index: new(int32(i))}
	}
	return fill(stat.NewPanelBuilder(), p).ColorScheme(color(dashboard.FieldColorModeIdThresholds)).
		Thresholds(thresholds(*shown["0"].Color, *shown["1"].Color, 1)).
		Mappings([]dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText,
			Options: shown}}}).
		ColorMode(common.BigValueColorModeBackground).GraphMode(common.BigValueGraphModeNone).
		TextMode(common.BigValueTextModeValueAndName).Orientation(common.VizOrientationAuto).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Fields("").Values(false))
}

func (p panel) timeline() *statetimeline.PanelBuilder {
	return fill(statetimeline.NewPanelBuilder(), p).
		ColorScheme(color(dashboard.FieldColorModeIdFixed).FixedColor("red")).
		FillOpacity(70).LineWidth(0).NeverSpanNulls().ShowValue(common.VisibilityModeNever).
		RowHeight(0.8).AlignValue(common.TimelineValueAlignmentCenter).MergeValues(true).
		Legend(legend().ShowLegend(false)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone))
}

// settings are what the SDK's builders of all kinds have in common.
type settings[B any] interface {
	Id(uint32) B
	Title(string) B
	Description(string) B
	Datasource(common.DataSourceRef) B
	Height(uint32) B
	Span(uint32) B
	Unit(string) B
	Decimals(float64) B
	Max(float64) B
	WithTarget(cog.Builder[variants.Dataquery]) B
	OverrideByRegexp(string, []dashboard.DynamicConfigValue) B
}

// fill sets in a builder what all kinds of panels have.
func fill[B settings[B]](b B, p panel) B {
	b.Id(p.id).Title(p.title).Description(p.about()).Datasource(chosen).Unit(cmp.Or(p.unit, "none"))
	b.Span(cmp.Or(p.width, 8)).Height(cmp.Or(p.height, 8))
	if p.decimals != nil {
		b.Decimals(*p.decimals)
	}
	if p.max != nil {
		b.Max(*p.max)
	}
	for i, q := range p.queries {
		b.WithTarget(prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Datasource(chosen).
			Expr(q.expr).LegendFormat(q.legend).Range())
	}
	for _, c := range p.colors {
		b.OverrideByRegexp(c.legend, []dashboard.DynamicConfigValue{fixed(c.color)})
	}
	return b
}

// about returns the description with the names of the alerts.
func (p panel) about() string {
	switch {
	case p.alerts == "":
		return p.description
	case strings.Contains(p.alerts, ","):
		return p.description + " Alerts: " + p.alerts
	default:
		return p.description + " Alert: " + p.alerts
	}
}

func legend() *common.VizLegendOptionsBuilder {
	return common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).
		Placement(common.LegendPlacementBottom).Calcs([]string{})
}

func color(mode dashboard.FieldColorModeId) *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(mode)
}

// fixed overrides the colour of a series.
func fixed(name string) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: "color",
		Value: dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: &name}}
}

// thresholds are the colour of values below one value, and from it.
func thresholds(below, above string, from float64) *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).
		Steps([]dashboard.Threshold{{Color: below}, {Color: above, Value: &from}})
}
