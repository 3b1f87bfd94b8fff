package findings_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

var (
	oldCode = code("app/db.py", 12, "cursor.execute(query + name)")
	newCode = code("app/db.py", 90, "cursor.execute(statement + title)")
)

// seedJoined stores finding a and its sibling on dev. Finding a was ignored, and then a scan joined a result to it by
// its shape.
func seedJoined(t *testing.T, s *apitest.Server, more ...fact) *fixture {
	t.Helper()
	l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
	present := code("app/db.py", 90, "cursor.execute(statement + title)")
	present.Assistant = &findingsv1.Assistant{Autotriage: &findingsv1.AssistantAutotriage{Verdict: "false_positive", Reason: "constant"}}
	l.seedEvidence(t, s, append([]fact{
		{label: "a", print: "name-a", triage: "ignored", reason: "false_positive", note: "checked", triagedAt: 5, verdict: "false_positive", content: present},
		{label: "a-dev", print: "name-a", ref: devRef, triage: "ignored", reason: "false_positive", note: "checked", triagedAt: 5, content: oldCode},
		{label: "b", content: code("app/other.py", 7, "cursor.execute(other)")},
	}, more...)...)
	l.joined(t, s, "a", oldCode, newCode, &storev1.FindingMatchCandidate{FindingId: l.findings["a"], Rung: "shape"},
		&storev1.FindingMatchCandidate{FindingId: l.findings["b"], Rung: "line", Refused: "its shape is another one"})
	return l
}

func TestSplitOfAJoin(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedJoined(t, s)
		before := snapshot(t, s)
		body := l.split(t, s, http.StatusOK, "a")
		apitest.Golden(t, "identity_split", body)
		a, fresh := l.findings["a"], otherOf(t, body)
		wantRow(t, s, a, "name-a fixed ignored fixed app/db.py:12")
		wantRow(t, s, fresh, "* unresolved untriaged open app/db.py:90")
		wantRow(t, s, l.findings["a-dev"], "name-a unresolved ignored ignored app/db.py:12")
		wantKinds(t, s, a, "split:ignored>fixed")
		wantKinds(t, s, fresh, "split:>open")
		old, row := rowOf(t, s, a), rowOf(t, s, fresh)
		if *old.MatchKey != evidenceOf(oldCode).Key() || *row.MatchKey != evidenceOf(newCode).Key() || row.FirstSeenScanID != 412 {
			t.Errorf("evidence of the two: %+v and %+v", old, row)
		}
		if row.AutotriageVerdict != nil || row.TriageComment != nil || len(row.Fingerprint) != 32 || row.TriagedAt != nil {
			t.Errorf("the new finding has data of the old finding: %+v", row)
		}
		// The join is reverted. A second split separates the refs.
		l.split(t, s, http.StatusOK, "a")
		wantRow(t, s, a, "* fixed untriaged fixed app/db.py:12")
		if text := l.split(t, s, http.StatusBadRequest, "a"); !strings.Contains(text, "cannot be split") {
			t.Errorf("third split: %s", text)
		}
		l.undo(t, s, http.StatusBadRequest, 1)
		l.undo(t, s, http.StatusOK, 2)
		apitest.Golden(t, "identity_undo", l.undo(t, s, http.StatusOK, 1))
		if after := snapshot(t, s); after != before {
			t.Errorf("undoing left\n%s\nnot\n%s", after, before)
		}
		wantRow(t, s, fresh, "* removed untriaged removed app/db.py:12")
		wantKinds(t, s, fresh, "split:>open", "identity_undone:open>removed")
		if text := l.undo(t, s, http.StatusBadRequest, 1); !strings.Contains(text, "was undone already") {
			t.Errorf("second undo: %s", text)
		}
		// The join is restored, and can be split again.
		l.split(t, s, http.StatusOK, "a")
	})
}

// A validated split or merge says what it would change or why it is refused, and changes nothing.
func TestValidateIdentityChanges(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedJoined(t, s, fact{label: "old", ref: "refs/heads/old", content: oldCode})
		before := snapshot(t, s)
		path := func(label, operation string) string {
			return fmt.Sprintf("findings/%d/%s", l.findings[label], operation)
		}
		split := l.post(t, s, http.StatusOK, path("a", "split"), `{"validateOnly":true}`)
		if !strings.Contains(split, `"id":"0"`) || strings.Count(split, `"status":`) != 2 || !strings.Contains(split, `"changedCount":2`) || strings.Contains(split, `"kind"`) {
			t.Errorf("split: %s", split)
		}
		merge := l.post(t, s, http.StatusOK, path("old", "merge"), fmt.Sprintf(`{"into":"%d","validateOnly":true}`, l.findings["a"]))
		if !strings.Contains(merge, `"changedCount":1`) || strings.Count(merge, `"status":"ignored"`) != 2 {
			t.Errorf("merge: %s", merge)
		}
		refused := l.post(t, s, http.StatusBadRequest, path("b", "merge"), fmt.Sprintf(`{"into":"%d","validateOnly":true}`, l.findings["a"]))
		if !strings.Contains(refused, "cannot be merged") {
			t.Errorf("refused merge: %s", refused)
		}
		if after := snapshot(t, s); after != before {
			t.Errorf("validating left\n%s\nnot\n%s", after, before)
		}
		wantKinds(t, s, l.findings["a"])
		if trail := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?objectKind=identity_change", s.DeploymentID)); strings.Contains(trail, `"identity_change"`) {
			t.Errorf("the audit trail has changes: %s", trail)
		}
		client := findingsv1.NewFindingIdentityServiceClient(s.Conn)
		response, err := client.SplitFinding(s.Context(t, s.Token), &findingsv1.SplitFindingRequest{DeploymentId: s.DeploymentID, FindingId: l.findings["a"], ValidateOnly: true})
		if err != nil || response.GetChange() != nil || response.GetChangedCount() != 2 {
			t.Errorf("over gRPC: %v %v", response, err)
		}
	})
}

func TestSplitFromOtherRefs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seedEvidence(t, s,
			fact{label: "a", print: "x", triage: "ignored", reason: "no_time", triagedAt: 5, content: oldCode},
			fact{label: "a-dev", print: "x", ref: devRef, triage: "ignored", reason: "no_time", triagedAt: 5, content: oldCode},
			fact{label: "alone", content: newCode},
		)
		l.split(t, s, http.StatusBadRequest, "alone")
		if body := l.split(t, s, http.StatusOK, "a-dev"); strings.Contains(body, "otherId") {
			t.Errorf("no finding was created: %s", body)
		}
		wantRow(t, s, l.findings["a"], "x unresolved ignored ignored app/db.py:12")
		wantRow(t, s, l.findings["a-dev"], "* unresolved untriaged open app/db.py:12")
		wantKinds(t, s, l.findings["a-dev"], "split:ignored>open")
		// The decisions differ now, so an undo would have to choose one.
		if got := triage(t, s, l, `"issue_type":"sast","new_triage_state":"fixing","issue_ids":`+idList(t, l, "a")); got != "a" {
			t.Errorf("triaged %s", got)
		}
		if text := l.undo(t, s, http.StatusBadRequest, 1); !strings.Contains(text, fmt.Sprintf("finding %d has a later decision", l.findings["a"])) {
			t.Errorf("undo after a decision: %s", text)
		}
		l.merge(t, s, http.StatusOK, "a-dev", "a") // the same, and defines which decision is kept
		wantRow(t, s, l.findings["a-dev"], "x unresolved fixing fixing app/db.py:12")
		l.undo(t, s, http.StatusOK, 2)
		wantRow(t, s, l.findings["a-dev"], "* unresolved untriaged open app/db.py:12")
	})
}

func TestUndoOfASplitFromOtherRefs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seedEvidence(t, s,
			fact{label: "a", print: "x", triage: "ignored", reason: "no_time", triagedAt: 5, content: oldCode},
			fact{label: "a-dev", print: "x", ref: devRef, triage: "provisionally_ignored", triagedAt: 5, content: oldCode},
		)
		before := snapshot(t, s)
		l.split(t, s, http.StatusOK, "a-dev")
		l.undo(t, s, http.StatusOK, 1)
		if after := snapshot(t, s); after != before {
			t.Errorf("undoing left\n%s\nnot\n%s", after, before)
		}
	})
}

func seedMerge(t *testing.T, s *apitest.Server) *fixture {
	t.Helper()
	l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
	moved := code("app/store.py", 3, "cursor.execute(query + name)")
	l.seedEvidence(t, s,
		fact{label: "old", state: "fixed", content: oldCode},
		fact{label: "new", triage: "ignored", reason: "false_positive", note: "checked", triagedAt: 5, severity: "low", content: moved},
		fact{label: "old-dev", print: "old", ref: devRef, content: oldCode},
		fact{label: "new-pull", print: "new", ref: "refs/pull/7/merge", triage: "ignored", reason: "false_positive", note: "checked", triagedAt: 5, content: moved},
		fact{label: "api", project: "acme/api", content: oldCode},
		fact{label: "sca", kind: "sca", content: oldCode},
		fact{label: "web", category: "web", content: oldCode},
		fact{label: "both", print: "both", ref: devRef, content: newCode},
	)
	return l
}

func TestMerge(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		before := snapshot(t, s)
		body := l.merge(t, s, http.StatusOK, "new", "old")
		apitest.Golden(t, "identity_merge", body)
		// All refs have the decision. The finding that is still in the code supplies the location.
		wantRow(t, s, l.findings["old"], "old unresolved ignored ignored app/store.py:3")
		wantRow(t, s, l.findings["new"], "new removed ignored removed app/db.py:12")
		wantRow(t, s, l.findings["old-dev"], "old unresolved ignored ignored app/db.py:12")
		wantRow(t, s, l.findings["new-pull"], "old unresolved ignored ignored app/store.py:3")
		wantKinds(t, s, l.findings["old"], "merged:fixed>ignored")
		wantKinds(t, s, l.findings["new"], "merged:ignored>removed")
		wantKinds(t, s, l.findings["old-dev"], "merged:open>ignored")
		wantKinds(t, s, l.findings["new-pull"], "merged:ignored>ignored")
		if row := rowOf(t, s, l.findings["old"]); row.Severity != "low" || *row.TriageComment != "checked" || *row.FilePath != "app/store.py" {
			t.Errorf("the remaining finding: %+v", row)
		}
		for _, f := range list(t, s, "page_size=100&ref=main").Findings {
			if f.ID == l.findings["new"] {
				t.Error("the merged finding is listed")
			}
		}
		// A merged finding cannot be merged or split again.
		for _, text := range []string{
			l.merge(t, s, http.StatusBadRequest, "new", "old"), l.merge(t, s, http.StatusBadRequest, "both", "new"), l.split(t, s, http.StatusBadRequest, "new"),
		} {
			if !strings.Contains(text, fmt.Sprintf("was merged into finding %d", l.findings["old"])) {
				t.Error(text)
			}
		}
		if text := l.split(t, s, http.StatusBadRequest, "old"); !strings.Contains(text, "by merge 1: undo the merge") {
			t.Error(text)
		}
		l.undo(t, s, http.StatusOK, 1)
		if after := snapshot(t, s); after != before {
			t.Errorf("undoing left\n%s\nnot\n%s", after, before)
		}
		wantKinds(t, s, l.findings["new"], "merged:ignored>removed", "identity_undone:removed>ignored")
	})
}

func TestMergeKeepsTheDecisionOfTheTarget(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		triage(t, s, l, `"issue_type":"sast","new_triage_state":"reviewing","issue_ids":`+idList(t, l, "old"))
		before := snapshot(t, s)
		l.merge(t, s, http.StatusOK, "new", "old")
		wantRow(t, s, l.findings["old"], "old unresolved reviewing reviewing app/store.py:3")
		wantRow(t, s, l.findings["new-pull"], "old unresolved reviewing reviewing app/store.py:3")
		l.undo(t, s, http.StatusOK, 1)
		if after := snapshot(t, s); after != before {
			t.Errorf("undoing left\n%s\nnot\n%s", after, before)
		}
		// In the other direction, the finding in the code is unchanged.
		l.merge(t, s, http.StatusOK, "old", "new")
		wantRow(t, s, l.findings["new"], "new unresolved ignored ignored app/store.py:3")
		wantRow(t, s, l.findings["old-dev"], "new unresolved ignored ignored app/db.py:12")
		l.undo(t, s, http.StatusOK, 2)
		if after := snapshot(t, s); after != before {
			t.Errorf("undoing the other way left\n%s\nnot\n%s", after, before)
		}
	})
}

func TestRefusedIdentityChanges(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		l.findings["none"] = 99999
		before, refused := snapshot(t, s), ""
		for _, c := range []struct {
			status     int
			from, into string
		}{
			{400, "new", "new"}, {400, "new", "api"}, {400, "new", "sca"}, {400, "new", "web"}, {404, "new", "none"}, {404, "none", "new"},
			{400, "new", "new-pull"}, {400, "both", "old"},
		} {
			refused += c.from + " into " + c.into + ": " + l.merge(t, s, c.status, c.from, c.into) + "\n"
		}
		refused += "no into: " + l.post(t, s, 400, fmt.Sprintf("findings/%d/merge", l.findings["new"]), `{}`) + "\n"
		refused += "long note: " + l.post(t, s, 400, fmt.Sprintf("findings/%d/split", l.findings["new"]), `{"note":"`+strings.Repeat("n", 2001)+`"}`) + "\n"
		refused += "no finding: " + l.split(t, s, 404, "none") + "\n"
		refused += "no change: " + l.undo(t, s, 404, 77) + "\n"
		apitest.Golden(t, "identity_refused", refused)
		if after := snapshot(t, s); after != before {
			t.Errorf("a refusal changed\n%s\nto\n%s", before, after)
		}
		if n := s.Store.Reader.IdentityChange.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d changes are stored", n)
		}
	})
}

func TestIdentityOfOtherTenantsAndRoles(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		l.merge(t, s, http.StatusOK, "new", "old")
		other := s.AddTenant(t, "globex")
		readOnly := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly})
		id := l.findings["old"]
		for _, c := range []struct{ method, path, body string }{
			{"GET", fmt.Sprintf("findings/%d/identity", id), ""}, {"POST", fmt.Sprintf("findings/%d/split", id), "{}"},
			{"POST", fmt.Sprintf("findings/%d/merge", id), fmt.Sprintf(`{"into":%d}`, l.findings["both"])}, {"POST", "identity-changes/1/undo", "{}"},
			{"GET", "identity-changes", ""},
		} {
			path := func(of apitest.Tenant) string {
				return fmt.Sprintf("/api/v1/deployments/%d/%s", of.DeploymentID, c.path)
			}
			if got := s.Do(t, other.Token, c.method, path(s.Tenant), c.body); got.Status != 404 {
				t.Errorf("%s of another deployment: %d %s", c.path, got.Status, got.Body)
			}
			got := s.Do(t, other.Token, c.method, path(other), c.body)
			if c.path == "identity-changes" {
				if got.Body != `{"changes":[],"cursor":""}` {
					t.Errorf("changes of another deployment: %s", got.Body)
				}
			} else if got.Status != 404 {
				t.Errorf("%s with another deployment's id: %d %s", c.path, got.Status, got.Body)
			}
			want := map[string]int{"GET": 200, "POST": 403}[c.method]
			if got := s.Do(t, readOnly, c.method, path(s.Tenant), c.body); got.Status != want {
				t.Errorf("%s by a reader: %d %s, want %d", c.path, got.Status, got.Body, want)
			}
		}
	})
}
