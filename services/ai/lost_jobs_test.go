package ai_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// holding is a model that blocks its first answer until released; asked receives each question.
type holding struct {
	asked chan struct{}
	may   chan struct{}
	first chan struct{}
}

func newHolding() *holding {
	h := &holding{asked: make(chan struct{}, 20), may: make(chan struct{}), first: make(chan struct{}, 1)}
	h.first <- struct{}{}
	return h
}

func (h *holding) reply(r llmtest.Request) llmtest.Reply {
	h.asked <- struct{}{}
	answer := fitting(r, says("false_positive"))
	if r.SchemaName == "finding_fix" {
		answer = fixes(r)
	}
	select {
	case <-h.first:
		return llmtest.After(h.may, answer)
	default:
		return answer
	}
}

// age makes jobs of a kind look as if they were taken long ago.
func (s *modelled) age(t testing.TB, kind string) {
	t.Helper()
	taken := time.Now().Add(-2 * time.Minute).UTC().Format("2006-01-02 15:04:05.000")
	if s.Store.Postgres() {
		taken += "+00"
	}
	s.exec(t, "UPDATE river_job SET attempted_at = '"+taken+"' WHERE kind = '"+kind+"'")
}

// exec changes what no operation can change.
func (s *modelled) exec(t testing.TB, statement string) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *modelled) count(t testing.TB, what string) (n int) {
	t.Helper()
	reader, _ := s.Store.DB()
	if err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+what).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// swept runs the periodic sweep and waits for its end.
func (s *modelled) swept(t testing.TB) {
	t.Helper()
	apitest.Eventually(t, "the first sweep", func() bool { return s.count(t, "river_job WHERE kind = 'ai_sweep' AND state = 'completed'") > 0 })
	s.exec(t, `UPDATE river_job SET state = 'available', scheduled_at = '2026-01-01 00:00:00', finalized_at = NULL, unique_key = NULL
		WHERE kind = 'ai_sweep' AND state = 'completed'`)
	apitest.Eventually(t, "the sweep", func() bool {
		return s.count(t, "river_job WHERE kind = 'ai_sweep' AND state IN ('available', 'running')") == 0
	})
}

// settle waits until the jobs of the dead and the live worker have ended: a worker that lost its work checks once more.
func (s *modelled) settle(t testing.TB, kind string) {
	t.Helper()
	apitest.Eventually(t, "both jobs", func() bool {
		s.exec(t, "UPDATE river_job SET scheduled_at = '2026-01-01 00:00:00' WHERE kind = '"+kind+"' AND state = 'scheduled'")
		return s.count(t, "river_job WHERE kind = '"+kind+"' AND state = 'completed'") == 2
	})
}

// die expires the lease in the only row of a table, despite renewals, until the sweep has noticed it.
func (s *modelled) die(t testing.TB, kind, table string) {
	t.Helper()
	s.age(t, kind)
	apitest.Eventually(t, "the death is noticed", func() bool {
		s.exec(t, "UPDATE "+table+" SET lease_until = 1 WHERE round = 0")
		s.swept(t)
		return s.count(t, table+" WHERE round = 1") == 1
	})
}

// A worker with heartbeats keeps its work even if it takes long. Work of a dead worker continues once, and its late
// result is dropped.
func TestLostAnalysis(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		model := newHolding()
		s := startModelled(t, model.reply, on)
		id := s.seed(t, fact{})
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
		<-model.asked
		s.age(t, "ai_analysis")
		s.swept(t)
		if n := s.count(t, "river_job WHERE kind = 'ai_analysis'"); n != 1 {
			t.Fatalf("%d jobs while the worker lives", n)
		}
		s.die(t, "ai_analysis", "ai_analyses")
		if a := s.analysis(t, id); a.Status != "done" || a.Round != 1 || !a.Applied {
			t.Errorf("%+v", a)
		}
		s.age(t, "ai_analysis")
		s.swept(t)
		close(model.may)
		s.settle(t, "ai_analysis")
		if n := s.count(t, "river_job WHERE kind = 'ai_analysis'"); n != 2 || len(s.model.Requests()) != 2 {
			t.Errorf("%d jobs, %d questions", n, len(s.model.Requests()))
		}
		if got := s.events(t, id); got != "autotriaged open>provisionally_ignored by job" {
			t.Error(got)
		}
	})
}

// Work that kills its workers ends, without another question to the model each time.
func TestDeadlyAnalysis(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		model := newHolding()
		s := startModelled(t, model.reply, on)
		id := s.seed(t, fact{})
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
		<-model.asked
		args := `{"deployment_id":%d,"analysis_id":%d,"verdict":true,"round":4}`
		a := s.Store.Reader.AiAnalysis.Query().OnlyX(s.System(t))
		s.exec(t, "UPDATE river_job SET args = '"+fmt.Sprintf(args, s.DeploymentID, a.ID)+"' WHERE kind = 'ai_analysis'")
		s.exec(t, "UPDATE ai_analyses SET round = 4, lease_until = 1")
		s.age(t, "ai_analysis")
		s.swept(t)
		if a := s.analysis(t, id); a.Status != "failed" || !strings.Contains(a.Error, "again and again") || len(s.model.Requests()) != 1 {
			t.Errorf("%+v after %d questions", a, len(s.model.Requests()))
		}
		close(model.may)
	})
}

func TestLostFix(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		model := newHolding()
		s := startModelled(t, model.reply, on)
		h := hosttest.NewGitHub(t)
		h.Files = hosttest.Files{"main:app/db.py": vulnerable}
		s.connect(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", h.Token, "acme/web")
		id := s.seed(t, fact{})
		s.autofix(t, id)
		<-model.asked
		s.die(t, "ai_fix", "ai_fixes")
		if row := s.fix(t, id); row.Status != "opened" || row.Round != 1 || len(h.Pulls()) != 1 {
			t.Errorf("%+v", row)
		}
		close(model.may)
		s.settle(t, "ai_fix")
		_, content := s.finding(t, id)
		if len(h.Pulls()) != 1 || len(content.GetClickToFixPrs()) != 1 || len(s.model.Requests()) != 2 {
			t.Errorf("%v, %v, %d questions", h.Pulls(), content.GetClickToFixPrs(), len(s.model.Requests()))
		}
	})
}

// If a worker dies after a push, there is no second question and no second commit.
func TestPushedFixIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		model := newHolding()
		s := startModelled(t, model.reply, on)
		h := hosttest.NewGitHub(t)
		id := s.seed(t, fact{})
		branch, pushed := fmt.Sprintf("palisade/fix-%d-1", id), strings.Replace(vulnerable, "\" + name", "?\", [name]", 1)
		h.Files = hosttest.Files{"main:app/db.py": vulnerable, branch + ":app/db.py": pushed}
		s.connect(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", h.Token, "acme/web")
		s.autofix(t, id)
		<-model.asked
		s.die(t, "ai_fix", "ai_fixes")
		row := s.fix(t, id)
		if row.Status != "opened" || row.Branch != branch || h.File(branch, "app/db.py") != pushed || len(h.Pulls()) != 1 || len(s.model.Requests()) != 1 {
			t.Errorf("%+v, %v, %d questions", row, h.Pulls(), len(s.model.Requests()))
		}
		close(model.may)
	})
}
