package notifications_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// backlogSQL writes due deliveries of rules with consecutive ids.
const backlogSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(? AS INTEGER) - 1)
INSERT INTO deliveries (deployment_id, rule_id, event_id, kind, project_id, scan_id, payload, state, attempts, next_attempt_at, locked_until,
	give_up_at, last_status, last_error, created_at)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + i %% CAST(? AS INTEGER), 'msg_backlog' || i, 'workflow', 0, 0, CAST(? AS %s), 'pending', 0, 1, 0,
	CAST(? AS BIGINT), 0, '', 1 FROM n`

// backlog makes n messages of rules with consecutive ids due.
func (c caller) backlog(t testing.TB, n int, firstRule int64, rules int) {
	t.Helper()
	bytes := map[bool]string{true: "bytea", false: "blob"}[c.Store.Postgres()]
	err := c.Store.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		return c.Store.Exec(ctx, tx, fmt.Sprintf(backlogSQL, bytes), n, c.DeploymentID, firstRule, rules,
			[]byte(`{"semgrep_scan":{"id":1}}`), store.Now()+time.Hour.Microseconds())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rules creates rules with consecutive ids, and returns the first id.
func (c caller) rules(t testing.TB, n int, url string) (first int64) {
	t.Helper()
	for i := range n {
		id := c.rule(t, fmt.Sprintf("rule %d", i), url, "")
		if first == 0 {
			first = id
		}
		if id != first+int64(i) {
			t.Fatalf("rule %d has the id %d, the first one %d", i, id, first)
		}
	}
	return first
}

// neighbour is another sender with a receiver of its own, which has received messages already.
type neighbour struct {
	caller
	to   *receiver
	last string // id of a finished delivery
}

func (c caller) neighbour(t testing.TB, other apitest.Tenant) *neighbour {
	t.Helper()
	theirs := *c.Server
	theirs.Tenant = other
	n := &neighbour{caller: caller{Server: &theirs}, to: newReceiver(t, nil)}
	rule := n.rule(t, "neighbour", n.to.URL, `,"send_scan_completion":false`)
	n.Upload(t, "acme/neighbour", "main", report("a"))
	n.to.waitFor(1)
	apitest.Eventually(t, "the first message is in the ledger", func() bool {
		list := n.ledger(t, fmt.Sprintf("?state=DELIVERY_STATE_DELIVERED&ruleId=%d", rule))
		if len(list) > 0 {
			n.last = list[0].ID
		}
		return len(list) > 0
	})
	return n
}

// requireFirst sends messages one by one, and requires that one of them arrives before more than a few others have
// ended. The quickest counts: a busy machine delays some messages, a real block delays all.
func (n *neighbour) requireFirst(t testing.TB, others func() int, few int) {
	t.Helper()
	var took []time.Duration
	var passed []int
	for range 5 {
		had, before, begun := len(n.to.taken()), others(), time.Now()
		n.Body(t, n.Token, http.MethodPost, n.deliveries("/"+n.last+"/replay"), "{}", 200)
		n.to.waitFor(had + 1)
		took, passed = append(took, time.Since(begun)), append(passed, others()-before)
	}
	t.Logf("messages took %v, and %v others ended meanwhile", took, passed)
	if least := slices.Min(passed); least > few {
		t.Errorf("%d others and more ended before each message arrived, want at most %d: %v", least, few, passed)
	}
}

// silence is a receiver that does not answer before the test ends.
type silence struct {
	url          string
	begun, ended atomic.Int64
}

func silent(t testing.TB) *silence {
	t.Helper()
	to, release := newReceiver(t, nil), make(chan struct{})
	s := &silence{url: to.URL}
	to.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.begun.Add(1)
		defer s.ended.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not see that the caller is gone
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	return s
}

func (s *silence) calls() int { return int(s.begun.Load()) }
func (s *silence) over() int  { return int(s.ended.Load()) }

// requireWaiting requires that as many calls wait as may, and that the first ones were not more.
func (s *silence) requireWaiting(t testing.TB, least, most int) {
	t.Helper()
	apitest.Eventually(t, fmt.Sprintf("%d calls wait", least), func() bool {
		over := s.over() // before the others: a call that ends in between does not wait
		return s.calls()-over >= least
	})
	if n := s.calls(); s.over() == 0 && n > most {
		t.Errorf("%d calls to receivers that do not answer, want at most %d", n, most)
	}
}

// A message arrives at once despite a large backlog of another deployment.
func TestMessageBesideABacklog(t *testing.T) {
	testrun.Deep(t) // measures the latency of a neighbour
	each(t, func(t *testing.T, s caller) {
		other := s.neighbour(t, s.AddTenant(t, "globex"))
		busy := newReceiver(t, func(message) int {
			<-time.After(100 * time.Millisecond)
			return http.StatusOK
		})
		first := s.rules(t, 4, busy.URL)
		size := testrun.Size(20_000, 100_000)
		s.backlog(t, size, first, 4)
		s.Body(t, s.Token, http.MethodPost, s.actions(fmt.Sprintf("/%d/test", first)), "{}", 200)
		other.requireFirst(t, func() int { return len(busy.taken()) }, size/20)
		busy.waitFor(16)
		s.Body(t, s.Token, http.MethodDelete, s.actions(fmt.Sprintf("/%d", first)), "", 200)
	})
}

// While one deployment has 100 silent receivers, messages of another deployment arrive at once, and so do messages of a
// rule with another receiver of the same deployment.
func TestMessageBesideSilentReceivers(t *testing.T) {
	testrun.Deep(t) // measures the latency of a neighbour
	each(t, func(t *testing.T, s caller) {
		other := s.neighbour(t, s.AddTenant(t, "globex"))
		to := silent(t)
		s.backlog(t, 1000, s.rules(t, 100, to.url), 100)
		other.requireFirst(t, to.over, 0)
		to.requireWaiting(t, 16, 32) // what one deployment may have
	})
}

// A slow rule does not delay the other rules of its deployment.
func TestMessageBesideASlowRule(t *testing.T) {
	testrun.Deep(t) // measures the latency of a neighbour
	each(t, func(t *testing.T, s caller) {
		quick := s.neighbour(t, s.Tenant)
		to := silent(t)
		s.backlog(t, 1000, s.rules(t, 1, to.url), 1)
		quick.requireFirst(t, to.over, 0)
		to.requireWaiting(t, 8, 8) // what one rule may have
	})
}

// A server with silent receivers stops in time; delivered messages are recorded, and interrupted ones are retried.
func TestStopBesideSilentReceivers(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		const grace = 2 * time.Second
		to := silent(t)
		quick := newReceiver(t, nil)
		var st *store.Store
		var ended time.Time
		t.Run("run", func(t *testing.T) {
			server := apitest.Start(t, func(c *config.Config) {
				on(c)
				c.EgressAllow, c.ShutdownGrace = "127.0.0.1", grace
			})
			var err error
			if st, err = store.Open(t.Context(), store.Options{DataDir: server.Config.Data, Database: server.Config.Database}); err != nil {
				t.Fatal(err)
			}
			s := caller{Server: server}
			s.backlog(t, 100, s.rules(t, 1, to.url), 1)
			s.rule(t, "quick", quick.URL, "")
			apitest.Eventually(t, "the receiver was called", func() bool { return to.calls() == 8 })
			s.Upload(t, "acme/web", "main", report("a"))
			quick.waitFor(2)
			ended = time.Now()
		})
		took := time.Since(ended)
		system := tenant.System(context.Background())
		delivered := st.Reader.Delivery.Query().Where(delivery.State("delivered")).CountX(system)
		attempts := st.Reader.DeliveryAttempt.Query().CountX(system)
		held := st.Reader.Delivery.Query().Where(delivery.State("pending"), delivery.LockedUntilGT(0)).CountX(system)
		t.Logf("it took %s; %d delivered, %d attempts, %d leased", took, delivered, attempts, held)
		if took > grace+5*time.Second || delivered != 2 || attempts != 2 || held != 0 {
			t.Errorf("it took %s to stop; %d were delivered in %d attempts, %d are held", took, delivered, attempts, held)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}
