package automations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/finding"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/notifications/automations"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// today is the day since 1970, in UTC.
func today() int64 { return time.Now().Unix() / 86400 }

func (c caller) policies(more string) string {
	return fmt.Sprintf("/api/policies/v2/deployments/%d/remediation-policies%s", c.DeploymentID, more)
}

// apply replaces the remediation policies, after the server has enqueued its own runs of today.
func (c caller) apply(t testing.TB, policies ...string) {
	t.Helper()
	apitest.Eventually(t, "the runs of today are enqueued", func() bool { return c.jobs(t, "kind = 'policy_days' AND state = 'completed'") > 0 })
	c.Body(t, c.Token, http.MethodPut, c.policies(""), `{"bundle":{"policies":[`+strings.Join(policies, ",")+`]}}`, 200, "If-Match", "*")
}

// jobs counts jobs.
func (c caller) jobs(t testing.TB, where string) (n int) {
	t.Helper()
	reader, _ := c.Store.DB()
	if err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job WHERE "+where).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// policy is an active policy with conditions and actions.
func policy(name, conditions string, actions ...string) string {
	return fmt.Sprintf(`{"name":%q,"active":true,"filters":{"mode":"all","conditions":[%s]},"actions":[%s]}`, name, conditions, strings.Join(actions, ","))
}

func notify(rule string) string {
	return fmt.Sprintf(`{"type":"notify","config":{"notification_rule_id":%q}}`, rule)
}

const (
	high   = `{"type":"severity","values":["high"]}`
	review = `{"type":"set_state","config":{"state":"Reviewing","note":"by policy"}}`
)

// policyRun is an entry of the run log of a policy.
type policyRun struct {
	ScanID             string `json:"scan_id"`
	TriageChangeID     string `json:"triage_change_id"`
	Day                string
	Evaluated, Matched string
	Outcomes           []struct {
		Type   string
		Acted  bool
		Detail string
	}
}

func (c caller) policyRuns(t testing.TB, slug string) []policyRun {
	t.Helper()
	var list struct{ Runs []policyRun }
	decode(t, c.Get(t, c.policies("/"+slug+"/runs")), &list)
	return list.Runs
}

// awaitPolicy waits until the policy has run n times, and no job waits.
func (c caller) awaitPolicy(t testing.TB, slug string, n int) []policyRun {
	t.Helper()
	c.idle(t)
	runs := c.policyRuns(t, slug)
	if len(runs) != n {
		t.Fatalf("%s has run %d times, want %d: %+v", slug, len(runs), n, runs)
	}
	return runs
}

// idle waits until no job of automations or policies waits or runs.
func (c caller) idle(t testing.TB) {
	t.Helper()
	apitest.Eventually(t, "the jobs end", func() bool {
		return c.jobs(t, "queue IN ('automations', 'policies') AND state NOT IN ('completed', 'cancelled')") == 0
	})
}

// day runs the policies of a day.
func (c caller) day(t testing.TB, number int64) {
	t.Helper()
	c.enqueueDay(t, number)
	c.idle(t)
}

func (c caller) enqueueDay(t testing.TB, number int64) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	queue, err := jobs.New(c.Store, log, automations.Background(c.Store, nil, log))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Store.Write(c.System(t), func(ctx context.Context, _ *ent.Tx) error {
		return queue.Enqueue(ctx, outbox.PolicyDay{DeploymentID: c.DeploymentID, Day: number}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// told are the messages of policies.
func (c caller) told(t testing.TB) (messages []string) {
	t.Helper()
	for _, d := range c.Store.Reader.Delivery.Query().Order(ent.Asc(delivery.FieldID)).Where(delivery.Kind("policy")).AllX(c.System(t)) {
		messages = append(messages, string(d.Payload))
	}
	return messages
}

// wantTold requires a number of messages, and texts in the last one.
func (c caller) wantTold(t testing.TB, n int, holds ...string) {
	t.Helper()
	messages := c.told(t)
	if len(messages) != n {
		t.Fatalf("%d messages, want %d: %v", len(messages), n, messages)
	}
	for _, text := range holds {
		if !strings.Contains(messages[n-1], text) {
			t.Errorf("%s does not say %s", messages[n-1], text)
		}
	}
}

// triage triages the finding of a path on main.
func (c caller) triage(t testing.TB, path, state string) {
	t.Helper()
	f := c.Store.Reader.Finding.Query().Where(finding.FilePath(path), finding.Ref("refs/heads/main")).OnlyX(c.System(t))
	c.Body(t, c.Token, http.MethodPost, "/api/v1/deployments/"+c.Slug+"/triage",
		fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":%q}`, f.ID, state), 200)
}

// TestPolicyTellsOnce: a policy sends one message about all new findings of a scan, once for each identity.
func TestPolicyTellsOnce(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		tell := policy("Tell", high, notify(s.rule(t)), `{"type":"block"}`)
		s.apply(t, tell)
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go", "warning:c.go"))
		runs := s.awaitPolicy(t, "tell", 1)
		if r := runs[0]; r.ScanID == "" || r.Evaluated != "3" || r.Matched != "2" || len(r.Outcomes) != 1 || r.Outcomes[0].Type != "notify" || !r.Outcomes[0].Acted {
			t.Errorf("the run is %+v", r)
		}
		s.wantTold(t, 1, `"policy_slug":"tell"`, `"policy":"Tell"`, `"cause":"scan"`, `"matched":2`, "acme.error at a.go in acme/web (main)")
		list, err := policiesv1.NewPoliciesV2ServiceClient(s.Conn).ListRemediationPolicyRuns(s.Context(t, s.Token),
			&policiesv1.ListRemediationPolicyRunsRequest{DeploymentId: s.DeploymentID, Slug: "tell"})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, list, s.Get(t, s.policies("/tell/runs")))

		// The same again, on other refs and on the next days: nothing.
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go", "warning:c.go"))
		s.Upload(t, "acme/web", "next", report("error:a.go", "error:b.go"))
		s.day(t, today()+1)
		s.day(t, today()+2)
		s.awaitPolicy(t, "tell", 1)

		// A pull request with another finding.
		s.Upload(t, "acme/web", "refs/pull/7/merge", report("error:a.go", "error:d.go"))
		s.awaitPolicy(t, "tell", 2)
		s.wantTold(t, 2, `"matched":1`, "d.go")
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go", "warning:c.go", "error:d.go")) // merged
		s.awaitPolicy(t, "tell", 2)

		// Fixed, and back again.
		s.Upload(t, "acme/web", "main", report("error:b.go", "error:d.go"))
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go", "error:d.go"))
		s.awaitPolicy(t, "tell", 3)
		s.wantTold(t, 3, `"matched":1`, "a.go")
		s.day(t, today()+3)
		s.awaitPolicy(t, "tell", 3)

		// Another description is the same policy. Another condition is not.
		s.apply(t, strings.Replace(tell, `"active"`, `"description":"Ask us","active"`, 1))
		s.day(t, today()+4)
		s.awaitPolicy(t, "tell", 3)
		s.apply(t, strings.Replace(tell, `"high"`, `"high","critical"`, 1))
		s.day(t, today()+5)
		if r := s.awaitPolicy(t, "tell", 4)[0]; r.Day == "" || r.ScanID != "" || r.Matched != "3" || r.Evaluated != "3" {
			t.Errorf("the run of the day is %+v", r)
		}
		s.wantTold(t, 4, `"cause":"day"`, `"matched":3`)

		// Deleted and stored again: another policy.
		s.apply(t)
		if n := s.Store.Reader.PolicyAct.Query().CountX(s.System(t)) + s.Store.Reader.PolicyRun.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d acts and runs of a deleted policy", n)
		}
		s.apply(t, tell)
		s.day(t, today()+6)
		s.awaitPolicy(t, "tell", 1)
		s.wantTold(t, 5)
	})
}

// TestMessagesListTheWorst: a message about more findings than it lists names the worst ones.
func TestMessagesListTheWorst(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		rule := s.rule(t)
		s.apply(t, policy("Tell", "", notify(rule)))
		s.create(t, fmt.Sprintf(`{"name":"Tell","actions":[{"type":"ACTION_TYPE_WEBHOOK","config":{"notification_rule_id":%q}}]}`, rule))
		var results []string
		for i := range 60 {
			results = append(results, fmt.Sprintf("warning:w%02d.go", i))
		}
		s.Upload(t, "acme/web", "main", report(append(results, "error:last.go")...))
		s.awaitPolicy(t, "tell", 1)
		sent := s.Store.Reader.Delivery.Query().Where(delivery.KindIn("policy", "automation")).AllX(s.System(t))
		if len(sent) != 2 {
			t.Errorf("%d messages", len(sent))
		}
		for _, d := range sent {
			text := string(d.Payload)
			if !strings.Contains(text, `"message":"high: acme.error at last.go in acme/web (main), finding `) || !strings.Contains(text, "and 11 more") {
				t.Errorf("%s lists %s", d.Kind, text)
			}
		}
	})
}

// TestPolicySetsState: policies triage what nobody has triaged, and never against a person.
func TestPolicySetsState(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go", "warning:c.go"))
		s.triage(t, "b.go", "reopened")
		s.apply(t, policy("Review", high, review))
		s.day(t, today()+1)
		if r := s.awaitPolicy(t, "review", 1)[0]; r.Matched != "1" || !strings.Contains(r.Outcomes[0].Detail, "triaged 1 finding as reviewing") {
			t.Errorf("the run is %+v", r)
		}
		want := func(ref string, states ...string) {
			t.Helper()
			got := s.states(t, ref)
			for i, file := range []string{"a.go", "b.go", "c.go"} {
				if got[file] != states[i] {
					t.Errorf("%s on %s is %s, want %s", file, ref, got[file], states[i])
				}
			}
		}
		want("main", "reviewing", "reopened", "untriaged")
		if got := s.Get(t, fmt.Sprintf("/api/agent/deployments/%d/findings/v2/changes", s.DeploymentID)); !strings.Contains(got, `"Review"`) {
			t.Errorf("the changes do not name the policy: %s", got)
		}
		// A person opens it: that stays, at the triage, at scans and on the next day.
		s.triage(t, "a.go", "reopened")
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go", "warning:c.go"))
		s.day(t, today()+2)
		s.awaitPolicy(t, "review", 1)
		want("main", "reopened", "reopened", "untriaged")
		// What a policy decides triggers neither policies nor automations.
		automation := s.create(t, fmt.Sprintf(`{"name":"Tell","triggerSource":"TRIGGER_SOURCE_ISSUE_TRIAGED","actions":[{"type":"ACTION_TYPE_WEBHOOK","config":{"notification_rule_id":%q}}]}`, s.rule(t)))
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go", "warning:c.go", "error:d.go"))
		s.awaitPolicy(t, "review", 2)
		if got := s.states(t, "main")["d.go"]; got != "reviewing" || len(s.runs(t, automation)) != 0 {
			t.Errorf("d.go is %s, and the automation ran %d times", got, len(s.runs(t, automation)))
		}
	})
}

// TestPolicyAfterTriage: a triage is an event of policies; what needs no action is not told.
func TestPolicyAfterTriage(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go"))
		s.apply(t, policy("Tell", `{"type":"finding_state","values":["existing"]}`, notify(s.rule(t))))
		s.triage(t, "a.go", "ignored")
		s.awaitPolicy(t, "tell", 0)
		s.triage(t, "a.go", "reopened")
		if r := s.awaitPolicy(t, "tell", 1)[0]; r.TriageChangeID == "" || r.Matched != "1" {
			t.Errorf("the run is %+v", r)
		}
		s.wantTold(t, 1, `"cause":"triage"`, "a.go")
		s.triage(t, "a.go", "fixing")
		s.day(t, today()+1)
		s.awaitPolicy(t, "tell", 2)
		s.wantTold(t, 2, "b.go", `"matched":1`)
	})
}

// TestPolicyKnowsTheBase: at scans, new is what the gate calls new; a decision about the same code counts.
func TestPolicyKnowsTheBase(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.Upload(t, "acme/web", "main", report("error:a.go", "error:b.go"))
		rule := s.rule(t)
		s.apply(t, policy("New", `{"type":"finding_state","values":["new"]}`, notify(rule)), policy("Old", `{"type":"finding_state","values":["existing"]}`, notify(rule)))
		s.triage(t, "b.go", "ignored")
		s.Upload(t, "acme/web", "refs/pull/8/merge", report("error:a.go", "error:b.go", "error:c.go"))
		if r := s.awaitPolicy(t, "new", 1)[0]; r.Matched != "1" || r.Evaluated != "2" { // b.go is ignored from the beginning
			t.Errorf("the run is %+v", r)
		}
		if r := s.awaitPolicy(t, "old", 1)[0]; r.Matched != "1" {
			t.Errorf("the run is %+v", r)
		}
		messages := s.told(t)
		if len(messages) != 2 || !strings.Contains(messages[0], "c.go") || !strings.Contains(messages[1], "a.go") {
			t.Errorf("the messages are %v", messages)
		}
	})
}

// TestPolicyLimit: what is not sent because of the limit, or because the rule is disabled, is sent later.
func TestPolicyLimit(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.apply(t, policy("Tell", high, notify(s.rule(t))))
		id := s.Store.Reader.RemediationPolicy.Query().OnlyIDX(s.System(t))
		write := func(change func(ctx context.Context, tx *ent.Tx) error) {
			t.Helper()
			if err := s.Store.Write(s.System(t), change); err != nil {
				t.Fatal(err)
			}
		}
		write(func(ctx context.Context, tx *ent.Tx) error {
			return tx.PolicyRun.Create().SetDeploymentID(s.DeploymentID).SetPolicyID(id).SetCause("scan").SetCauseID(9999).SetEvaluated(1).SetMatched(1).
				SetContent([]byte{}).SetSent(100).SetAt(time.Now().UnixMicro()).Exec(ctx)
		})
		s.Upload(t, "acme/web", "main", report("error:a.go"))
		if r := s.awaitPolicy(t, "tell", 2)[0]; r.Outcomes[0].Acted || !strings.Contains(r.Outcomes[0].Detail, "within an hour") {
			t.Errorf("above the limit: %+v", r)
		}
		write(func(ctx context.Context, tx *ent.Tx) error {
			if _, err := tx.PolicyRun.Delete().Exec(ctx); err != nil {
				return err
			}
			return tx.NotificationRule.Update().SetIsEnabled(false).Exec(ctx)
		})
		s.day(t, today()+1)
		if r := s.awaitPolicy(t, "tell", 1)[0]; r.Outcomes[0].Acted || !strings.Contains(r.Outcomes[0].Detail, "disabled or deleted") {
			t.Errorf("with a disabled rule: %+v", r)
		}
		write(func(ctx context.Context, tx *ent.Tx) error {
			return tx.NotificationRule.Update().SetIsEnabled(true).Exec(ctx)
		})
		s.day(t, today()+2)
		s.awaitPolicy(t, "tell", 2)
		s.wantTold(t, 1, "a.go")
	})
}

// TestPolicyRunsPages: the log is paged; each may read it who may read policies, and nobody else.
func TestPolicyRunsPages(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.apply(t, policy("Tell", high, notify(s.rule(t))))
		for i := range 3 {
			s.Upload(t, "acme/web", "main", report("error:a.go", fmt.Sprintf("error:new%d.go", i)))
			s.idle(t)
		}
		s.awaitPolicy(t, "tell", 3)
		var seen int
		for cursor := ""; ; {
			var page struct {
				Runs   []json.RawMessage
				Cursor string
			}
			decode(t, s.Get(t, s.policies("/tell/runs?limit=2&cursor="+cursor)), &page)
			seen += len(page.Runs)
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
		if seen != 3 {
			t.Errorf("the pages have %d runs", seen)
		}
		s.Body(t, s.Token, http.MethodGet, s.policies("/gone/runs"), "", 404)
		s.Body(t, s.Token, http.MethodGet, s.policies("/tell/runs?cursor=x"), "", 400)
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		s.Body(t, reader, http.MethodGet, s.policies("/tell/runs"), "", 200)
		other := s.AddTenant(t, "other")
		s.Body(t, other.Token, http.MethodGet, s.policies("/tell/runs"), "", 404)
		s.Body(t, other.Token, http.MethodGet, fmt.Sprintf("/api/policies/v2/deployments/%d/remediation-policies/tell/runs", other.DeploymentID), "", 404)
	})
}
