package stack

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
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
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0
	}
	return int64(status.VmHWM)
}

// CPU returns the CPU time that a process has used so far. Linux counts it in hundredths of a second; other systems do
// not provide it, which is an error.
func CPU(pid int) (time.Duration, error) {
	stat, err := statOf(pid)
	return time.Duration(stat.UTime+stat.STime) * (time.Second / 100), err
}

// Resident returns the resident memory of a process, in bytes. Only Linux provides it.
func Resident(pid int) (int64, error) {
	stat, err := statOf(pid)
	return int64(stat.ResidentMemory()), err
}

func statOf(pid int) (stat procfs.ProcStat, err error) {
	p, err := procfs.NewProc(pid)
	if err == nil {
		stat, err = p.Stat()
	}
	if err != nil {
		err = fmt.Errorf("read the time and memory of a process: %w", err)
	}
	return stat, err
}

// Descriptors are the open file descriptors of a process.
type Descriptors struct {
	Files   int            // all that are not sockets
	Sockets int            // all sockets, those of TCP over IPv4 included
	To      map[uint16]int // TCP connections over IPv4 that are not closed, by the remote port
}

// Open returns the open file descriptors of a process. Only Linux provides them.
func Open(pid int) (Descriptors, error) {
	remote, err := remotePorts(pid)
	var p procfs.Proc
	if err == nil {
		p, err = procfs.NewProc(pid)
	}
	var targets []string
	if err == nil {
		targets, err = p.FileDescriptorTargets()
	}
	if err != nil {
		return Descriptors{}, fmt.Errorf("list the open files of a process: %w", err)
	}
	found := Descriptors{To: map[uint16]int{}}
	for _, target := range targets {
		inode, socket := strings.CutPrefix(target, "socket:[")
		switch {
		case target == "": // closed since
		case !socket:
			found.Files++
		default:
			found.Sockets++
			if port, ok := remote[strings.TrimSuffix(inode, "]")]; ok {
				found.To[port]++
			}
		}
	}
	return found, nil
}

// remotePorts returns the remote ports of the TCP connections over IPv4 in the network of a process, by the inode of
// their socket.
func remotePorts(pid int) (map[string]uint16, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	ports := map[string]uint16{}
	for line := range strings.Lines(string(text)) {
		const listening = "0A"
		// Number, local and remote address, state, queues, timer, retransmits, uid, timeout, inode.
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] == listening {
			continue
		}
		_, hex, _ := strings.Cut(fields[2], ":")
		if port, err := strconv.ParseUint(hex, 16, 16); err == nil { // not the title line
			ports[fields[9]] = uint16(port)
		}
	}
	return ports, err
}
