package stack

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Metrics reads what a program returns at /metrics, and returns each metric by its name, as the largest of its series.
// (NaN, which a series has while another instance does the work, is smaller than any number.)
func Metrics(from io.Reader) (map[string]float64, error) {
	largest := map[string]float64{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		end := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || end < 0 {
			continue
		}
		name, _, _ := strings.Cut(line[:end], "{")
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		if before, ok := largest[name]; !ok || math.IsNaN(before) || value > before {
			largest[name] = value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	return largest, nil
}
