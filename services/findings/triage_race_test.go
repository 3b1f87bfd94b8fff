package findings_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Triage by filter evaluates the filter after it has the lock. "All open findings" excludes findings that a concurrent
// request has ignored.
func TestTriageEvaluatesTheFilterAfterTheLock(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		first, decided, answered := make(chan struct{}), make(chan error, 1), make(chan apitest.Answer, 1)
		release := make(chan struct{})
		letGo := sync.OnceFunc(func() { close(release) })
		defer letGo() // otherwise a test that ends before would wait for the transaction
		go func() {
			decided <- s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				lock := tx.Project.Query().Where(project.ID(l.projects["acme/web"]))
				if s.Store.Postgres() {
					lock.ForUpdate()
				}
				if _, err := lock.IDs(ctx); err != nil {
					return err
				}
				err := tx.Finding.Update().Where(finding.ID(l.findings["b"])).SetTriageState("ignored").SetStatus("ignored").Exec(ctx)
				close(first)
				<-release
				return err
			})
		}()
		select {
		case <-first:
		case err := <-decided:
			t.Fatalf("the first decision ended early: %v", err)
		}
		go func() {
			answered <- s.Try(t, s.Token, http.MethodPost, triagePath, `{"issue_type":"sast","status":"open","new_triage_state":"fixing"}`)
		}()
		if s.Store.Postgres() { // on SQLite, the second writer waits before its first query
			apitest.WaitForLock(t, s.Store)
		}
		letGo()
		if err := <-decided; err != nil {
			t.Fatal(err)
		}
		if answer := <-answered; answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		if row := stored(t, s, l, "b"); row.TriageState != "ignored" {
			t.Errorf("the decision to ignore became %s", row.TriageState)
		}
		if row := stored(t, s, l, "c"); row.TriageState != "fixing" {
			t.Errorf("the other finding is %s", row.TriageState)
		}
	})
}
