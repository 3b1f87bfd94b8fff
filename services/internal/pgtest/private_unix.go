//go:build unix

package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/services/internal/testrun"
)

// NewCluster starts a cluster for one test, which may break it, and returns the URL of its first database. It stops
// when the test ends.
func NewCluster(t testing.TB) (databaseURL string) {
	t.Helper()
	testrun.SkipRepeated(t)
	script, err := findScript()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "sh", "-c", `echo "$`+Env+`"; exec cat`)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, Env+"=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	var messages bytes.Buffer
	cmd.Stderr = &messages
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", script, err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // this stops the cluster
		_ = cmd.Wait()    // the test may have broken the cluster, so its exit code does not matter
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, messages.String())
	}
	databaseURL = strings.TrimSpace(line)
	// Commits must survive a crash of its processes.
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_commit = on", "SELECT pg_reload_conf()"} {
		if err := administer(databaseURL, statement); err != nil {
			t.Fatal(err)
		}
	}
	return databaseURL
}

// Standby is a server that follows a cluster of NewCluster.
type Standby struct {
	// URL is the same database on the standby.
	URL string

	t    testing.TB
	host *machine
	dir  string
}

// machine has the PostgreSQL programs, and the account that may run them.
type machine struct {
	t   testing.TB
	bin string
	// data is the data directory of the running cluster.
	data       string
	credential *syscall.Credential // nil: the current user
}

func machineOf(t testing.TB, databaseURL string) *machine {
	t.Helper()
	m := &machine{t: t}
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	err = conn.QueryRow(t.Context(), "SELECT (SELECT setting FROM pg_config WHERE name = 'BINDIR'), current_setting('data_directory')").Scan(&m.bin, &m.data)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(m.data)
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Getuid() {
		m.credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	return m
}

// run runs a PostgreSQL program.
func (m *machine) run(ctx context.Context, name string, args ...string) {
	m.t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(m.bin, name), args...)
	cmd.Dir = filepath.Dir(m.data)
	if m.credential != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: m.credential}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// NewStandby starts a hot standby of a cluster of NewCluster. It stops when the test ends.
func NewStandby(t testing.TB, primaryURL string) *Standby {
	t.Helper()
	m := machineOf(t, primaryURL)
	access, err := os.OpenFile(filepath.Join(m.data, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = access.WriteString("\nhost replication all 127.0.0.1/32 trust\n")
	if err = errors.Join(err, access.Close(), administer(primaryURL, "SELECT pg_reload_conf()")); err != nil {
		t.Fatal(err)
	}
	s := &Standby{t: t, host: m, dir: m.data + "-standby"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	u, err := url.Parse(primaryURL)
	if err != nil {
		t.Fatal(err)
	}
	m.run(t.Context(), "pg_basebackup", "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--pgdata="+s.dir, "--dbname="+primaryURL)
	u.Host = net.JoinHostPort("127.0.0.1", port)
	s.URL = u.String()
	_ = listener.Close()
	m.run(t.Context(), "pg_ctl", "start", "-s", "-w", "-t", "120", "-D", s.dir, "-l", s.dir+".log", "-o", "-p "+port)
	t.Cleanup(func() { m.run(context.Background(), "pg_ctl", "stop", "-s", "-w", "-m", "immediate", "-D", s.dir) })
	return s
}

// Promote promotes the standby to a primary.
func (s *Standby) Promote() {
	s.t.Helper()
	s.host.run(s.t.Context(), "pg_ctl", "promote", "-s", "-w", "-D", s.dir)
}

// StopPrimary stops the primary after it has sent all its changes.
func (s *Standby) StopPrimary() {
	s.t.Helper()
	s.host.run(s.t.Context(), "pg_ctl", "stop", "-s", "-w", "-m", "fast", "-D", s.host.data)
}

// StartPrimaryAsStandby restarts the old primary at its address as a read-only standby without a primary.
func (s *Standby) StartPrimaryAsStandby(primaryURL string) {
	s.t.Helper()
	u, err := url.Parse(primaryURL)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.host.data, "standby.signal")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if c := s.host.credential; c != nil {
		if err := os.Chown(file, int(c.Uid), int(c.Gid)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.host.run(s.t.Context(), "pg_ctl", "start", "-s", "-w", "-t", "120", "-D", s.host.data, "-l", s.dir+".old.log", "-o", "-p "+u.Port())
}

// KillBackend kills the process of a session, as the kernel's OOM killer does. The whole cluster then recovers.
func KillBackend(t testing.TB, databaseURL, application string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // it is disconnected, too
	var pid int
	err = conn.QueryRow(t.Context(), "SELECT pid FROM pg_stat_activity WHERE starts_with(application_name, $1) ORDER BY state = 'active' DESC, random() LIMIT 1", application).Scan(&pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Dump copies a database of a cluster into an empty one of another, with pg_dump.
func Dump(t testing.TB, from, to string) {
	t.Helper()
	m := machineOf(t, from)
	file := m.data + ".dump"
	m.run(t.Context(), "pg_dump", "--format=custom", "--no-owner", "--file="+file, "--dbname="+from)
	m.run(t.Context(), "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+to, file)
}
