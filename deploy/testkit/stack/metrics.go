package stack

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Samples reads what a program returns at /metrics: a sample of each series.
func Samples(from io.Reader) (model.Vector, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(from)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	return expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
}

// Metrics returns each metric of Samples by its name, as the largest of its series. (NaN, which a series has while
// another instance does the work, is smaller than any number.)
func Metrics(from io.Reader) (map[string]float64, error) {
	samples, err := Samples(from)
	if err != nil {
		return nil, err
	}
	largest := map[string]float64{}
	for _, s := range samples {
		name, value := string(s.Metric[model.MetricNameLabel]), float64(s.Value)
		if before, ok := largest[name]; !ok || math.IsNaN(before) || value > before {
			largest[name] = value
		}
	}
	return largest, nil
}
