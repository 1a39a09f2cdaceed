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
	remote, err := connections(pid)
	if err != nil {
		return Descriptors{}, err
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Descriptors{}, fmt.Errorf("list the open files of a process: %w", err)
	}
	targets, err := p.FileDescriptorTargets()
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

// connections returns the remote ports of the TCP connections over IPv4 in the network of a process, by inode.
func connections(pid int) (map[string]uint16, error) {
	fs, err := procfs.NewFS(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return nil, fmt.Errorf("list the connections of a process: %w", err)
	}
	all, err := fs.NetTCP()
	if err != nil {
		return nil, fmt.Errorf("list the connections of a process: %w", err)
	}
	const listening = 0x0a
	remote := map[string]uint16{}
	for _, c := range all {
		if c.St != listening {
			remote[strconv.FormatUint(c.Inode, 10)] = uint16(c.RemPort)
		}
	}
	return remote, nil
}
