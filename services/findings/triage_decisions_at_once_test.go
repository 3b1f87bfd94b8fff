package findings_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/triagechange"
	"github.com/palisade/palisade/ent/triagechangefinding"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestDecisionsAtOnce: updates, triage of the first API and undos that run at once lose nothing. What a change found is
// what the change before it left, and each undo restored what its change had found.
func TestDecisionsAtOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
		for n := range 12 {
			l.seed(t, s, fact{label: fmt.Sprint("f", n), print: fmt.Sprint(n / 2), ref: []string{mainRef, devRef}[n%2], project: []string{"acme/web", "acme/api"}[n/2%2]})
		}
		var workers sync.WaitGroup
		for w := range 4 {
			workers.Go(func() {
				for n := range 6 {
					state := []string{"IGNORED", "REVIEWING", "FIXING", "REOPENED"}[(w+n)%4]
					body := fmt.Sprintf(`{"params":{"triageState":"FINDING_TRIAGE_STATE_%s","note":"%d"}}`, state, n%3)
					if n%2 == 1 {
						body = fmt.Sprintf(`{"filter":{"ids":[%d,%d]},"params":{"note":"%d"}}`, l.findings[fmt.Sprint("f", w)], l.findings[fmt.Sprint("f", w+6)], w)
					}
					answer := s.Do(t, s.Token, http.MethodPatch, bulkPath(s.Tenant), body)
					if answer.Status != http.StatusOK {
						t.Errorf("%d %s", answer.Status, answer.Body)
						return
					}
					if (w+n)%3 == 0 {
						s.Do(t, s.Token, http.MethodPost, bulkPath(s.Tenant, "undo", answer.Header.Get("X-Change-Id")), "{}")
					}
				}
			})
		}
		workers.Wait()
		checkChains(t, s)
	})
}

// checkChains replays the changes of each finding: what one left is what the next one found, and the last one left what
// is stored. Events have the same chain of statuses.
func checkChains(t testing.TB, s *apitest.Server) {
	t.Helper()
	ctx, db := s.System(t), s.Store.Reader
	changes := map[int64]*ent.TriageChange{}
	for _, c := range db.TriageChange.Query().AllX(ctx) {
		changes[c.ID] = c
	}
	found := map[[2]int64]*ent.TriageChangeFinding{}
	for _, row := range db.TriageChangeFinding.Query().AllX(ctx) {
		found[[2]int64{row.ChangeID, row.FindingID}] = row
	}
	undos := 0
	for _, f := range db.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(ctx) {
		left := ""
		for _, row := range db.TriageChangeFinding.Query().Where(triagechangefinding.FindingID(f.ID)).Order(ent.Asc(triagechangefinding.FieldChangeID)).AllX(ctx) {
			kept := decisionText(row.TriageState, row.TriageReason, row.TriageComment, row.TriagedAt)
			if left != "" && kept != left {
				t.Errorf("change %d found finding %d as %s, but it was left as %s", row.ChangeID, f.ID, kept, left)
			}
			change := changes[row.ChangeID]
			after := *row
			if change.UndoesID != nil {
				undos++
				former := found[[2]int64{*change.UndoesID, f.ID}]
				after.TriageState, after.TriageReason, after.TriageComment, after.TriagedAt = former.TriageState, former.TriageReason, former.TriageComment, former.TriagedAt
			} else if change.State != "" {
				after.TriageState, after.TriagedAt, after.TriageReason = change.State, &change.DecidedAt, nil
				if change.Reason != "" {
					after.TriageReason = &change.Reason
				}
			}
			if change.Note != "" {
				after.TriageComment = &change.Note
			}
			left = decisionText(after.TriageState, after.TriageReason, after.TriageComment, after.TriagedAt)
		}
		if stored := decisionText(f.TriageState, f.TriageReason, f.TriageComment, f.TriagedAt); left != "" && stored != left {
			t.Errorf("finding %d is %s, but the last change left it as %s", f.ID, stored, left)
		}
		status := ""
		for _, e := range db.FindingEvent.Query().Where(findingevent.FindingID(f.ID)).Order(ent.Asc(findingevent.FieldID)).AllX(ctx) {
			if status != "" && e.FromStatus != status {
				t.Errorf("an event of finding %d is from %s, the one before it to %s", f.ID, e.FromStatus, status)
			}
			status = e.ToStatus
		}
		if status != "" && status != f.Status {
			t.Errorf("finding %d is %s, its last event says %s", f.ID, f.Status, status)
		}
	}
	if undone := db.TriageChange.Query().Where(triagechange.UndoesIDNotNil()).CountX(ctx); undone > 0 && undos == 0 {
		t.Error("no undo restored a finding")
	}
}

func decisionText(state string, reason, comment *string, at *int64) string {
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	when := int64(0)
	if at != nil {
		when = *at
	}
	return fmt.Sprintf("%s/%s/%s/%d", state, text(reason), text(comment), when)
}
