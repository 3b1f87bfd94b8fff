package findings_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/apitest"
)

// devRef is the second ref of these tests.
const devRef = "refs/heads/dev"

// code returns the content of a result on one line of a file.
func code(file string, line int, snippet string) *storev1.FindingContent {
	return &storev1.FindingContent{
		Location: &findingsv1.FindingLocation{FilePath: file, Line: int32(line), Column: 1, EndLine: int32(line), EndColumn: 20},
		Message:  "about " + file, Snippet: snippet, MatchBasedId: strings.Repeat("ab", 64) + "_0",
	}
}

// evidenceOf returns the evidence of a result of rule py.sqli.
func evidenceOf(c *storev1.FindingContent) identity.Evidence {
	at := c.GetLocation()
	return identity.EvidenceOf(identity.Text{
		Rule: "py.sqli", Path: at.GetFilePath(), ToolFingerprint: c.GetToolFingerprint(), Snippet: c.GetSnippet(), Message: c.GetMessage(), Line: int(at.GetLine()),
		Column: int(at.GetColumn()), EndLine: int(at.GetEndLine()),
	})
}

// seedEvidence stores findings with their evidence, and two scans of main: 411, then 412.
func (l *fixture) seedEvidence(t testing.TB, s *apitest.Server, facts ...fact) {
	t.Helper()
	// In the same transaction: the server's upgrade job computes missing evidence, and its evidence is not this.
	for n := range facts {
		facts[n].evident = true
	}
	l.seed(t, s, facts...)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for n, id := range []int64{411, 412} {
			err := tx.Scan.Create().SetID(id).SetDeploymentID(l.DeploymentID).SetProjectID(l.projects["acme/web"]).SetRef(mainRef).SetCommit("c0ffee").
				SetStatus("SCAN_STATUS_COMPLETED").SetProducts(2).SetIsFullScan(true).SetMeta([]byte{}).SetStats(map[string]any{}).
				SetStartedAt(base + int64(n)).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// joined stores a match: scan 412 joined a result to a finding by its shape.
func (l *fixture) joined(t testing.TB, s *apitest.Server, label string, before, after *storev1.FindingContent, considered ...*storev1.FindingMatchCandidate) {
	t.Helper()
	former, err := blob.Encode(before)
	if err != nil {
		t.Fatal(err)
	}
	content, err := proto.Marshal(&storev1.FindingMatch{
		IdentityVersion: identity.Version, Before: before.GetLocation(), After: after.GetLocation(),
		EvidenceBefore: evidenceOf(before).Encode(), ContentBefore: former, Considered: considered,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.FindingMatch.Create().SetDeploymentID(l.DeploymentID).SetFindingID(l.findings[label]).SetScanID(412).SetRung(identity.RungShape).
			SetContent(content).SetAt(base + 1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// post sends an identity change and requires a status.
func (l *fixture) post(t testing.TB, s *apitest.Server, status int, path, body string) string {
	t.Helper()
	answer := s.Do(t, l.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/%s", l.DeploymentID, path), body)
	if answer.Status != status {
		t.Fatalf("%s %s: %d %s, want %d", path, body, answer.Status, answer.Body, status)
	}
	return requestID.ReplaceAllString(answer.Body, `"requestId":""`)
}

func (l *fixture) split(t testing.TB, s *apitest.Server, status int, label string) string {
	t.Helper()
	return l.post(t, s, status, fmt.Sprintf("findings/%d/split", l.findings[label]), `{"note":"not the same"}`)
}

func (l *fixture) merge(t testing.TB, s *apitest.Server, status int, label, into string) string {
	t.Helper()
	return l.post(t, s, status, fmt.Sprintf("findings/%d/merge", l.findings[label]), fmt.Sprintf(`{"into":"%d","note":"the same"}`, l.findings[into]))
}

func (l *fixture) undo(t testing.TB, s *apitest.Server, status int, change int64) string {
	t.Helper()
	return l.post(t, s, status, fmt.Sprintf("identity-changes/%d/undo", change), `{"note":"it was wrong"}`)
}

// otherOf returns the id of the other finding of the change in a response.
func otherOf(t testing.TB, body string) int64 {
	t.Helper()
	var answer struct {
		Change struct {
			OtherID int64 `json:"otherId,string"`
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Change.OtherID == 0 {
		t.Fatalf("%v in %s", err, body)
	}
	return answer.Change.OtherID
}

// snapshot returns all findings of the database, one line each, for comparisons.
func snapshot(t testing.TB, s *apitest.Server) string {
	t.Helper()
	var b strings.Builder
	for _, f := range s.Store.Reader.Finding.Query().Where(finding.MergedIntoIsNil()).Order(finding.ByID()).AllX(s.System(t)) {
		fmt.Fprintf(&b, "%d %s %s %s %s %s reason=%s note=%s at=%s key=%s file=%s rule=%d hash=%d since=%d/%d %s evidence=%x content=%x\n", f.ID, f.Ref,
			f.Fingerprint, f.State, f.TriageState, f.Status, text(f.TriageReason), text(f.TriageComment), text(f.TriagedAt), text(f.MatchKey),
			text(f.FilePath), f.RuleID, f.ContentHash, f.RelevantSince, f.StateUpdatedAt, f.Severity, text(f.Evidence), f.Content)
	}
	return b.String()
}

func text[T any](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}

// rowOf reads a finding by id.
func rowOf(t testing.TB, s *apitest.Server, id int64) *ent.Finding {
	t.Helper()
	return s.Store.Reader.Finding.Query().Where(finding.ID(id)).OnlyX(s.System(t))
}

// wantRow compares identity, state, triage state, status and location.
func wantRow(t testing.TB, s *apitest.Server, id int64, want string) {
	t.Helper()
	f := rowOf(t, s, id)
	content, err := blob.Decode(f.Content)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %s %s %s:%d", f.Fingerprint, f.State, f.TriageState, f.Status, content.GetLocation().GetFilePath(), content.GetLocation().GetLine())
	if strings.HasPrefix(want, "* ") {
		got = "*" + strings.TrimPrefix(got, f.Fingerprint)
	}
	if got != want {
		t.Errorf("finding %d is %s, want %s", id, got, want)
	}
}

// kindsOf returns the kinds of the events of a finding.
func kindsOf(t testing.TB, s *apitest.Server, id int64) []string {
	t.Helper()
	var kinds []string
	for _, e := range s.Store.Reader.FindingEvent.Query().Where(findingevent.FindingID(id)).Order(findingevent.ByID()).AllX(s.System(t)) {
		kinds = append(kinds, e.Kind+":"+e.FromStatus+">"+e.ToStatus)
	}
	return kinds
}

func wantKinds(t testing.TB, s *apitest.Server, id int64, want ...string) {
	t.Helper()
	if got := kindsOf(t, s, id); !slices.Equal(got, want) {
		t.Errorf("events of %d: %q, want %q", id, got, want)
	}
}
