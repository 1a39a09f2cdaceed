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
	connections, err := TCP(pid)
	if err != nil {
		return Descriptors{}, err
	}
	remote := map[string]uint16{}
	for _, c := range connections {
		if c.State != Listening {
			remote[c.inode] = c.Remote
		}
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

// A Connection is a TCP socket over IPv4.
type Connection struct {
	Local, Remote uint16 // ports
	State         string // as the system writes it
	inode         string
}

// States of a Connection: CloseWait if only the other side has closed it.
const (
	Established = "01"
	CloseWait   = "08"
	Listening   = "0A"
)

// TCP returns the TCP sockets over IPv4 in the network of a process. Only Linux provides them.
func TCP(pid int) (all []Connection, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return nil, fmt.Errorf("list the connections of a process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		// Number, local and remote address, state, queues, timer, retransmits, uid, timeout, inode.
		fields := strings.Fields(line)
		if len(fields) < 10 {
			continue
		}
		local, err1 := port(fields[1])
		remote, err2 := port(fields[2])
		if err1 == nil && err2 == nil { // not the title line
			all = append(all, Connection{local, remote, fields[3], fields[9]})
		}
	}
	return all, nil
}

func port(address string) (uint16, error) {
	_, text, _ := strings.Cut(address, ":")
	n, err := strconv.ParseUint(text, 16, 16)
	return uint16(n), err
}
