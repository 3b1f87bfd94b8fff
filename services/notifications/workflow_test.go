package notifications_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/payload"
)

// sleeper accepts jobs for the server's node; its own node is never started.
type sleeper struct {
	river.WorkerDefaults[outbox.Deliver]
}

// Work is never called.
func (sleeper) Work(context.Context, *river.Job[outbox.Deliver]) error {
	return errors.New("not this node")
}

// queue enqueues jobs for the server.
func (c caller) queue(t testing.TB) *jobs.Jobs {
	t.Helper()
	q, err := jobs.New(c.Store, slog.New(slog.DiscardHandler), jobs.Work{Register: func(workers *river.Workers) { river.AddWorker(workers, sleeper{}) }})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// say sends a message from a step of a run.
func (c caller) say(t testing.TB, deploymentID int64, w outbox.Workflow) (n int, err error) {
	t.Helper()
	q := c.queue(t)
	w.DeploymentID = deploymentID
	err = c.Store.Write(tenant.NewContext(t.Context(), deploymentID), func(ctx context.Context, tx *ent.Tx) error {
		n, err = outbox.WorkflowMessage(ctx, tx, q, w)
		return err
	})
	return n, err
}

func summary(runID int64, path string, rules ...int64) outbox.Workflow {
	return outbox.Workflow{
		WorkflowMessage: payload.WorkflowMessage{Workflow: "code-audit", RunID: runID, Title: "3 issues in acme/web", Text: "high: SQL injection at app/db.py:42"},
		Step:            "tell", Path: path, SubmittedAt: 1777890030123456, RuleIDs: rules,
	}
}

func TestWorkflowIsDelivered(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		first := s.rule(t, "first", to.URL, "")
		second := s.rule(t, "second", to.URL, `,"policy_slugs":["rule-board-block"]`)
		s.rule(t, "off", to.URL, `,"is_enabled":false`)
		for range 3 { // a retried step
			if n, err := s.say(t, s.DeploymentID, summary(17, "")); n != 2 || err != nil {
				t.Fatalf("%d deliveries, %v", n, err)
			}
		}
		if n, err := s.say(t, s.DeploymentID, summary(17, "units[1]", second)); n != 1 || err != nil {
			t.Fatalf("%d deliveries, %v", n, err)
		}
		listed := s.waitState(t, "DELIVERED", 3)
		ids := map[string]int{}
		for _, d := range listed {
			ids[d.EventID]++
			if d.Kind != "DELIVERY_KIND_WORKFLOW" || !eventIDForm.MatchString(d.EventID) {
				t.Errorf("got %+v", d)
			}
		}
		if len(ids) != 2 || listed[0].RuleID != fmt.Sprint(second) || listed[2].RuleID != fmt.Sprint(first) {
			t.Errorf("got %+v", listed)
		}
		to.mu.Lock()
		defer to.mu.Unlock()
		for _, m := range to.ok {
			if !strings.HasPrefix(m.body, fmt.Sprintf(`{"palisade_workflow":{"deployment_id":%d,"workflow":"code-audit","job_id":17,"project_id":null,"title":"3 issues`, s.DeploymentID)) {
				t.Errorf("got %s", m.body)
			}
		}
	})
}

func TestWorkflowRules(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "globex")
		if n, err := s.say(t, s.DeploymentID, summary(1, "")); n != 0 || err != nil {
			t.Errorf("without a rule: %d, %v", n, err)
		}
		off := s.rule(t, "off", "https://hooks.acme.test/x", `,"is_enabled":false`)
		if n, err := s.say(t, s.DeploymentID, summary(1, "", off)); n != 0 || err != nil {
			t.Errorf("a rule that is disabled: %d, %v", n, err)
		}
		for _, foreign := range []struct{ deployment, rule int64 }{{other.DeploymentID, off}, {s.DeploymentID, off + 1000}} {
			var unknown outbox.UnknownRuleError
			if _, err := s.say(t, foreign.deployment, summary(1, "", foreign.rule)); !errors.As(err, &unknown) || unknown.ID != foreign.rule {
				t.Errorf("rule %d: %v", foreign.rule, err)
			}
		}
		if n := s.Store.Reader.Delivery.Query().Where(delivery.Kind(outbox.KindWorkflow)).CountX(s.System(t)); n != 0 {
			t.Errorf("%d deliveries", n)
		}
	})
}
