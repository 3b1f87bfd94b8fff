package ignores_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/ignores"
)

// second opens the database of the server again, as another node does, with a guard before its commits.
func (s caller) second(t testing.TB, guard func(ctx context.Context) error) *store.Store {
	t.Helper()
	st, _ := apitest.OpenRecorded(t, s.Server, func(string) bool { return false })
	st.Guard(guard)
	return st
}

// beforeBatches is the number of transactions of a job before the first batch: on PostgreSQL, one waits for imports.
func (s caller) beforeBatches() int {
	if s.Store.Postgres() {
		return 1
	}
	return 0
}

// TestApplyBeginsAgain: a job that is killed between two batches and begins again has the result of one job.
func TestApplyBeginsAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		const files = 2500
		names := []string{"app/a.go"}
		for i := range files {
			names = append(names, fmt.Sprintf("vendor/f%d.go", i))
		}
		s.upload(t, web, names...)
		s.store(t, "vendor/")
		killed, writes := errors.New("killed"), 0
		st := s.second(t, func(context.Context) error {
			if writes++; writes == s.beforeBatches()+2 {
				return killed
			}
			return nil
		})
		if err := ignores.Apply(t.Context(), st, s.DeploymentID); !errors.Is(err, killed) {
			t.Fatalf("the first run ended with %v", err)
		}
		muted := func() int {
			return s.Store.Reader.Finding.Query().Where(finding.State("muted"), finding.Status("ignored"), finding.IgnoredByPattern("vendor/")).CountX(s.own(t))
		}
		if n := muted(); n == 0 || n == files {
			t.Fatalf("the run was not killed in the middle: %d findings are ignored", n)
		}
		if err := ignores.Apply(t.Context(), s.Store, s.DeploymentID); err != nil {
			t.Fatal(err)
		}
		if n := muted(); n != files || s.findings(t, web)["app/a.go"].Status != "open" {
			t.Errorf("%d findings are ignored, want %d", n, files)
		}
		if n := s.Store.Reader.FindingEvent.Query().Where(findingevent.Kind("path_ignored")).CountX(s.own(t)); n != files {
			t.Errorf("%d events, want one for each of %d findings", n, files)
		}
	})
}

// TestImportDuringApply: a report that is imported while the job runs ends with the right states.
func TestImportDuringApply(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		if !s.Store.Postgres() {
			t.Skip("SQLite has one writer")
		}
		s.upload(t, web, "app/a.go", "vendor/b.go", "vendor/gone.go")
		s.store(t, "vendor/")
		writes, inside, release := 0, make(chan struct{}), make(chan struct{})
		st := s.second(t, func(context.Context) error {
			if writes++; writes == s.beforeBatches()+1 {
				close(inside)
				<-release
			}
			return nil
		})
		applied := make(chan error, 1)
		go func() { applied <- ignores.Apply(t.Context(), st, s.DeploymentID) }()
		select {
		case <-inside: // it holds the project and has written, and has not committed
		case err := <-applied:
			t.Fatalf("the job ended early: %v", err)
		}
		letGo := sync.OnceFunc(func() { close(release) })
		defer letGo() // otherwise a test that ends before would wait for the transaction
		imported := make(chan apitest.Answer, 1)
		go func() {
			imported <- s.Try(t, s.Token, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/reports?project=acme/web&ref=main",
				string(report("app/a.go", "vendor/b.go", "vendor/new.go")))
		}()
		apitest.WaitForLock(t, s.Store) // the import waits for the job
		letGo()
		if err := <-applied; err != nil {
			t.Fatal(err)
		}
		if answer := <-imported; answer.Status != http.StatusOK {
			t.Fatalf("the import: %d %s", answer.Status, answer.Body)
		}
		got := s.states(t, web)
		for _, line := range []string{"app/a.go unresolved open -", "vendor/b.go muted ignored vendor/", "vendor/new.go muted ignored vendor/"} {
			if !strings.Contains(got, line) {
				t.Errorf("%s is not among\n%s", line, got)
			}
		}
	})
}
