package nodestest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// silentReceiver accepts requests, never answers before the test ends, and counts them.
func silentReceiver(t testing.TB) (address string, calls *atomic.Int64) {
	release := make(chan struct{})
	calls = &atomic.Int64{}
	to := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(to.Close)
	t.Cleanup(func() { close(release) })
	return to.URL, calls
}

// TestMessagesBesideSilentReceivers: on two nodes, one deployment has very many messages to 100 receivers that
// never answer. The messages of another deployment are not delayed, and nodes can stop.
func TestMessagesBesideSilentReceivers(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	const rules, soon = 100, 2 * time.Second
	backlog := testrun.Size(20_000, 100_000)
	binary, database, key := binary(t), pgtest.NewDatabase(t), filepath.Join(t.TempDir(), "palisade.key")
	nodes := make([]*node, 2)
	for i := range nodes {
		nodes[i] = newNode(t, fmt.Sprintf("node%d", i+1), binary, database, key)
		nodes[i].start()
	}
	acme, other := apitest.Tenant{Slug: "acme", DeploymentID: 1, Token: token}, addTenant(t, database, key, "other")
	silent, calls := silentReceiver(t)
	to := newReceiver(t)
	base := func(i int) string { return "http://" + nodes[i%len(nodes)].http }
	add := func(of apitest.Tenant, url string) {
		rule := fmt.Appendf(nil, `{"notificationRule":{"name":"all","channel":"webhook","is_enabled":true,"send_scan_completion":false,"config":{"url":%q}}}`, url)
		post(t, base(0), of.Token, fmt.Sprintf("/api/agent/deployments/%d/actions", of.DeploymentID), rule)
	}
	for range rules {
		add(acme, silent)
	}
	add(other, to.URL)
	d := openDatabase(t, database)
	if _, err := d.db.ExecContext(t.Context(), `INSERT INTO deliveries (deployment_id, rule_id, event_id, kind, project_id, scan_id, payload, state, attempts,
			next_attempt_at, locked_until, give_up_at, last_status, last_error, created_at)
		SELECT 1, (SELECT MIN(id) FROM notification_rules WHERE deployment_id = 1) + i % $1, 'msg_backlog' || i, 'workflow', 0, 0, '{}', 'pending', 0, 1, 0,
			4000000000000000, 0, '', 1 FROM generate_series(1, $2) AS i`, rules, backlog); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "both nodes call the silent receivers", func() bool { return calls.Load() > 40 })
	arrived := func() int {
		to.mu.Lock()
		defer to.mu.Unlock()
		return len(to.got)
	}
	var took []time.Duration
	for i := range 9 {
		project := fmt.Sprintf("other/p%d", i)
		path := "/api/v1/deployments/other/reports?" + url.Values{"project": {project}, "ref": {"main"}}.Encode()
		post(t, base(i), other.Token, path, report(project))
		begun := time.Now()
		apitest.Eventually(t, "the message of the other deployment arrives", func() bool { return arrived() == i+1 })
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("during %d unanswered calls, messages took %v", calls.Load(), took)
	if fastest := took[0]; fastest > soon { // compare the fastest: a busy machine slows down some, a blocked queue all
		t.Errorf("each message took at least %s, want at most %s", fastest, soon)
	}
	if twice := d.number("SELECT COUNT(*) FROM (SELECT event_id FROM deliveries WHERE deployment_id = $1 GROUP BY event_id HAVING COUNT(*) > 1) AS t", other.DeploymentID); twice != 0 {
		t.Errorf("%d messages are duplicates", twice)
	}
	for _, n := range nodes {
		stopping := time.Now()
		n.stop()
		if took := time.Since(stopping); took > time.Minute {
			t.Errorf("%s ended after %s", n.name, took)
		}
	}
}
