// Package child starts navlog as a process of its own, to test it or to measure it.
package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
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

// CPU is the processor time that a process has had so far. Linux counts it in hundredths of a second; other systems do not
// tell it, which is an error.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	// pid (name) state parent ..., where the name may hold anything; user and system time are the 12th and 13th after it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the processor time of process %d: %q", pid, text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(user+system) * (time.Second / 100), nil
}
