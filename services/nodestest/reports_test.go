package nodestest

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// relay is a TCP proxy to a database that can be turned off.
type relay struct {
	t       *testing.T
	address string
	to      *url.URL

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

// newRelay returns a relay that is down, and the URL of the database through it.
func newRelay(t *testing.T, database string) (r *relay, through string) {
	t.Helper()
	to, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	r = &relay{t: t, address: apitest.FreeAddress(t), to: to}
	t.Cleanup(r.down)
	changed := *to
	changed.Host = r.address
	return r, changed.String()
}

func (r *relay) up() {
	r.t.Helper()
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.listener = listener
	r.mu.Unlock()
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // down
			}
			to, err := net.Dial("tcp", r.to.Host)
			if err != nil {
				_ = from.Close()
				continue
			}
			r.mu.Lock()
			r.open = append(r.open, from, to)
			if r.listener != listener { // down was called first
				_, _ = from.Close(), to.Close()
			}
			r.mu.Unlock()
			for _, ends := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(ends[0], ends[1]) // until one side closes
					_, _ = ends[0].Close(), ends[1].Close()
				}()
			}
		}
	}()
}

// down closes all connections and accepts no more.
func (r *relay) down() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener == nil {
		return
	}
	_ = r.listener.Close()
	for _, conn := range r.open {
		_ = conn.Close()
	}
	r.listener, r.open = nil, nil
}

// reportsOf are reports that are read from the replica.
var reportsOf = []string{"/api/reporting/1/reports/by-project/by-severity", "/api/reporting/1/reports/malware-firewall/summary"}

// ask sends a request to a node: a POST if there is a body.
func (n *node) ask(path, body string) (code int, header http.Header, answer string) {
	n.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(n.t.Context(), method, "http://"+n.http+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

func (n *node) upload(project string) {
	n.t.Helper()
	if code, _, answer := n.ask(uploadPath(project), string(report(project))); code != http.StatusOK {
		n.t.Fatalf("upload: %d %s", code, answer)
	}
}

// requireNoReports requires that reports fail with this text, and that everything else works.
func requireNoReports(t *testing.T, n *node, text string) {
	t.Helper()
	for _, path := range reportsOf {
		code, header, answer := n.ask(path, lastWeek())
		if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(answer, text) {
			t.Errorf("%s: %d %v %s, want 503 with %q", path, code, header, answer, text)
		}
	}
	for _, path := range []string{"/readyz", "/api/v1/deployments/acme/findings"} {
		if code, _, answer := n.ask(path, ""); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
}

// requireReports requires reports that include a project.
func requireReports(t *testing.T, n *node, project string) {
	t.Helper()
	for i, path := range reportsOf {
		if code, _, answer := n.ask(path, lastWeek()); code != http.StatusOK || i == 0 && !strings.Contains(answer, project) {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
}

func lastWeek() string {
	return `{"filters":{"timePeriod":{"since":"` + time.Now().AddDate(0, 0, -7).UTC().Format(time.RFC3339) + `"}}}`
}

// TestReportsWithoutReplica: while the replica is down, only reports fail, whether it was down at the start or went
// down later. When it answers again, reports work.
func TestReportsWithoutReplica(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	database := pgtest.NewDatabase(t)
	replica, through := newRelay(t, database) // the relay leads to the primary, which has no replication lag
	n := newNode(t, "node", binary(t), database, filepath.Join(t.TempDir(), "palisade.key"), "PALISADE_REPORTS_DATABASE="+through)
	n.start()
	requireWarnings := func(want int) {
		t.Helper()
		log := n.log.String()
		if got := strings.Count(log, "the reports database cannot be reached: reports are refused until it answers"); got != want || strings.Count(log, "level=WARN") != want {
			t.Errorf("%d warnings that the replica is down, want %d: %s", got, want, log)
		}
	}
	requireWarnings(1)
	const down = "reports cannot be read now: their database (reports-database) does not answer"
	n.upload("acme/a")
	requireNoReports(t, n, down)
	replica.up()
	requireReports(t, n, "acme/a")
	replica.down()
	n.upload("acme/b")
	requireNoReports(t, n, down)
	replica.up()
	requireReports(t, n, "acme/b")
	requireWarnings(2)
}

// TestReportsOfAnotherInstallation: a replica that was down at the start is validated when it answers, so that no
// caller gets reports of another installation.
func TestReportsOfAnotherInstallation(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	database, other := pgtest.NewDatabase(t), pgtest.NewDatabase(t)
	foreign, through := newRelay(t, other)
	newNode(t, "other", binary(t), other, filepath.Join(t.TempDir(), "other.key")).start()
	n := newNode(t, "node", binary(t), database, filepath.Join(t.TempDir(), "palisade.key"), "PALISADE_REPORTS_DATABASE="+through)
	n.start()
	foreign.up()
	requireNoReports(t, n, "reports cannot be read: their database (reports-database) cannot be used")
	if log := n.log.String(); !strings.Contains(log, "is the database of another installation, not a replica of") {
		t.Errorf("the log does not say why: %s", log)
	}
}
