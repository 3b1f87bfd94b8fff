package findings_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Concurrent decisions share a group commit on SQLite. Each one is stored with its event and its audit entry, and
// refused requests between them change nothing.
func TestTriageOfManyAtOnce(t *testing.T) {
	t.Parallel()
	const clients, each = 16, 6
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMany(t, s, clients*each, nil)
		labels := inOrder(clients * each)
		var all sync.WaitGroup
		for c := range clients {
			all.Go(func() {
				for _, label := range labels[c*each : (c+1)*each] {
					decideAlone(t, s, l.findings[label])
				}
			})
		}
		all.Wait()
		for _, label := range labels {
			row := stored(t, s, l, label)
			n := s.Store.Reader.FindingEvent.Query().Where(findingevent.FindingID(row.ID)).CountX(s.System(t))
			if row.TriageState != "reviewing" || row.TriageComment == nil || *row.TriageComment != fmt.Sprint(row.ID) || n != 1 {
				t.Errorf("%s is %s with the note %v and %d events", label, row.TriageState, row.TriageComment, n)
			}
		}
		requireChain(t, s, l.Tenant, clients*each)
	})
}

// decideAlone triages one finding, between a refused request and a request that changes nothing.
func decideAlone(t *testing.T, s *apitest.Server, id int64) {
	for _, c := range []struct {
		body    string
		status  int
		triaged int
	}{
		{fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"reviewing","new_triage_reason":"no_time"}`, id), http.StatusBadRequest, 0},
		{fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"reviewing","new_note":"%d"}`, id, id), http.StatusOK, 1},
		{`{"issue_type":"sast","issue_ids":[999999999],"new_triage_state":"reviewing"}`, http.StatusOK, 0},
	} {
		answer := s.Do(t, s.Token, http.MethodPost, triagePath, c.body)
		var response struct {
			Num int `json:"num_triaged"`
		}
		if err := json.Unmarshal([]byte(answer.Body), &response); err != nil || answer.Status != c.status || response.Num != c.triaged {
			t.Errorf("%s: %d %s, %v", c.body, answer.Status, answer.Body, err)
		}
	}
}

// requireChain requires an unbroken hash chain, with the given number of entries about changes.
func requireChain(t *testing.T, s *apitest.Server, of apitest.Tenant, changed int) {
	t.Helper()
	ctx := tenant.NewContext(t.Context(), of.DeploymentID)
	var previous []byte
	n := 0
	for i, entry := range s.Store.Reader.AuditEntry.Query().Where(auditentry.SequenceGT(0)).Order(ent.Asc(auditentry.FieldSequence)).AllX(ctx) {
		if entry.Sequence != int64(i+1) || !bytes.Equal(entry.PreviousHash, previous) {
			t.Fatalf("entry %d does not continue the chain: it has the number %d", i+1, entry.Sequence)
		}
		previous = entry.Hash
		if len(entry.Changes) > 0 {
			n++
		}
	}
	if n != changed {
		t.Errorf("%d entries have changes, want %d", n, changed)
	}
}
