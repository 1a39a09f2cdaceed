package engines

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyWait is how long an engine may take from launch to its first response, including recovery after a crash.
	readyWait = 2 * time.Minute
	// stopWait is how long Close waits. It is more than the sum of any supervisor's steps, so it is only reached if a
	// helper itself hangs.
	stopWait = 40 * time.Second
)

// A process is an engine that runs in a helper process, or under one.
type process struct {
	Pid int // of the engine itself

	what   string // for messages: PostgreSQL
	helper *exec.Cmd
	stdin  io.Closer // closing it stops the engine
	log    string    // path of the engine's output
	logAt  int64     // size of the log before this start
	ended  chan struct{}
	err    error // exit status of the helper; read after ended is closed

	stopOnce sync.Once
}

// start locks dir, which it makes absolute, launches what prepare describes, and returns when the engine answers.
func start(
	ctx context.Context, what, dir string, prepare func(dir string) (childSpec, error),
	answers func(context.Context) error,
) (*process, error) {
	dir, lock, err := lockDir(ctx, what, dir)
	if err != nil {
		return nil, err
	}
	spec, err := prepare(dir)
	if err != nil {
		lock.Close()
		return nil, err
	}
	p, err := launch(what, dir, lock, spec)
	if err != nil {
		return nil, err
	}
	return p, p.waitReady(ctx, answers)
}

// launch starts a helper, hands it the lock and waits until the engine has a pid. From then on the helper owns the
// lock; if launch fails, the lock is released.
func launch(what, dir string, lock *os.File, spec childSpec) (*process, error) {
	defer lock.Close()
	p := &process{what: what, log: filepath.Join(dir, logName(what)), ended: make(chan struct{})}
	logFile, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", what, err)
	}
	defer logFile.Close()
	if p.logAt, err = trimLog(logFile); err != nil {
		return nil, fmt.Errorf("start %s: trim its log: %w", what, err)
	}
	if p.helper, err = childCommand(spec); err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	p.helper.Stderr = logFile
	p.helper.ExtraFiles = []*os.File{lock}
	stdin, err := p.helper.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	p.stdin = stdin
	stdout, err := p.helper.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	if err := p.helper.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		p.err = p.helper.Wait()
		close(p.ended)
	}()
	if p.Pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		<-p.ended
		return nil, p.failed(p.err)
	}
	if err := notePid(lock, p.Pid); err != nil {
		// the engine keeps the lock, even if the helper and this process are killed
		p.Close()
		return nil, fmt.Errorf("start %s: write the lock of its folder: %w", what, err)
	}
	return p, nil
}

// trimLog empties a log that has grown large and returns its size.
func trimLog(f *os.File) (int64, error) {
	const limit = 16 << 20 // bytes
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() <= limit {
		return info.Size(), nil
	}
	return 0, f.Truncate(0)
}

func logName(what string) string {
	return strings.ReplaceAll(strings.ToLower(what), " ", "-") + ".log"
}

// waitReady calls answers until it returns nil. If the engine exits or ctx ends before, the engine is stopped and the
// error quotes its log.
func (p *process) waitReady(ctx context.Context, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		try, done := context.WithTimeout(ctx, 5*time.Second)
		err := answers(try)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return p.failed(p.err)
		case <-ctx.Done():
			p.Close()
			return p.failed(fmt.Errorf("%w (it last answered: %v)", context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

// watch waits until ctx ends and returns nil, or until the engine has exited by itself and returns the reason and what
// to do.
func (p *process) watch(ctx context.Context, remedy string) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.ended:
		return fmt.Errorf("the embedded engine has ended by itself: %s; its log is %s. %s",
			cmp.Or(p.reason(), "it gave no reason"), p.log, remedy)
	}
}

// failed returns the error of a failed start, with the last lines that the engine wrote.
func (p *process) failed(err error) error {
	if err == nil {
		err = errors.New("it ended at once")
	}
	return fmt.Errorf("start %s: %w: its log %s ends with: %s", p.what, err, p.log, p.lastLines())
}

// reason returns the last exception in ClickHouse's log since it was started, or else the end of its output.
func (p *process) reason() string {
	output := p.tail(64 << 10)
	if i := strings.LastIndex(output, "DB::Exception: "); i >= 0 {
		line, _, _ := strings.Cut(output[i+len("DB::Exception: "):], ", Stack trace")
		line, _, _ = strings.Cut(line, "\n")
		return line
	}
	return p.lastLines()
}

func (p *process) lastLines() string {
	lines := strings.Split(p.tail(2000), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}

// tail returns the end of what the engine wrote since it was started.
func (p *process) tail(limit int64) string {
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	text := make([]byte, limit)
	n, _ := f.ReadAt(text, max(p.logAt, info.Size()-limit))
	return strings.TrimSpace(string(text[:n]))
}

// Close shuts the engine down gracefully and waits until all its processes have exited. Calling it again is harmless.
func (p *process) Close() error {
	p.stopOnce.Do(func() { p.stdin.Close() })
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopWait):
		p.Kill()
		p.helper.Process.Kill()
		<-p.ended
		return fmt.Errorf("stop %s: it did not stop within %s and was killed", p.what, stopWait)
	}
}

// Kill ends the engine with SIGKILL, as a power failure would, and waits until it has exited. The folder can then be
// used again. It does nothing if the engine has exited before, because its id may be another process's by now.
func (p *process) Kill() {
	select {
	case <-p.ended:
		return
	default:
		syscall.Kill(p.Pid, syscall.SIGKILL)
	}
	select {
	case <-p.ended:
	case <-time.After(stopWait):
	}
}
