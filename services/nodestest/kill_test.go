package nodestest

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// startNodes starts three nodes on one database.
func startNodes(t testing.TB, binary, database string, env ...string) []*node {
	t.Helper()
	key := filepath.Join(t.TempDir(), "palisade.key")
	nodes := make([]*node, 3)
	for i := range nodes {
		nodes[i] = newNode(t, fmt.Sprintf("node%d", i+1), binary, database, key, env...)
		nodes[i].start()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s wrote:\n%s", nodes[i].name, tail(nodes[i].log.String()))
			}
		})
	}
	return nodes
}

// outOfRotation is how soon a dead node must be out of rotation, by the load balancer's clock. Two failed checks,
// half a second apart, take at most a second; the rest allows for a busy machine. HAProxy's defaults would take six
// seconds.
const outOfRotation = 2 * time.Second

// TestKilledNode: one of three nodes behind a load balancer is killed and restarted under load. Only its in-flight
// requests fail, and nothing that was accepted is lost. A watcher of the change feed gets every change.
func TestKilledNode(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	path, binary, url := program(t, "haproxy"), binary(t), pgtest.NewDatabase(t)
	nodes := startNodes(t, binary, url)
	proxy := startHAProxy(t, path, nodes)
	to := newReceiver(t)
	const clients = 6
	l := startLoad(t, proxy.client(), "https://"+proxy.http, 0)
	l.subscribe(to)
	l = startLoad(t, proxy.client(), "https://"+proxy.http, clients)
	changes := l.watchFeed()
	l.more(30)

	before := time.Now()
	nodes[1].kill()
	after := time.Now() // its sockets are closed from here on
	took := proxy.outAt("node2").Sub(after)
	if took > outOfRotation {
		t.Errorf("the load balancer took the dead node out after %s, want at most %s", took, outOfRotation)
	}
	// Everything that the dead node has sent has arrived by now: its statements in the database, its messages at the
	// receiver.
	gone := time.Now()
	l.more(30)
	nodes[1].start()
	proxy.waitFor("node2", "UP")
	sessions := proxy.server("node2").sum
	apitest.Eventually(t, "the node that was started again gets requests", func() bool { return t.Failed() || proxy.server("node2").sum > sessions+30 })
	l.end()
	t.Logf("out of rotation after %s", took.Round(time.Millisecond))

	failures := l.failures()
	for _, f := range failures {
		t.Logf("failed: %s", f)
		if f.began.After(after) || f.end.Before(before) {
			t.Errorf("this request was not running when the node was killed (%s): %s", before.Format("15:04:05.000"), f)
		}
	}
	if len(failures) > clients+1 {
		t.Errorf("%d requests failed, but there were %d clients and a watcher with one request each", len(failures), clients)
	}
	for _, n := range []string{"node1", "node3"} {
		if s := proxy.server(n); s.connectErrors+s.responseErrors+s.serverErrors > 0 {
			t.Errorf("requests of %s failed although it was not killed: %+v", n, s)
		}
	}
	d := openDatabase(t, url)
	l.verify(d)
	changes.requireAll(t, d)
	requireDelivered(t, d, to, gone)
	requireJobsDone(t, d, gone)
}

// TestRollingRestart: nodes are restarted one after the other under load, as in an upgrade. No request fails.
func TestRollingRestart(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	path, binary, url := program(t, "haproxy"), binary(t), pgtest.NewDatabase(t)
	nodes := startNodes(t, binary, url)
	proxy := startHAProxy(t, path, nodes)
	l := startLoad(t, proxy.client(), "https://"+proxy.http, 4)
	l.more(10)
	for _, n := range nodes {
		n.stop()
		n.start()
		proxy.waitFor(n.name, "UP")
		proxy.requireGRPC()
		l.more(10)
	}
	l.end()
	l.requireNoFailures()
	for _, n := range nodes {
		requireNoErrors(t, n)
	}
	d := openDatabase(t, url)
	l.verify(d)
	requireJobsDone(t, d, time.Time{})
}
