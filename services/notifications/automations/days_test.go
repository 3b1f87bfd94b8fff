package automations_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/policyact"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestPolicyDayBeginsAgain: a run of the day that ends in the middle, between two policies and between two actions of
// one, does nothing twice and loses nothing when it begins again.
func TestPolicyDayBeginsAgain(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		var files []string
		for i := range 1201 {
			files = append(files, fmt.Sprintf("error:f%d.go", i))
		}
		s.Upload(t, "acme/web", "main", report(files...))
		rule := s.rule(t)
		s.apply(t, policy("First", high, notify(rule)), policy("Second", high, review, notify(rule)))
		whole := s.Store.Reader.RemediationPolicy.Query().Where(remediationpolicy.Slug("second")).OnlyX(s.System(t)).Content
		broken := &policiesv1.RemediationPolicy{}
		if err := proto.Unmarshal(whole, broken); err != nil {
			t.Fatal(err)
		}
		broken.GetActions()[1].Config["notification_rule_id"] = "broken"
		content, err := proto.Marshal(broken)
		if err != nil {
			t.Fatal(err)
		}
		s.store(t, "second", content)
		s.enqueueDay(t, today()+1)
		apitest.Eventually(t, "the job fails", func() bool { return s.jobs(t, "kind = 'run_policies_of_day' AND errors IS NOT NULL") > 0 })
		s.wantTold(t, 1, `"policy":"First"`, `"matched":1201`, "and 1151 more")
		if got := s.states(t, "main")["f7.go"]; got != "untriaged" || len(s.policyRuns(t, "second")) != 0 {
			t.Errorf("the second policy left %s and %v", got, s.policyRuns(t, "second"))
		}
		s.store(t, "second", whole)
		s.awaitPolicy(t, "first", 1)
		s.awaitPolicy(t, "second", 1)
		s.wantTold(t, 2, `"policy":"Second"`, `"matched":1201`)
		if n := s.Store.Reader.PolicyAct.Query().CountX(s.System(t)); n != 3*1201 {
			t.Errorf("%d acts are remembered, want %d", n, 3*1201)
		}
		s.day(t, today()+2)
		s.wantTold(t, 2)
	})
}

// TestPolicyDayLeavesArchivedProjects: a run of the day is about the projects that lists show.
func TestPolicyDayLeavesArchivedProjects(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.Upload(t, "acme/web", "main", report("error:a.go"))
		s.Upload(t, "acme/old", "main", report("error:old.go"))
		archive := func(archived bool) {
			t.Helper()
			s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/acme/projects/acme%2Fold", fmt.Sprintf(`{"archived":%t}`, archived), 200)
		}
		archive(true)
		s.apply(t, policy("Look", high, review))
		s.day(t, today()+1)
		if got := s.states(t, "main"); got["a.go"] != "reviewing" || got["old.go"] != "untriaged" {
			t.Errorf("the states are %v", got)
		}
		archive(false)
		s.day(t, today()+2)
		if got := s.states(t, "main"); got["old.go"] != "reviewing" {
			t.Errorf("when it is back: %v", got)
		}
	})
}

// TestPolicyTriagesManyInParts: more findings than one transaction may triage are triaged in several. A run that was
// aborted between them is continued, without repeating what it did before.
func TestPolicyTriagesManyInParts(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		const n = 5002
		var files []string
		for i := range n {
			files = append(files, fmt.Sprintf("error:f%d.go", i))
		}
		s.Upload(t, "acme/web", "main", report(files...))
		s.apply(t, policy("Both", high, review, notify(s.rule(t))))
		s.day(t, today()+1)
		want := func(changes int) {
			t.Helper()
			r := s.awaitPolicy(t, "both", 1)[0]
			if r.Matched != "5002" || !r.Outcomes[0].Acted || r.Outcomes[0].Detail != "triages 5002 findings as reviewing, 5000 at a time" {
				t.Errorf("the run is %+v", r)
			}
			s.wantTold(t, 1, `"matched":5002`)
			ctx := s.System(t)
			acts := s.Store.Reader.PolicyAct.Query().CountX(ctx)
			states := s.Store.Reader.Finding.Query().Where(finding.TriageState("reviewing")).CountX(ctx)
			if made := s.Store.Reader.TriageChange.Query().CountX(ctx); acts != 2*n || states != n || made != changes {
				t.Errorf("%d acts are remembered, %d findings are triaged by %d changes, want %d changes", acts, states, made, changes)
			}
		}
		want(2)
		// As if the last part had not been triaged when the server was killed.
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			last := tx.Finding.Query().Order(ent.Desc(finding.FieldID)).FirstX(ctx)
			if err := tx.Finding.UpdateOne(last).SetTriageState("untriaged").SetStatus("open").Exec(ctx); err != nil {
				return err
			}
			_, err := tx.PolicyAct.Delete().Where(policyact.Fingerprint(last.Fingerprint), policyact.Action("set_state")).Exec(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_, writer := s.Store.DB()
		if _, err := writer.ExecContext(t.Context(), "DELETE FROM river_job WHERE kind = 'run_policies_of_day'"); err != nil {
			t.Fatal(err)
		}
		s.day(t, today()+1)
		want(3)
	})
}

// store changes the content of a policy behind the API.
func (c caller) store(t testing.TB, slug string, content []byte) {
	t.Helper()
	err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.RemediationPolicy.Update().Where(remediationpolicy.Slug(slug)).SetContent(content).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
