package findings_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/heldclose"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

var (
	query = hit{"app/db.py", "db.execute(q)", 12}
	shell = hit{"app/run.py", "os.system(c)", 30}
	login = hit{"app/login.py", "login(u)", 7}
)

// mover moves categories over HTTP.
type mover struct {
	t *testing.T
	*apitest.Server
}

func (m mover) upload(category, ref string, hits ...hit) {
	m.t.Helper()
	m.Upload(m.t, "acme/web", ref, reportOf(m.t, hits...), "category", category)
}

// moving is the answer to a move.
type moving struct {
	Change                                  *struct{ ID, Kind, Note string }
	MovedCount, DecidedCount, ReplacedCount int
	PreviewToken                            string
}

func (m mover) body(from, to, more string) string {
	return fmt.Sprintf(`{"project":"acme/web","tool":"opengrep","fromCategory":%q,"toCategory":%q%s}`, from, to, more)
}

func (m mover) post(token, body string) apitest.Answer {
	m.t.Helper()
	return m.Do(m.t, token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/identity-changes/move", m.DeploymentID), body)
}

func (m mover) move(from, to, more string) (got moving) {
	m.t.Helper()
	answer := m.post(m.Token, m.body(from, to, more))
	if answer.Status != http.StatusOK {
		m.t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
		m.t.Fatal(err)
	}
	return got
}

func (m mover) ignore(id int64) {
	m.t.Helper()
	body := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"false_positive","new_note":"a test"}`, id)
	if answer := m.Do(m.t, m.Token, http.MethodPost, "/api/v1/deployments/"+m.Slug+"/triage", body); answer.Status != http.StatusOK {
		m.t.Fatalf("triage: %d %s", answer.Status, answer.Body)
	}
}

// stands lists the findings as ref, file, category, status and reason.
func (m mover) stands() (list []string) {
	for _, f := range m.rows() {
		reason := ""
		if f.TriageReason != nil {
			reason = " " + *f.TriageReason
		}
		list = append(list, fmt.Sprintf("%d %s %s %s%s", f.ID, strings.TrimPrefix(f.Ref, "refs/heads/"), *f.FilePath, f.AnalysisCategory+" "+f.Status, reason))
	}
	return list
}

func (m mover) rows() []*ent.Finding {
	return m.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(m.System(m.t))
}

func (m mover) want(what string, want ...string) {
	m.t.Helper()
	if got := strings.Join(m.stands(), "\n"); got != strings.Join(want, "\n") {
		m.t.Errorf("%s: got\n%s\nwant\n%s", what, got, strings.Join(want, "\n"))
	}
}

func (m mover) undo(change string) apitest.Answer {
	m.t.Helper()
	return m.Do(m.t, m.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/identity-changes/%s/undo", m.DeploymentID, change), "{}")
}

// TestMoveCategoryBeforeTheFirstUpload: the next upload with the new category finds the findings with their decisions.
func TestMoveCategoryBeforeTheFirstUpload(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		m.upload("backend", "main", query, shell)
		m.upload("backend", "dev", query)
		m.ignore(m.rows()[0].ID)
		before := m.rows()[0]
		shown := m.move("backend", "api", `,"validateOnly":true`)
		if shown.MovedCount != 3 || shown.DecidedCount != 2 || shown.ReplacedCount != 0 || shown.Change != nil || shown.PreviewToken == "" {
			t.Fatalf("preview: %+v", shown)
		}
		was := []string{"1 main app/db.py backend ignored false_positive", "2 main app/run.py backend open", "3 dev app/db.py backend ignored false_positive"}
		m.want("a preview", was...)
		done := m.move("backend", "api", `,"previewToken":"`+shown.PreviewToken+`"`)
		if done.MovedCount != 3 || done.Change == nil || done.Change.Kind != "IDENTITY_CHANGE_KIND_MOVE" || done.PreviewToken != "" {
			t.Fatalf("move: %+v", done)
		}
		m.upload("api", "main", query, login)
		m.want("the next upload", "1 main app/db.py api ignored false_positive", "2 main app/run.py api fixed", "3 dev app/db.py api ignored false_positive", "4 main app/login.py api open")
		if now := m.rows()[0]; now.CreatedAt != before.CreatedAt || now.FirstSeenScanID != before.FirstSeenScanID || *now.TriagedAt != *before.TriagedAt {
			t.Errorf("changed: %+v was %+v", now, before)
		}
		trail := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?objectKind=identity_change", s.DeploymentID))
		if !strings.Contains(trail, "FindingIdentityService/MoveCategory") {
			t.Errorf("the audit trail has no move: %s", trail)
		}
		if answer := m.undo(done.Change.ID); answer.Status != http.StatusOK {
			t.Fatalf("undo: %d %s", answer.Status, answer.Body)
		}
		m.want("an undo", "1 main app/db.py backend ignored false_positive", "2 main app/run.py backend fixed", "3 dev app/db.py backend ignored false_positive", "4 main app/login.py api open")
		if answer := m.undo(done.Change.ID); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "was undone already") {
			t.Errorf("a second undo: %d %s", answer.Status, answer.Body)
		}
	})
}

// TestMoveCategoryAfterAnUpload: findings that an upload with the new category created twice are replaced.
func TestMoveCategoryAfterAnUpload(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		m.upload("backend", "main", query, shell)
		m.ignore(m.rows()[0].ID)
		m.upload("api", "main", query, shell, login)
		was := m.stands()
		done := m.move("backend", "api", "")
		if done.MovedCount != 2 || done.ReplacedCount != 2 {
			t.Fatalf("%+v", done)
		}
		m.upload("api", "main", query, shell, login)
		moved := []string{"1 main app/db.py api ignored false_positive", "2 main app/run.py api open", "3 main app/db.py backend removed", "4 main app/run.py backend removed", "5 main app/login.py api open"}
		m.want("after the move", moved...)
		if answer := m.undo(done.Change.ID); answer.Status != http.StatusOK {
			t.Fatalf("undo: %d %s", answer.Status, answer.Body)
		}
		m.want("an undo", was...)
	})
}

// inOneReport is a report with a run of each category.
func inOneReport(t *testing.T, categories ...string) []byte {
	t.Helper()
	var runs []string
	for _, category := range categories {
		report := string(reportOf(t, hit{"app/" + category + ".py", "run(" + category + ")", 3}))
		run := strings.TrimSuffix(strings.TrimPrefix(report, `{"runs":[`), `],"version":"2.1.0"}`)
		runs = append(runs, strings.Replace(run, `"tool":`, `"automationDetails":{"id":"`+category+`/"},"tool":`, 1))
	}
	return []byte(`{"version":"2.1.0","runs":[` + strings.Join(runs, ",") + `]}`)
}

// TestMoveCategoryOfTwoAnalyses: categories that are both in use never join, on whatever refs they are. A category that
// was renamed in CI moves, although some refs were not scanned since.
func TestMoveCategoryOfTwoAnalyses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		for n, c := range []struct {
			uploads string // ref and categories of each
			status  int
		}{
			{"main backend api", http.StatusBadRequest},
			{"dev api; main backend", http.StatusBadRequest},
			{"old backend; main api; dev backend", http.StatusBadRequest},
			{"old backend; main api; main api; dev api backend", http.StatusBadRequest},
			{"old backend; main backend; main api; dev api", http.StatusOK},
			{"old backend; main backend", http.StatusOK},
		} {
			project := fmt.Sprintf("acme/web%d", n)
			for upload := range strings.SplitSeq(c.uploads, "; ") {
				words := strings.Fields(upload)
				s.Upload(t, project, words[0], inOneReport(t, words[1:]...))
			}
			body := strings.Replace(m.body("backend", "api", ""), "acme/web", project, 1)
			answer := m.post(m.Token, body)
			if answer.Status != c.status || c.status != http.StatusOK && !strings.Contains(answer.Body, "they are two analyses") {
				t.Errorf("%s: %d %s", c.uploads, answer.Status, answer.Body)
			}
		}
	})
}

// TestMoveCategoryOfOneCommit: categories that were uploaded once each for one commit are two analyses, unless they
// found the same.
func TestMoveCategoryOfOneCommit(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		for n, c := range []struct {
			commit string // of the second upload; the first one has a
			hits   []hit
			status int
		}{
			{"a", []hit{shell}, http.StatusBadRequest},
			{"a", nil, http.StatusBadRequest},
			{"a", []hit{query, shell}, http.StatusOK},
			{"b", []hit{shell}, http.StatusOK},
		} {
			project := fmt.Sprintf("acme/web%d", n)
			s.Upload(t, project, "main", reportOf(t, query), "category", "backend", "commit", strings.Repeat("a", 40))
			s.Upload(t, project, "main", reportOf(t, c.hits...), "category", "api", "commit", strings.Repeat(c.commit, 40))
			answer := m.post(m.Token, strings.Replace(m.body("backend", "api", ""), "acme/web", project, 1))
			if answer.Status != c.status || c.status != http.StatusOK && !strings.Contains(answer.Body, "they are two analyses") {
				t.Errorf("%d: %d %s", n, answer.Status, answer.Body)
			}
		}
	})
}

// TestMoveCategoryRefused: nothing changes.
func TestMoveCategoryRefused(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		m.upload("backend", "main", query)
		m.upload("api", "main", shell)
		shown := m.move("backend", "api", `,"validateOnly":true`)
		m.upload("backend", "main", query)
		other := s.AddTenant(t, "other")
		max := s.AddUser(t, s.Tenant, "max@acme.test", access.RoleMember)
		was := m.stands()
		for what, c := range map[string]struct {
			token, body string
			status      int
			text        string
		}{
			"two analyses":             {s.Token, m.body("backend", "api", ""), http.StatusBadRequest, "they are two analyses"},
			"the same category":        {s.Token, m.body("api", "api", ""), http.StatusBadRequest, "another category"},
			"no findings":              {s.Token, m.body("web", "api", ""), http.StatusNotFound, "no findings"},
			"a preview of other words": {s.Token, m.body("api", "web", `,"previewToken":"`+shown.PreviewToken+`"`), http.StatusBadRequest, "previewToken is not valid"},
			"a member":                 {max, m.body("backend", "web", ""), http.StatusForbidden, ""},
			"another deployment":       {other.Token, m.body("backend", "web", ""), http.StatusNotFound, ""},
			"no project":               {s.Token, strings.Replace(m.body("backend", "web", ""), "acme/web", "acme/none", 1), http.StatusNotFound, "not found"},
		} {
			if answer := m.post(c.token, c.body); answer.Status != c.status || !strings.Contains(answer.Body, c.text) {
				t.Errorf("%s: %d %s", what, answer.Status, answer.Body)
			}
		}
		m.want("refused", was...)
		client := findingsv1.NewFindingIdentityServiceClient(s.Conn)
		request := &findingsv1.MoveCategoryRequest{DeploymentId: s.DeploymentID, Project: "acme/web", Tool: "opengrep", FromCategory: "backend", ToCategory: "web", ValidateOnly: true}
		preview, err := client.MoveCategory(s.Context(t, s.Token), request)
		if err != nil || preview.GetMovedCount() != 1 {
			t.Fatalf("over gRPC: %v %v", preview, err)
		}
		m.upload("backend", "main", query, login)
		request.ValidateOnly, request.PreviewToken = false, preview.GetPreviewToken()
		if _, err := client.MoveCategory(s.Context(t, s.Token), request); status.Code(err) != codes.Aborted {
			t.Errorf("one more finding since the preview: %v", err)
		}
		request.PreviewToken = ""
		if done, err := client.MoveCategory(s.Context(t, s.Token), request); err != nil || done.GetMovedCount() != 2 || done.GetChange().GetNote() != `opengrep: "backend" to "web"` {
			t.Errorf("over gRPC: %v %v", done, err)
		}
	})
}

// TestMoveCategoryOfHeldCloses: nobody can confirm closes of the old category after the move, because reports of the
// new one say what is there. The findings that were replaced wait no longer either.
func TestMoveCategoryOfHeldCloses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		var hits []hit
		for n := range 12 {
			hits = append(hits, hit{fmt.Sprintf("app/f%d.py", n), fmt.Sprintf("db.execute(q%d)", n), 3})
		}
		m.upload("old", "main", hits...)
		m.upload("old", "main")
		m.upload("new", "main", hits...)
		m.upload("new", "main")
		if n := s.Store.Reader.HeldClose.Query().Where(heldclose.Active(true)).CountX(s.System(t)); n != 2 {
			t.Fatalf("%d held closes", n)
		}
		if done := m.move("old", "new", ""); done.ReplacedCount != 12 {
			t.Errorf("%+v", done)
		}
		for _, row := range s.Store.Reader.HeldClose.Query().AllX(s.System(t)) {
			if row.Active || row.State != "superseded" || row.Waiting != 0 {
				t.Errorf("held closes: %+v", row)
			}
		}
	})
}
