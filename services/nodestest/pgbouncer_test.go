package nodestest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// startPgBouncer runs a pooler in transaction mode in front of a database, configured as in docs/scale.md. It
// returns the URL of the pooler. size is its number of server connections.
func startPgBouncer(t testing.TB, path, database string, size int) string {
	t.Helper()
	return startPooler(t, path, database, size).url
}

// pooler is a PgBouncer that can be killed and restarted at its address.
type pooler struct {
	t          testing.TB
	url        string
	path, file string
	cmd        *exec.Cmd
}

// start runs the program.
func (p *pooler) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.path, p.file)
	unprivileged(p.t, p.cmd)
	process(p.t, p.cmd)
}

// kill kills it, as the kernel's OOM killer does.
func (p *pooler) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // fails because of the kill
}

func startPooler(t testing.TB, path, database string, size int) *pooler {
	t.Helper()
	to, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	name := strings.Trim(to.Path, "/")
	users := filepath.Join(dir, "userlist.txt")
	// It refuses to run as root, and cannot inherit a socket: it uses a port that was just free.
	for attempt := range 5 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := net.SplitHostPort(listener.Addr().String())
		_ = listener.Close()
		config := replaceAll(t, reference(t, "pgbouncer"),
			"palisade = host=10.0.0.20 port=5432 dbname=palisade", fmt.Sprintf("%s = host=%s port=%s", name, to.Hostname(), to.Port()),
			"listen_addr = 10.0.0.21", "listen_addr = "+host, "listen_port = 6432", "listen_port = "+port,
			"/etc/pgbouncer/userlist.txt", users, "auth_type = scram-sha-256", "auth_type = trust",
			"default_pool_size = 40", "default_pool_size = "+strconv.Itoa(size)) + "unix_socket_dir =\n"
		file := filepath.Join(dir, "pgbouncer.ini")
		for name, text := range map[string]string{file: config, users: fmt.Sprintf("%q \"\"\n", to.User.Username())} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		unprivileged(t, exec.Command(path), dir, file, users) // it owns these files
		p := &pooler{t: t, path: path, file: file}
		p.start()
		through := *to
		through.Host = net.JoinHostPort(host, port)
		through.RawQuery += "&default_query_exec_mode=cache_describe"
		if p.url = through.String(); answers(t, p.url) {
			return p
		}
		t.Logf("attempt %d: pgbouncer does not answer on %s", attempt+1, through.Host)
	}
	t.Fatal("pgbouncer does not start")
	return nil
}

// unprivileged runs a command as another user when the test runs as root.
func unprivileged(t testing.TB, cmd *exec.Cmd, files ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	for _, file := range files {
		if err := os.Chown(file, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// answers reports whether a database answers within a minute.
func answers(t testing.TB, url string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if conn, err := pgx.Connect(ctx, url); err == nil {
			_ = conn.Close(ctx)
			return true
		}
		<-time.After(50 * time.Millisecond)
	}
	return false
}

// TestNodesBehindPgBouncer: three nodes use a pooler in transaction mode with fewer server connections than they
// need. When one node is killed, another becomes the queue's leader and continues.
func TestNodesBehindPgBouncer(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	path, proxyPath, binary, direct := program(t, "pgbouncer"), program(t, "haproxy"), binary(t), pgtest.NewDatabase(t)
	pooled := startPgBouncer(t, path, direct, 6)
	withoutMode := strings.Replace(pooled, "&default_query_exec_mode=cache_describe", "", 1)
	for _, command := range []string{"serve", "doctor"} {
		out, err := exec.CommandContext(t.Context(), binary, command, "--database", withoutMode, "--data", t.TempDir()).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "default_query_exec_mode=cache_describe") {
			t.Errorf("%s through a pooler without default_query_exec_mode: %v\n%s", command, err, out)
		}
	}
	nodes := startNodes(t, binary, pooled)
	proxy := startHAProxy(t, proxyPath, nodes)
	d := openDatabase(t, direct)
	apitest.Eventually(t, "the lock of the migrations is given back", func() bool {
		return d.number("SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == 0
	})
	to := newReceiver(t)
	l := startLoad(t, proxy.client(), "https://"+proxy.http, 0)
	l.subscribe(to)
	l = startLoad(t, proxy.client(), "https://"+proxy.http, 4)
	l.more(20)
	var leader string
	apitest.Eventually(t, "a node leads the queue", func() bool {
		return d.db.QueryRowContext(t.Context(), "SELECT leader_id FROM river_leader").Scan(&leader) == nil
	})
	before := time.Now()
	for _, n := range nodes { // any of them may be the leader
		n.kill()
		proxy.waitFor(n.name, "DOWN") // without this, it may notice three dead nodes at once
		n.start()
		proxy.waitFor(n.name, "UP")
	}
	after := time.Now()
	apitest.Eventually(t, "another node leads the queue", func() bool {
		var now string
		err := d.db.QueryRowContext(t.Context(), "SELECT leader_id FROM river_leader").Scan(&now)
		return err == nil && now != leader
	})
	l.more(20)
	l.end()
	for _, f := range l.failures() {
		if f.began.After(after) || f.end.Before(before) {
			t.Errorf("this request was not running while nodes were killed: %s", f)
		}
	}
	for _, n := range nodes {
		requireNoErrors(t, n)
	}
	// Connections that the pooler has closed may still be shutting down.
	apitest.Eventually(t, "only 6 connections of the pooler and 2 of the test reach the database", func() bool {
		return d.number("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name <> '' AND backend_type = 'client backend'") <= 6+2
	})
	l.verify(d)
	requireDelivered(t, d, to, after)
	requireJobsDone(t, d, after)
}

// TestSessionBehindPgBouncer: an idle server has a visible PostgreSQL session, also through a pooler that has
// closed all its connections.
func TestSessionBehindPgBouncer(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	direct := pgtest.NewDatabase(t)
	st, err := store.Open(t.Context(), store.Options{Database: startPgBouncer(t, program(t, "pgbouncer"), direct, 2)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }() // it has only read
	d := openDatabase(t, direct)
	const sessions = "FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1)"
	end := func() {
		d.counts("SELECT CAST(pid AS text), CAST(pg_terminate_backend(pid, 60000) AS integer) "+sessions, store.SessionName)
	}
	end()
	if n := d.number("SELECT COUNT(*) "+sessions, store.SessionName); n != 0 {
		t.Fatalf("%d sessions are left", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		st.KeepSession(ctx, 10*time.Millisecond)
	}()
	for range 2 {
		apitest.Eventually(t, "there is a session", func() bool { return d.number("SELECT COUNT(*) "+sessions, store.SessionName) > 0 })
		end()
	}
	cancel()
	<-ended
}

// TestKilledPgBouncer: the pooler is killed under load, and later the database closes all its connections. Failed
// requests get 503, and nothing that was accepted is lost.
func TestKilledPgBouncer(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	binary, direct := binary(t), pgtest.NewDatabase(t)
	pool := startPooler(t, program(t, "pgbouncer"), direct, 6)
	n := newNode(t, "node1", binary, pool.url, filepath.Join(t.TempDir(), "palisade.key"))
	n.start()
	d := openDatabase(t, direct)
	client := &http.Client{Timeout: timeout}
	to := newReceiver(t)
	l := startLoad(t, client, "http://"+n.http, 0)
	l.subscribe(to)
	l = startLoad(t, client, "http://"+n.http, 4)
	for range 3 {
		l.more(10)
		pool.kill()
		<-time.After(500 * time.Millisecond)
		pool.start()
		l.more(10)
		d.counts("SELECT CAST(pid AS text), CAST(pg_terminate_backend(pid, 60000) AS integer) FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1)", store.SessionName)
	}
	l.more(10)
	l.end()
	failures := l.failures()
	if len(failures) == 0 {
		t.Error("no request failed, so the test proves nothing")
	}
	for _, f := range failures {
		if !strings.Contains(f.what, "503") {
			t.Errorf("failed with another status than 503: %s", f)
		}
	}
	for _, line := range n.errors() {
		if strings.Contains(line, "code=Internal") {
			t.Errorf("the node logged %s", line)
		}
	}
	l.verify(d)
}
