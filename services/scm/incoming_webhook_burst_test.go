package scm_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/webhookevent"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// eventually waits for a condition on the only event.
func (r receiver) eventually(t testing.TB, what string, yes func(*ent.WebhookEvent) bool) {
	t.Helper()
	apitest.Eventually(t, what, func() bool { return yes(r.Store.Reader.WebhookEvent.Query().OnlyX(r.System(t))) })
}

// post sends a GitHub event with the client and returns the status.
func (r receiver) post(client *http.Client, name, body, signature string) (int, error) {
	request, err := http.NewRequest(http.MethodPost, r.URL+r.path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-GitHub-Event", name)
	request.Header.Set("X-Hub-Signature-256", signature)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// burst sends bodies on several connections as fast as possible, and requires 200 for each.
func (r receiver) burst(t testing.TB, connections int, bodies []string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	var senders sync.WaitGroup
	var next, refused atomic.Int64
	for range connections {
		senders.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(bodies)); i = next.Add(1) - 1 {
				status, err := r.post(client, "pull_request", bodies[i], digest(r.secret, bodies[i]))
				if (err != nil || status != http.StatusOK) && refused.Add(1) <= 3 {
					t.Errorf("event %d: %d, %v", i, status, err)
				}
			}
		})
	}
	began := time.Now()
	senders.Wait()
	t.Logf("%d events on %d connections in %v, %d refused", len(bodies), connections, time.Since(began).Round(time.Millisecond), refused.Load())
}

// eachLimited is eachConfig with a rate limit that even a slow machine exceeds. A credential may make five requests at
// once.
func eachLimited(t *testing.T, test func(t *testing.T, s configCaller)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		server := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow, c.RateLimit = "127.0.0.1", 5 })
		test(t, configCaller{server, scmv1.NewScmServiceClient(server.Conn), scmv1.NewScmSubscriptionsServiceClient(server.Conn)})
	})
}

// attackers try signatures for a webhook's key until their context ends.
type attackers struct {
	sync.WaitGroup
	slowed, taken atomic.Int64
}

func (a *attackers) attack(ctx context.Context, r receiver, body string) {
	for range 4 {
		a.Go(func() {
			for ctx.Err() == nil {
				switch status, _ := r.post(http.DefaultClient, "pull_request", body, digest("another secret", body)); status {
				case http.StatusTooManyRequests:
					a.slowed.Add(1)
				case http.StatusOK:
					a.taken.Add(1)
				}
			}
		})
	}
}

// TestBurst sends valid events as fast as possible, while another client at the same address tries signatures for the
// same key and has exhausted the address's limit. All valid events are accepted and processed, and the attempts are
// throttled.
func TestBurst(t *testing.T) {
	testrun.Deep(t) // has very many rows
	eachLimited(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		const requests = 20
		first, second := testrun.Size(200, 1500), testrun.Size(500, 5000)
		for i := range requests {
			s.Token = s.AddToken(t, s.Tenant, access.TokenSpec{}) // a new token with an unused limit
			s.Upload(t, "acme/web", fmt.Sprintf("refs/pull/%d/merge", 1000+i*(first+second)/requests), sarifOf(t, 42))
		}
		var bodies []string
		for i := range first + second {
			bodies = append(bodies, event(t, "github_pull_request", `"number": 17`, fmt.Sprintf(`"number": %d`, 1000+i)))
		}
		ctx, stop := context.WithCancel(t.Context())
		var others attackers
		others.attack(ctx, r, bodies[0])
		apitest.Eventually(t, "the attempts are slowed down", func() bool { return others.slowed.Load() > 0 })
		r.burst(t, 64, bodies[:first])
		r.burst(t, 16, bodies[first:])
		stop()
		others.Wait()
		if n := others.taken.Load(); n > 0 {
			t.Errorf("%d of the attempts were taken", n)
		}
		began := time.Now()
		s.settle(t)
		t.Logf("all acted on %v after the last", time.Since(began).Round(time.Millisecond))
		if n := s.Store.Reader.WebhookEvent.Query().Where(webhookevent.Failed(false), webhookevent.DueAtIsNil()).CountX(s.System(t)); n != first+second {
			t.Errorf("%d events are over", n)
		}
		open := s.Store.Reader.Finding.Query().Where(finding.Status("open"), finding.RefHasPrefix("refs/pull/"), finding.RefNEQ(pullRef)).CountX(s.System(t))
		if events := s.events(t); len(events) != requests || open != 0 {
			t.Errorf("%d findings were removed, %d are open", len(events), open)
		}
	})
}

// TestFullInbox: events above the limit get an error that hosts show; events of other deployments are accepted.
func TestFullInbox(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		body := event(t, "github_pull_request")
		numbers := "generate_series(1, 20000) AS numbers(n)"
		if !s.Store.Postgres() {
			numbers = "(WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000) SELECT n FROM numbers)"
		}
		later := store.Micros(time.Now().Add(time.Hour))
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return s.Store.Exec(ctx, tx, `INSERT INTO webhook_events (deployment_id, webhook_key, delivery_id, subject, happened_at, received_at, due_at)
				SELECT CAST(? AS bigint), 'k', CAST(n AS text), 's', 0, 0, CAST(? AS bigint) FROM `+numbers, s.DeploymentID, later)
		})
		if err != nil {
			t.Fatal(err)
		}
		answer := s.Do(t, "", http.MethodPost, r.path, body, "X-GitHub-Event", "pull_request", "X-Hub-Signature-256", digest(r.secret, body))
		if answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "30" || !strings.Contains(answer.Body, "20000 events of this deployment wait") {
			t.Errorf("%d %s, Retry-After %q", answer.Status, answer.Body, answer.Header.Get("Retry-After"))
		}
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.WebhookEvent.Delete().Exec(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Eventually(t, "there is room again", func() bool {
			return s.Do(t, "", http.MethodPost, r.path, body, "X-GitHub-Event", "pull_request", "X-Hub-Signature-256", digest(r.secret, body)).Status == http.StatusOK
		})
		s.settle(t)
	})
}

// TestManyEventsOfOneRequest: events are processed one after the other, without reading all of them for each.
func TestManyEventsOfOneRequest(t *testing.T) {
	testrun.Deep(t) // has very many rows
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		bodies := make([]string, testrun.Size(400, 2000))
		for i := range bodies {
			bodies[i] = event(t, "github_pull_request") + strings.Repeat(" ", i)
		}
		r.burst(t, 16, bodies)
		began := time.Now()
		s.settle(t)
		t.Logf("all acted on %v after the last", time.Since(began).Round(time.Millisecond))
		if got := s.events(t); len(got) != 2 {
			t.Errorf("%d findings were removed", len(got))
		}
	})
}

// TestTurnsOfDeployments: an event of one deployment is processed long before the backlog of another.
func TestTurnsOfDeployments(t *testing.T) {
	testrun.Deep(t) // measures the latency of a neighbour
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, _ := s.hooked(t)
		other := s.AddTenant(t, "umbrella")
		body := fmt.Sprintf(`{"type":"SCM_TYPE_GITHUB_ENTERPRISE","namespace":"acme","baseUrl":%q,"accessToken":%q,"subscribe":true}`, h.URL, h.Token)
		if got := s.Do(t, other.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", other.DeploymentID), body); got.Status != http.StatusCreated {
			t.Fatal(got.Body)
		}
		r := s.receiverOf(t, h.Hooks()[1])
		many := testrun.Size(2_000, 10_000)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			for n := range many {
				told := fmt.Sprintf(`{"deployment_id":%d,"config_id":1,"host":"github","base_url":%q,"event":{"Kind":"closed","At":"2026-01-01T00:00:00Z","Repository":"acme/none","Number":%d}}`,
					s.DeploymentID, h.URL, n+1)
				err := tx.WebhookEvent.Create().SetDeploymentID(s.DeploymentID).SetWebhookKey("k").SetDeliveryID(fmt.Sprint(n)).SetSubject(fmt.Sprintf("acme/none#%d", n+1)).
					SetHappenedAt(1).SetReceivedAt(store.Now()).SetDueAt(store.Now()).SetEvent([]byte(told)).Exec(ctx)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		busy := func() int {
			return s.Store.Reader.WebhookEvent.Query().Where(webhookevent.DeploymentID(s.DeploymentID), webhookevent.DueAtNotNil()).CountX(s.System(t))
		}
		apitest.Eventually(t, "the work has begun", func() bool { return busy() < many-50 })
		began := time.Now()
		r.gitHub(t, "pull_request", event(t, "github_pull_request"), 200, `{"status":"accepted"}`)
		apitest.Eventually(t, "the other's event is over", func() bool {
			return s.Store.Reader.WebhookEvent.Query().Where(webhookevent.DeploymentID(other.DeploymentID), webhookevent.DueAtIsNil()).ExistX(s.System(t))
		})
		left := busy()
		t.Logf("the other's event was over after %v, and %d others waited", time.Since(began).Round(time.Millisecond), left)
		if left == 0 {
			t.Error("the other's event had to wait for all of them")
		}
	})
}

// TestTwoNodes: two nodes receive the same events concurrently and process each once.
func TestTwoNodes(t *testing.T) {
	testrun.Deep(t) // waits for leases
	const events, requests = 300, 30
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		server := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		if !server.Store.Postgres() {
			t.Skip("on SQLite one node is all")
		}
		second := apitest.Start(t, func(c *config.Config) {
			*c = server.Config
			c.HTTP, c.GRPC, c.Metrics = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		})
		s := configCaller{server, scmv1.NewScmServiceClient(server.Conn), scmv1.NewScmSubscriptionsServiceClient(server.Conn)}
		_, r := s.hooked(t)
		other := r
		other.Server = second
		var bodies []string
		for i := range events {
			if i%(events/requests) == 0 {
				s.Upload(t, "acme/web", fmt.Sprintf("refs/pull/%d/merge", 1000+i), sarifOf(t, 42))
			}
			bodies = append(bodies, event(t, "github_pull_request", `"number": 17`, fmt.Sprintf(`"number": %d`, 1000+i)))
		}
		var senders sync.WaitGroup
		for _, node := range []receiver{r, other} {
			senders.Go(func() { node.burst(t, 8, bodies) })
		}
		senders.Wait()
		s.settle(t)
		if n := s.Store.Reader.WebhookEvent.Query().Where(webhookevent.Failed(false)).CountX(s.System(t)); n != events {
			t.Errorf("%d events are stored", n)
		}
		if got := s.events(t); len(got) != requests {
			t.Errorf("%d findings were removed", len(got))
		}
	})
}

// TestLostJobs: events without a job, and events of a dead worker, are recovered.
func TestLostJobs(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		// While another node has leased the event, no other worker takes it. The row is what a killed node leaves.
		r.gitHub(t, "pull_request", event(t, "github_pull_request", `"number": 17`, `"number": 99`), 200, `{"status":"accepted"}`)
		s.settle(t)
		store17 := func(due time.Time) {
			t.Helper()
			told := fmt.Sprintf(`{"deployment_id":%d,"config_id":1,"host":"github","base_url":%q,"event":{"Kind":"closed","At":%q,"Repository":"acme/web","Number":17}}`,
				s.DeploymentID, s.Store.Reader.ScmConfig.Query().OnlyX(s.System(t)).BaseURL, time.Now().UTC().Format(time.RFC3339Nano))
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				return tx.WebhookEvent.Create().SetDeploymentID(s.DeploymentID).SetWebhookKey("k").SetDeliveryID(fmt.Sprint(due)).SetSubject("acme/web#17").
					SetHappenedAt(store.Now()).SetReceivedAt(store.Now()).SetDueAt(store.Micros(due)).SetEvent([]byte(told)).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		store17(time.Now())
		s.settle(t)
		wantList(t, "without a job", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" removed", pullRef+" removed")
		s.Upload(t, "acme/web", pullRef, sarifOf(t, 42, 90))
		lease := time.Now().Add(5 * time.Second)
		store17(lease)
		s.settle(t)
		if now := time.Now(); now.Before(lease) {
			t.Errorf("taken at %s, before the end of the lease at %s", now, lease)
		}
		wantList(t, "after the lease", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" removed", pullRef+" removed")
		if got := s.events(t); len(got) != 4 {
			t.Errorf("events %q", got)
		}
	})
}
