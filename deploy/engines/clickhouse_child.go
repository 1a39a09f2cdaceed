package engines

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// drainWait is how long the engine may take to end its queries after the parent has exited.
const drainWait = 20 * time.Second

// runClickHouse is the main function of the ClickHouse process: it starts the relay, loads the engine and passes it a
// command line. The query on that command line opens the ports and then counts the lines of stdin, which stays empty
// until the parent exits. It runs on the process's first thread (see init).
func runClickHouse(spec childSpec) int {
	lib, err := purego.Dlopen(spec.Path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		childFail("load ClickHouse", err)
	}
	var (
		query   func(argc int32, argv **byte) (result uintptr)
		errorOf func(result uintptr) string
	)
	purego.RegisterLibFunc(&query, lib, "chdb_query_cmdline")
	purego.RegisterLibFunc(&errorOf, lib, "chdb_result_error")

	fmt.Println(os.Getpid())
	if err := unix.Dup2(2, 1); err != nil { // the parent reads no more lines
		childFail("redirect its output", err)
	}
	go exitAfterParent()
	listener, err := net.Listen("tcp", spec.From)
	if err != nil {
		childFail("listen for ClickHouse", err)
	}
	go relay(listener, spec.To)

	argv := make([]*byte, len(spec.Args)+1) // NULL-terminated, as in C
	for i, arg := range spec.Args {
		argv[i] = &append([]byte(arg), 0)[0]
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	for _, arg := range argv[:len(spec.Args)] {
		pin.Pin(arg)
	}
	result := query(int32(len(spec.Args)), &argv[0])
	runtime.KeepAlive(argv)
	if result == 0 {
		childFail("run ClickHouse", errors.New("it returned no result"))
	}
	if message := errorOf(result); message != "" {
		childFail("run ClickHouse", errors.New(message))
	}
	return 0
}

// exitAfterParent exits the process if an endless query keeps the engine from noticing the end of its stdin. It polls
// stdin without reading it, because the engine does that.
func exitAfterParent() {
	stdin := []unix.PollFd{{Fd: 0}} // a hang-up is always reported
	for stdin[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) == 0 {
		unix.Poll(stdin, -1)
	}
	time.Sleep(drainWait)
	fmt.Fprintf(os.Stderr, "engine helper: ClickHouse was still busy %s after its parent had gone: exit\n", drainWait)
	os.Exit(1)
}
