package stack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Environment returns this process's environment without its navlog settings, plus the given ones: a developer's own
// settings must not affect a test or a measurement. NAVLOG_ENGINES stays, because it only says where the engines are.
func Environment(settings ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "NAVLOG_") || strings.HasPrefix(variable, "NAVLOG_ENGINES=") {
			env = append(env, variable)
		}
	}
	return append(env, settings...)
}

// Peak returns the peak resident memory of a process so far, in bytes, or 0 if the system does not provide it.
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

// CPU returns the CPU time that a process has used so far. Linux counts it in hundredths of a second; other systems do
// not provide it, which is an error.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	// The format is pid (name) state parent ...; the name may contain anything, and user and system time are the 12th
	// and 13th fields after it.
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

// Resident returns the resident memory of a process, in bytes. Only Linux provides it.
func Resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("read the memory of process %d: %q", pid, text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// Descriptors are the open file descriptors of a process.
type Descriptors struct {
	Files   int            // all that are not sockets
	Sockets int            // all sockets, those of TCP over IPv4 included
	To      map[uint16]int // TCP connections over IPv4 that are not closed, by the remote port
}

// Open returns the open file descriptors of a process. Only Linux provides them.
func Open(pid int) (Descriptors, error) {
	remote, err := connections(pid)
	if err != nil {
		return Descriptors{}, err
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		return Descriptors{}, fmt.Errorf("list the open files of a process: %w", err)
	}
	found := Descriptors{To: map[uint16]int{}}
	for _, entry := range all {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue // closed since
		}
		inode, ok := strings.CutPrefix(target, "socket:[")
		if !ok {
			found.Files++
			continue
		}
		found.Sockets++
		if port, ok := remote[strings.TrimSuffix(inode, "]")]; ok {
			found.To[port]++
		}
	}
	return found, nil
}

// connections returns the remote ports of the TCP connections over IPv4 in the network of a process, by inode.
func connections(pid int) (map[string]uint16, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return nil, fmt.Errorf("list the connections of a process: %w", err)
	}
	const (
		listening = "0A"
		// Fields of a line: number, local and remote address, state, queues, timer, retransmits, uid, timeout, inode.
		remoteField, stateField, inodeField = 2, 3, 9
	)
	remote := map[string]uint16{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= inodeField || fields[stateField] == listening {
			continue
		}
		_, port, _ := strings.Cut(fields[remoteField], ":")
		if n, err := strconv.ParseUint(port, 16, 16); err == nil { // not the title line
			remote[fields[inodeField]] = uint16(n)
		}
	}
	return remote, nil
}
