package scm_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/apitest"
)

// fixOf stores a fix of a deployment's first finding, with an open pull request at the host; n distinguishes fixes.
func (c configCaller) fixOf(t testing.TB, of apitest.Tenant, n int, url string) {
	t.Helper()
	err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Finding.Query().Where(finding.DeploymentID(of.DeploymentID)).Order(ent.Asc(finding.FieldID)).First(ctx)
		if err != nil {
			return err
		}
		if err := row.Update().SetClickToFixState("open").Exec(ctx); err != nil {
			return err
		}
		return tx.AiFix.Create().SetDeploymentID(of.DeploymentID).SetFindingID(row.ID).SetStatus("opened").SetBranch(fmt.Sprintf("palisade/fix-%d", n)).
			SetPrURL(url).SetActorKind("").SetActorID(0).SetRequestedAt(int64(n)).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fixStates returns the fix states of findings in all deployments.
func (c configCaller) fixStates(t testing.TB) (states []string) {
	t.Helper()
	for _, row := range c.Store.Reader.Finding.Query().Where(finding.ClickToFixStateNotNil()).Order(ent.Asc(finding.FieldID)).AllX(c.System(t)) {
		states = append(states, *row.ClickToFixState)
	}
	return states
}

// TestFixIsMerged closes the pull requests of two fixes of one finding.
func TestFixIsMerged(t *testing.T) {
	t.Parallel()
	const page = "https://git.acme.test/acme/web/pull/"
	closed := func(t *testing.T, number int, merged bool) string {
		return event(t, "github_pull_request", `"number": 17`, fmt.Sprintf(`"number": %d`, number), `"merged": false`, fmt.Sprintf(`"merged": %t`, merged))
	}
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		other := s.AddTenant(t, "globex")
		if answer := s.Do(t, other.Token, "POST", "/api/v1/deployments/globex/reports?project=acme/web&ref=main", string(sarifOf(t, 42))); answer.Status != 200 {
			t.Fatal(answer.Body)
		}
		s.fixOf(t, other, 1, page+"31")
		s.fixOf(t, s.Tenant, 1, page+"31")
		send := func(body string, want ...string) {
			t.Helper()
			r.gitHub(t, "pull_request", body, 200, `{"status":"accepted"}`)
			s.settle(t)
			wantList(t, "states", s.fixStates(t), want...)
		}
		send(closed(t, 30, true), "open", "open") // not opened by Palisade
		send(closed(t, 31, false), "open")
		s.fixOf(t, s.Tenant, 2, page+"32")
		wantList(t, "another fix", s.fixStates(t), "open", "open")
		send(closed(t, 31, true), "open", "open") // not the latest
		send(closed(t, 32, true), "merged", "open")
		entries := s.Store.Reader.AuditEntry.Query().Where(auditentry.ActorKind("host")).Order(ent.Asc(auditentry.FieldID)).AllX(s.System(t))
		if len(entries) != 2 || entries[1].Changes[0].Kind != "ai_fix" {
			t.Errorf("audit entries %+v", entries)
		}
	})
}

// TestFixIsMergedAtGitLab: the project's name differs from the repository's.
func TestFixIsMergedAtGitLab(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, _ := s.gitLab(t, `,"subscribe":true`)
		r := s.receiverOf(t, h.Hooks()[0])
		s.Upload(t, "backend", mainRef, sarifOf(t, 42))
		s.fixOf(t, s.Tenant, 1, "https://git.acme.test/acme/platform/api/-/merge_requests/17")
		body := event(t, "gitlab_merge_request", `"state": "closed"`, `"state": "merged"`)
		r.answer(t, body, 200, `{"status":"accepted"}`, "X-Gitlab-Event", "Merge Request Hook", "X-Gitlab-Token", r.secret)
		s.settle(t)
		wantList(t, "states", s.fixStates(t), "merged")
	})
}
