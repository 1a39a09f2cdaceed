// Package child is for whoever starts navlog as a process of its own, to test it or to measure it.
package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Environment is that of this process without its settings of navlog, and with the given ones: what a developer has set
// for a navlog of their own is no part of a test or a measurement. NAVLOG_ENGINES stays, for it says where the engines
// are, and nothing of how navlog works.
func Environment(settings ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "NAVLOG_") || strings.HasPrefix(variable, "NAVLOG_ENGINES=") {
			env = append(env, variable)
		}
	}
	return append(env, settings...)
}

// Peak is the largest resident memory of a process so far, in bytes; 0 where the system does not tell it.
func Peak(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
