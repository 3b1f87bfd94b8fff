package findings_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/lifecycle"
	triaging "github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// changed triages by the first API and returns the id of the change, from the header.
func changed(t testing.TB, s *apitest.Server, token, body string) string {
	t.Helper()
	answer := s.Do(t, token, http.MethodPost, triagePath, "{"+body+"}")
	if answer.Status != http.StatusOK || answer.Header.Get("X-Change-Id") == "" {
		t.Fatalf("%s: %d %s %v", body, answer.Status, answer.Body, answer.Header)
	}
	return answer.Header.Get("X-Change-Id")
}

func undo(t testing.TB, s *apitest.Server, token, change string) updated {
	t.Helper()
	return bulk(t, s, token, http.MethodPost, bulkPath(s.Tenant, "undo", change), "{}")
}

// decided describes the decision about a finding.
func decided(t testing.TB, s *apitest.Server, l *fixture, label string) string {
	t.Helper()
	row := stored(t, s, l, label)
	text := row.Status + " " + row.TriageState
	for _, part := range []*string{row.TriageReason, row.TriageComment} {
		if part != nil {
			text += " " + *part
		}
	}
	if row.TriagedAt != nil {
		text += fmt.Sprint(" at ", *row.TriagedAt)
	}
	return text
}

// TestUndo: an undo restores the state, the reason, the note and the time of each finding that nobody has changed
// since, says which it could not, and can be undone itself.
func TestUndo(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		l.seed(t, s, fact{label: "d", triage: "ignored", reason: "no_time", note: "later", triagedAt: 7})
		labels := []string{"a", "a-dev", "a-fixed", "a-muted", "a-removed", "b", "d"}
		state := func() map[string]string {
			out := map[string]string{}
			for _, label := range labels {
				out[label] = decided(t, s, l, label)
			}
			return out
		}
		want := func(what string, want map[string]string) {
			t.Helper()
			if got := state(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s:\n got %v\nwant %v", what, got, want)
			}
		}
		before := state()
		change := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"fixing","new_note":"soon","issue_ids":`+idList(t, l, "a b d"))
		after := state()
		undone := undo(t, s, s.Token, change)
		want("after the undo", before)
		if undone.RestoredCount != 7 || undone.KeptCount != 0 || fmt.Sprint(undone.Change.UndoesID) != change {
			t.Errorf("undo: %+v", undone)
		}
		wantEvents(t, s, l, "d", "triaged|ignored|fixing||soon|token", "triage_undone|fixing|ignored|no_time|later|token")
		wantEvents(t, s, l, "a-fixed", "triage_spread|fixed|fixed||soon|token", "triage_undone|fixed|fixed|||token")
		wantEvents(t, s, l, "a-muted", "triage_spread|ignored|fixing||soon|token", "triage_undone|fixing|ignored|||token")
		if answer := s.Do(t, s.Token, http.MethodPost, bulkPath(s.Tenant, "undo", change), "{}"); answer.Status != http.StatusBadRequest ||
			!strings.Contains(answer.Body, fmt.Sprintf("change %s was undone already by change %d", change, undone.Change.ID)) {
			t.Errorf("a second undo: %d %s", answer.Status, answer.Body)
		}
		redone := undo(t, s, s.Token, fmt.Sprint(undone.Change.ID))
		want("after the undo of the undo", after)
		if redone.RestoredCount != 7 {
			t.Errorf("undo of the undo: %+v", redone)
		}

		// A later decision about b stays; undone, it no longer blocks the undo of the earlier one.
		later := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"reviewing","issue_ids":`+idList(t, l, "b"))
		partly := undo(t, s, s.Token, change)
		if partly.RestoredCount != 6 || partly.KeptCount != 1 || partly.Kept[0].Reason != "KEPT_REASON_CHANGED_SINCE" || partly.Kept[0].FindingIDs[0] != fmt.Sprint(l.findings["b"]) {
			t.Errorf("undo with a later decision: %+v", partly)
		}
		undo(t, s, s.Token, fmt.Sprint(partly.Change.ID))
		undo(t, s, s.Token, later)
		if last := undo(t, s, s.Token, change); last.RestoredCount != 7 {
			t.Errorf("undo after the later decision was undone: %+v", last)
		}
		want("in the end", before)

		// If nothing can be restored, nothing is recorded.
		change = changed(t, s, s.Token, `"issue_type":"sast","new_note":"one","issue_ids":`+idList(t, l, "c"))
		changed(t, s, s.Token, `"issue_type":"sast","new_note":"two","issue_ids":`+idList(t, l, "c"))
		changed(t, s, s.Token, `"issue_type":"sast","new_note":"one","issue_ids":`+idList(t, l, "c")) // the same text, by another decision
		if none := undo(t, s, s.Token, change); none.RestoredCount != 0 || none.KeptCount != 1 || none.Change.ID != 0 {
			t.Errorf("undo of a note that was set again: %+v", none)
		}
		apitest.Golden(t, "undo_none", s.Body(t, s.Token, http.MethodPost, bulkPath(s.Tenant, "undo", change), "{}", http.StatusOK))
	})
}

// TestUndoOfInheritedDecisions: findings that scans created since, with the decision of another ref, are restored with
// it. A decision of a scan since is kept.
func TestUndoAfterScans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seed(t, s, fact{label: "a", print: "x"}, fact{label: "b"})
		change := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"ignored","new_triage_reason":"no_time","issue_ids":`+idList(t, l, "a b"))
		at := *stored(t, s, l, "a").TriagedAt
		l.seed(t, s, fact{label: "new", print: "x", ref: devRef, triage: "ignored", reason: "no_time", triagedAt: at - base}, fact{label: "own", print: "x", ref: "refs/heads/own"})
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error { // as a scan does
			return tx.Finding.UpdateOneID(l.findings["b"]).SetTriageState(lifecycle.Untriaged).ClearTriageReason().ClearTriagedAt().SetStatus("open").Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		undone := undo(t, s, s.Token, change)
		if undone.RestoredCount != 2 || undone.KeptCount != 1 || undone.Kept[0].FindingIDs[0] != fmt.Sprint(l.findings["b"]) {
			t.Errorf("undo: %+v", undone)
		}
		for _, label := range []string{"a", "new", "own"} {
			if got := decided(t, s, l, label); got != "open untriaged" {
				t.Errorf("%s is %s", label, got)
			}
		}
		if redone := undo(t, s, s.Token, fmt.Sprint(undone.Change.ID)); redone.RestoredCount != 2 {
			t.Errorf("undo of the undo: %+v", redone)
		}
		if got := decided(t, s, l, "new"); got != fmt.Sprint("ignored ignored no_time at ", at) {
			t.Errorf("the inherited decision is %s", got)
		}
	})
}

// TestRepeatedDecisions: a decision that findings have already changes nothing, and does not block the undo of the
// first.
func TestRepeatedDecisions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		request := `"issue_type":"sast","new_triage_state":"ignored","new_triage_reason":"no_time","new_note":"n","issue_ids":`
		first := changed(t, s, s.Token, request+idList(t, l, "a b"))
		before := decided(t, s, l, "a")
		answer := s.Do(t, s.Token, http.MethodPost, triagePath, "{"+request+idList(t, l, "a")+"}")
		if answer.Status != http.StatusOK || !strings.HasPrefix(answer.Body, `{"num_triaged":4,`) || answer.Header.Get("X-Change-Id") != "" {
			t.Errorf("again: %d %s %v", answer.Status, answer.Body, answer.Header)
		}
		if got := decided(t, s, l, "a"); got != before {
			t.Errorf("again, it is %s, and was %s", got, before)
		}
		more := changed(t, s, s.Token, request+idList(t, l, "b c")) // c is new
		if undone := undo(t, s, s.Token, first); undone.RestoredCount != 6 || undone.KeptCount != 0 {
			t.Errorf("undo of the first: %+v", undone)
		}
		if undone := undo(t, s, s.Token, more); undone.RestoredCount != 1 || undone.KeptCount != 0 {
			t.Errorf("undo of the other: %+v", undone)
		}
	})
}

// TestUndoAfterDeletions: an undo says how many findings were deleted with their projects. What was written about them
// is not kept.
func TestUndoAfterDeletions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
		l.seed(t, s, fact{label: "a"}, fact{label: "b", project: "acme/api"})
		changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"fixing","new_note":"private","issue_ids":`+idList(t, l, "a b"))
		change := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"reviewing","issue_ids":`+idList(t, l, "a b"))
		one := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"fixing","issue_ids":`+idList(t, l, "a"))
		undo(t, s, s.Token, one)

		s.Body(t, s.Token, http.MethodDelete, "/api/v1/deployments/"+s.Tenant.Slug+"/projects/acme/api", "", http.StatusOK)
		partly := undo(t, s, s.Token, change)
		if got := fmt.Sprint(partly.RestoredCount, partly.KeptCount, partly.Kept); got != "1 1 [{KEPT_REASON_GONE 1 []}]" {
			t.Errorf("undo: %s", got)
		}
		again := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"reviewing","issue_ids":`+idList(t, l, "a"))
		s.Body(t, s.Token, http.MethodDelete, "/api/v1/deployments/"+s.Tenant.Slug+"/projects/acme/web", "", http.StatusOK)
		for range 2 {
			none := undo(t, s, s.Token, again)
			if got := fmt.Sprint(none.RestoredCount, none.KeptCount, none.Kept); got != "0 1 [{KEPT_REASON_GONE 1 []}]" {
				t.Errorf("undo of what is gone: %s", got)
			}
		}
		for _, row := range s.Store.Reader.TriageChangeFinding.Query().AllX(s.System(t)) {
			if row.TriageState != "" || row.TriageReason != nil || row.TriageComment != nil || row.TriagedAt != nil {
				t.Errorf("kept of a deleted finding: %v", row)
			}
		}
	})
}

// TestUndoInParts: an undo of a part of a change leaves the rest to be undone, and says what is gone.
func TestUndoInParts(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seed(t, s, fact{label: "a"}, fact{label: "b"}, fact{label: "gone"})
		change := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"fixing","issue_ids":`+idList(t, l, "a b gone"))
		later := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"reviewing","issue_ids":`+idList(t, l, "b"))
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("DELETE FROM finding_events WHERE finding_id = %d", l.findings["gone"])); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, fmt.Sprintf("DELETE FROM findings WHERE id = %d", l.findings["gone"]))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		partly := undo(t, s, s.Token, change)
		if got := fmt.Sprint(partly.RestoredCount, partly.KeptCount, partly.Kept); got != fmt.Sprintf("1 2 [{KEPT_REASON_CHANGED_SINCE 1 [%d]} {KEPT_REASON_GONE 1 []}]", l.findings["b"]) {
			t.Errorf("undo of a part: %s", got)
		}
		undo(t, s, s.Token, later)
		rest := undo(t, s, s.Token, change)
		if got := fmt.Sprint(rest.RestoredCount, rest.KeptCount, rest.Kept); got != "1 1 [{KEPT_REASON_GONE 1 []}]" {
			t.Errorf("undo of the rest: %s", got)
		}
		for _, label := range []string{"a", "b"} {
			if got := decided(t, s, l, label); got != "open untriaged" {
				t.Errorf("%s is %s", label, got)
			}
		}
		if answer := s.Do(t, s.Token, http.MethodPost, bulkPath(s.Tenant, "undo", change), "{}"); answer.Status != http.StatusBadRequest {
			t.Errorf("nothing is left: %d %s", answer.Status, answer.Body)
		}
	})
}

// TestUndoAfterMerge: the finding that a finding of the change was merged into has inherited the decision, and is
// restored with it.
func TestUndoAfterMerge(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seed(t, s, fact{label: "new"}, fact{label: "old", state: lifecycle.Fixed}, fact{label: "old-dev", print: "old", ref: devRef})
		change := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"ignored","issue_ids":`+idList(t, l, "new"))
		l.merge(t, s, http.StatusOK, "new", "old")
		if got := stored(t, s, l, "old").Status; got != "ignored" {
			t.Fatalf("after the merge it is %s", got)
		}
		if undone := undo(t, s, s.Token, change); undone.RestoredCount != 3 || undone.KeptCount != 0 {
			t.Errorf("undo: %+v", undone)
		}
		for _, label := range []string{"old", "old-dev"} {
			if got := decided(t, s, l, label); got != "open untriaged" {
				t.Errorf("%s is %s", label, got)
			}
		}
	})
}

// TestListTriageChanges: golden bodies, pages, the filter by finding, and both wires.
func TestListTriageChanges(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		// Without workers: they would delete changes as old as the ones of the golden file.
		s := apitest.Start(t, func(c *config.Config) { on(c); c.Roles = "api" })
		l := seedTriage(t, s)
		change := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"ignored","new_triage_reason":"no_time","new_note":"x","issue_ids":`+idList(t, l, "a b"))
		bulk(t, s, s.Token, http.MethodPatch, bulkPath(s.Tenant), `{"filter":{"ids":["`+fmt.Sprint(l.findings["c"])+`"]},"params":{"note":"y"}}`)
		undo(t, s, s.Token, change)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error { // the time of the response
			_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE triage_changes SET at = %d", base))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		path := bulkPath(s.Tenant, "changes")
		body := s.Get(t, path)
		apitest.Golden(t, "triage_changes", body)
		client := findingsv1.NewTriageChangesServiceClient(s.Conn)
		response, err := client.ListTriageChanges(s.Context(t, s.Token), &findingsv1.ListTriageChangesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, body)
		for i, want := range []int64{0, l.findings["c"], 0} { // the undo and the first change are about two findings
			if got := response.GetChanges()[i].GetFinding().GetFindingId(); got != want {
				t.Errorf("change %d names the finding %d, want %d", response.GetChanges()[i].GetId(), got, want)
			}
		}
		undo(t, s, s.Token, fmt.Sprint(response.GetChanges()[1].GetId()))
		response, err = client.ListTriageChanges(s.Context(t, s.Token), &findingsv1.ListTriageChangesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		if got := response.GetChanges()[0]; got.GetUndoesId() == 0 || got.GetFinding().GetFindingId() != l.findings["c"] || got.GetFinding().GetRuleName() == "" {
			t.Errorf("the undo of a decision about one finding: %v", got)
		}
		about := s.Get(t, fmt.Sprintf("%s?findingId=%d", path, l.findings["c"]))
		if strings.Count(about, `"kind"`) != 2 || !strings.Contains(about, "TRIAGE_CHANGE_KIND_BULK_UPDATE") {
			t.Errorf("changes of one finding: %s", about)
		}
		var ids, listed []int64
		for _, one := range response.GetChanges() {
			listed = append(listed, one.GetId())
		}
		request := &findingsv1.ListTriageChangesRequest{DeploymentId: s.DeploymentID, Limit: new(int32)}
		for *request.Limit = 1; ; {
			page, err := client.ListTriageChanges(s.Context(t, s.Token), request)
			if err != nil || len(page.GetChanges()) != 1 {
				t.Fatalf("%v %v", page, err)
			}
			ids = append(ids, page.GetChanges()[0].GetId())
			if request.Cursor = page.GetCursor(); request.GetCursor() == "" {
				break
			}
		}
		if fmt.Sprint(ids) != fmt.Sprint(listed) {
			t.Errorf("pages of one: %v", ids)
		}
	})
}

// TestDevelopersDoNotRedoIgnores: a developer who may not ignore findings does not do it by undoing an undo.
func TestDevelopersDoNotRedoIgnores(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
		change := changed(t, s, member, `"issue_type":"sast","new_triage_state":"ignored","issue_ids":`+idList(t, l, "b"))
		undone := undo(t, s, member, change)
		other := undo(t, s, member, changed(t, s, member, `"issue_type":"sca","new_triage_state":"ignored","issue_ids":`+idList(t, l, "a-sca")))
		longer := changed(t, s, member, `"issue_type":"sast","new_triage_state":"ignored","issue_ids":`+idList(t, l, "c"))
		for range 3 { // an undo, and the undo of the undo
			longer = fmt.Sprint(undo(t, s, member, longer).Change.ID)
		}
		putSAST(t, s, "TRIAGE_PERMISSION_NONE")
		if answer := s.Do(t, member, http.MethodPost, bulkPath(s.Tenant, "undo", longer), "{}"); answer.Status != http.StatusForbidden {
			t.Errorf("a member redoes an ignore after more undos: %d %s", answer.Status, answer.Body)
		}
		if redone := undo(t, s, member, fmt.Sprint(other.Change.ID)); redone.RestoredCount != 1 { // of a product that is not limited
			t.Errorf("a member redoes an ignore of another product: %+v", redone)
		}
		if answer := s.Do(t, member, http.MethodPost, bulkPath(s.Tenant, "undo", fmt.Sprint(undone.Change.ID)), "{}"); answer.Status != http.StatusForbidden {
			t.Errorf("a member redoes an ignore: %d %s", answer.Status, answer.Body)
		}
		if redone := undo(t, s, s.Token, fmt.Sprint(undone.Change.ID)); redone.RestoredCount != 1 {
			t.Errorf("an administrator redoes it: %+v", redone)
		}
	})
}

// TestExpiryOfChanges: changes that are older than the retention are deleted with their findings; the history stays.
func TestExpiryOfChanges(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		old := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"fixing","issue_ids":`+idList(t, l, "a b"))
		kept := changed(t, s, s.Token, `"issue_type":"sast","new_triage_state":"reviewing","issue_ids":`+idList(t, l, "b c"))
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE triage_changes SET at = at - 7200000000 WHERE id = "+old)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := triaging.Expire(t.Context(), s.Store, time.Hour); err != nil {
			t.Fatal(err)
		}
		if n := s.Store.Reader.TriageChange.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d changes are kept", n)
		}
		if n := s.Store.Reader.TriageChangeFinding.Query().CountX(s.System(t)); n != 2 {
			t.Errorf("%d findings of changes are kept", n)
		}
		if answer := s.Do(t, s.Token, http.MethodPost, bulkPath(s.Tenant, "undo", old), "{}"); answer.Status != http.StatusNotFound {
			t.Errorf("undo of an expired change: %d %s", answer.Status, answer.Body)
		}
		if got := undo(t, s, s.Token, kept); got.RestoredCount != 2 {
			t.Errorf("undo of the other one: %+v", got)
		}
		wantEvents(t, s, l, "a", "triaged|open|fixing|||token")
	})
}
