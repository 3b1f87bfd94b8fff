// Package nodestest runs several server processes at once: behind HAProxy, behind PgBouncer, and in two versions.
package nodestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// token is the API token of the first deployment, acme.
const token = "sgp_nodes4Kq2vXw7RbZ4mLd8sYh3nPc6JfGa5TeUo1W"

// timeout limits each wait on a busy machine.
const timeout = 5 * time.Minute

// binaries is the directory of the programs built for the tests.
var binaries string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if binaries, err = os.MkdirTemp("", "palisade-nodes"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(binaries) }()
		return m.Run()
	}())
}

// built builds the server of this tree.
var built = sync.OnceValues(func() (string, error) { return testrun.Program(context.Background(), binaries) })

func binary(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// output collects the output of a process.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// node is a server in its own process.
type node struct {
	t      testing.TB
	name   string
	binary string
	env    []string
	// http, grpc and metrics are its addresses, which it keeps when it restarts.
	http, grpc, metrics string

	cmd    *exec.Cmd
	log    *output       // of the last start
	exited chan struct{} // closed when the process has ended
	err    error         // the result of the process
}

// newNode returns a node that is not started. Each node has its own directory; nodes share only the database and
// the key.
func newNode(t testing.TB, name, binary, database, keyFile string, env ...string) *node {
	anyPort := net.JoinHostPort(apitest.OwnHost(), "0")
	return &node{
		t: t, name: name, binary: binary, http: anyPort, grpc: anyPort, metrics: anyPort, log: &output{},
		env: append([]string{
			"PALISADE_DATABASE=" + database, "PALISADE_KEY_FILE=" + keyFile, "PALISADE_DATA=" + t.TempDir(),
			"PALISADE_BOOTSTRAP_TOKEN=" + token, "PALISADE_DEPLOYMENT=acme", "PALISADE_EGRESS_ALLOW=127.0.0.1",
			"PALISADE_RATE_LIMIT=0", "PALISADE_BEHIND_TLS_PROXY=true",
		}, env...),
	}
}

// environment returns this program's environment without server settings.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PALISADE_") })
}

// banner is the log line of a node that has started.
var banner = regexp.MustCompile(`msg="palisade is serving".* http=(\S+) grpc=(\S+) metrics=http://(\S+)/metrics`)

// start starts the node and returns when it serves.
func (n *node) start() {
	n.t.Helper()
	if err := n.tryStart(); err != nil {
		n.t.Fatalf("%s does not start: %v\n%s", n.name, err, n.log)
	}
}

func (n *node) tryStart() error {
	n.log, n.exited = &output{}, make(chan struct{})
	n.cmd = exec.Command(n.binary, "serve", "--http", n.http, "--grpc", n.grpc, "--metrics", n.metrics)
	n.cmd.Env = append(environment(), n.env...)
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	if err := n.cmd.Start(); err != nil {
		close(n.exited)
		return err
	}
	go func() {
		n.err = n.cmd.Wait()
		close(n.exited)
	}()
	n.t.Cleanup(n.kill)
	var at []string
	err := poll(func() (bool, error) {
		at = banner.FindStringSubmatch(n.log.String())
		if at != nil {
			return true, nil
		}
		select {
		case <-n.exited:
			return false, fmt.Errorf("it ended: %v", n.err)
		default:
			return false, nil
		}
	})
	if err != nil {
		return err
	}
	n.http, n.grpc, n.metrics = at[1], at[2], at[3]
	return nil
}

// kill kills the process like a power cut, unless it has ended.
func (n *node) kill() {
	_ = n.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-n.exited
}

// stop stops the process like an operator, and requires a clean shutdown.
func (n *node) stop() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	select {
	case <-n.exited:
	case <-time.After(timeout):
		n.t.Fatalf("%s does not stop:\n%s", n.name, n.log)
	}
	if n.err != nil {
		n.t.Errorf("%s ended with %v:\n%s", n.name, n.err, n.log)
	}
}

// errors returns the lines of level ERROR since the last start.
func (n *node) errors() (lines []string) {
	for line := range strings.SplitSeq(n.log.String(), "\n") {
		if strings.Contains(line, "level=ERROR") {
			lines = append(lines, line)
		}
	}
	return lines
}

// poll repeats ask until it returns true or an error, or the timeout has passed.
func poll(ask func() (bool, error)) error {
	deadline := time.Now().Add(timeout)
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("it took too long")
		}
		<-time.After(20 * time.Millisecond)
	}
}
