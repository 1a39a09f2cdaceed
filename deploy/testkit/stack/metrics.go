package stack

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

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

// Uncompressed, because the time for compression would count as that of a measured program.
var metricsClient = &http.Client{Timeout: 5 * time.Second,
	Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

// Metrics requests the metrics of a program, given the URL of its ops server, and returns each by its name, as the
// largest of its series. (NaN, which a series has while another instance does the work, is smaller than any number.)
func Metrics(ctx context.Context, ops string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, ops+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := metricsClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	samples, err := Samples(response.Body)
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
