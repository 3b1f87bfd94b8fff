package findings_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

const triagePath = "/api/v1/deployments/acme/triage"

// triage sends a triage request, given as JSON without braces. It returns the labels of the triaged findings, in the
// order of their ids.
func triage(t testing.TB, s *apitest.Server, l *fixture, body string) string {
	t.Helper()
	answer := s.Do(t, s.Token, http.MethodPost, triagePath, "{"+body+"}")
	if answer.Status != http.StatusOK {
		t.Fatalf("%s: %d %s", body, answer.Status, answer.Body)
	}
	var response struct {
		Num    *int     `json:"num_triaged"`
		Issues *[]int64 `json:"triaged_issues"`
	}
	if err := json.Unmarshal([]byte(answer.Body), &response); err != nil || response.Num == nil || response.Issues == nil {
		t.Fatalf("%s: %v in %s", body, err, answer.Body)
	}
	if *response.Num != len(*response.Issues) || !slices.IsSorted(*response.Issues) {
		t.Errorf("%s: num_triaged does not match triaged_issues, or the ids are not sorted: %s", body, answer.Body)
	}
	names := make([]string, 0, len(*response.Issues))
	for _, id := range *response.Issues {
		name := fmt.Sprint(id)
		for label, known := range l.findings {
			if known == id {
				name = label
			}
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// idList returns the ids of findings as JSON.
func idList(t testing.TB, l *fixture, labels string) string {
	t.Helper()
	encoded, err := json.Marshal(l.ids(t, labels))
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// stored reads a finding from the database.
func stored(t testing.TB, s *apitest.Server, l *fixture, label string) *ent.Finding {
	t.Helper()
	return s.Store.Reader.Finding.Query().Where(finding.ID(l.ids(t, label)[0])).OnlyX(s.System(t))
}

// events returns the events of a finding: kind, from, to, reason, note, kind and presence of the actor.
func events(t testing.TB, s *apitest.Server, l *fixture, label string) []string {
	t.Helper()
	rows := s.Store.Reader.FindingEvent.Query().Where(findingevent.FindingID(l.ids(t, label)[0])).Order(findingevent.ByID()).AllX(s.System(t))
	texts := make([]string, len(rows))
	for i, e := range rows {
		if e.DeploymentID != l.DeploymentID || e.ActorID == 0 || e.At == 0 || e.ScanID != nil {
			t.Errorf("event of %s: %+v", label, e)
		}
		texts[i] = strings.Join([]string{e.Kind, e.FromStatus, e.ToStatus, e.Reason, e.Note, e.ActorKind}, "|")
	}
	return texts
}

func wantEvents(t testing.TB, s *apitest.Server, l *fixture, label string, want ...string) {
	t.Helper()
	if got := events(t, s, l, label); !slices.Equal(got, want) {
		t.Errorf("events of %s:\n got %q\nwant %q", label, got, want)
	}
}

func seedTriage(t *testing.T, s *apitest.Server) *fixture {
	t.Helper()
	l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
	l.seed(t, s,
		fact{label: "a", print: "x"},
		fact{label: "a-dev", print: "x", ref: "refs/heads/dev"},
		fact{label: "a-fixed", print: "x", ref: "refs/heads/old", state: "fixed"},
		fact{label: "a-muted", print: "x", ref: "refs/heads/muted", state: "muted"},
		fact{label: "a-removed", print: "x", ref: "refs/heads/gone", state: "removed"},
		fact{label: "a-sca", print: "x", ref: "refs/heads/sca", kind: "sca"},
		fact{label: "a-api", print: "x", project: "acme/api"},
		fact{label: "b"},
		fact{label: "c"},
	)
	return l
}

func TestTriageSpreadsAndRecords(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		// Ids are numbers and strings, with duplicates and unknown ids.
		id := l.ids(t, "a")[0]
		body := fmt.Sprintf(`"issue_type":"sast","issue_ids":["%d",%d,999999],"new_triage_state":"ignored","new_triage_reason":"acceptable_risk","new_note":"agreed"`, id, id)
		if got := triage(t, s, l, body); got != "a a-dev a-fixed a-muted" {
			t.Errorf("triaged %s", got)
		}
		wantEvents(t, s, l, "a", "triaged|open|ignored|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-dev", "triage_spread|open|ignored|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-fixed", "triage_spread|fixed|fixed|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-muted", "triage_spread|ignored|ignored|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-sca")
		wantEvents(t, s, l, "a-api")
		for label, want := range map[string]string{"a": "ignored", "a-dev": "ignored", "a-fixed": "fixed", "a-muted": "ignored", "a-removed": "removed"} {
			row := stored(t, s, l, label)
			if row.Status != want || row.TriageState != "ignored" || row.TriageReason == nil || *row.TriageReason != "acceptable_risk" ||
				row.TriageComment == nil || *row.TriageComment != "agreed" || row.TriagedAt == nil {
				t.Errorf("%s is %+v, want status %s", label, row, want)
			}
		}
		if row := stored(t, s, l, "a-api"); row.TriageState != "untriaged" {
			t.Errorf("another project's finding is %s", row.TriageState)
		}

		// A repeated request returns the same response and writes no event.
		if got := triage(t, s, l, body); got != "a a-dev a-fixed a-muted" {
			t.Errorf("again: triaged %s", got)
		}
		wantEvents(t, s, l, "a", "triaged|open|ignored|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-dev", "triage_spread|open|ignored|acceptable_risk|agreed|token")

		// Reopening clears the reason, keeps the note and beats the suppression in the code.
		triage(t, s, l, fmt.Sprintf(`"issue_type":"sast","issue_ids":[%d],"new_triage_state":"reopened"`, id))
		wantEvents(t, s, l, "a-muted", "triage_spread|ignored|ignored|acceptable_risk|agreed|token", "triage_spread|ignored|open|||token")
		if row := stored(t, s, l, "a"); row.Status != "open" || row.TriageReason != nil || *row.TriageComment != "agreed" {
			t.Errorf("reopened: %+v", row)
		}
	})
}

func TestTriageNotesAndDefaults(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		// The reason is optional.
		triage(t, s, l, `"issue_type":"sast","new_triage_state":"ignored","issue_ids":`+idList(t, l, "b"))
		wantEvents(t, s, l, "b", "triaged|open|ignored|no_triage_reason||token")

		// A note alone changes only the note.
		if got := triage(t, s, l, `"issue_type":"sast","new_note":"look","issue_ids":`+idList(t, l, "a c")); got != "a a-dev a-fixed a-muted c" {
			t.Errorf("noted %s", got)
		}
		wantEvents(t, s, l, "c", "noted|open|open||look|token")
		wantEvents(t, s, l, "a-fixed", "triage_spread|fixed|fixed||look|token")
		if row := stored(t, s, l, "c"); row.TriageState != "untriaged" || row.TriagedAt != nil || *row.TriageComment != "look" {
			t.Errorf("noted: %+v", row)
		}

		// A provisional decision does not spread to siblings.
		if got := triage(t, s, l, `"issue_type":"sast","new_triage_state":"provisionally_ignored","issue_ids":`+idList(t, l, "a-dev")); got != "a-dev" {
			t.Errorf("provisionally ignored %s", got)
		}
		wantEvents(t, s, l, "a-dev", "triage_spread|open|open||look|token", "triaged|open|provisionally_ignored|||token")

		// 3000 characters are not 3000 bytes.
		note := strings.Repeat("ü", 3000)
		triage(t, s, l, `"issue_type":"sast","new_note":"`+note+`","issue_ids":`+idList(t, l, "c"))
		if row := stored(t, s, l, "c"); *row.TriageComment != note {
			t.Errorf("a note of 3000 characters became one of %d bytes", len(*row.TriageComment))
		}

		// A filter without matches changes nothing.
		if got := triage(t, s, l, `"issue_type":"sast","new_note":"x","issue_ids":[987654]`); got != "" {
			t.Errorf("triaged %s", got)
		}
		// Removed findings and findings of another issue type cannot be selected.
		if got := triage(t, s, l, `"issue_type":"sast","new_note":"x","issue_ids":`+idList(t, l, "a-removed a-sca")); got != "" {
			t.Errorf("triaged %s", got)
		}
	})
}

func TestTriageIsRefused(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		ids := `,"issue_ids":` + idList(t, l, "a")
		var bodies strings.Builder
		for _, body := range []string{
			``,
			`"new_triage_state":"ignored"`,
			`"issue_type":"","new_triage_state":"ignored"`,
			`"issue_type":"ai_sast","new_triage_state":"ignored"`,
			`"issue_type":"sast"`,
			`"issue_type":"sast","new_triage_state":"","new_note":""`,
			`"issue_type":"sast","new_triage_state":"open"`,
			`"issue_type":"sast","new_triage_state":"ignored","new_triage_reason":"bored"`,
			`"issue_type":"sast","new_triage_state":"fixing","new_triage_reason":"no_time"`,
			`"issue_type":"sast","new_note":"x","new_triage_reason":"no_time"`,
			`"issue_type":"sast","new_note":"x","ruleset":["p/ci"]`,
			`"issue_type":"sast","new_note":"x","pro_only":true`,
			`"issue_type":"sast","new_note":"x","limit":3001`,
			`"issue_type":"sast","new_note":"x","limit":-1`,
			`"issue_type":"sast","new_note":"x","status":"removed"`,
			`"issue_type":"sast","new_note":"x","since":"soon"`,
			`"issue_type":"sast","new_note":"x\u0000"`,
			`"issue_type":"sca","new_note":"x","epss_probability":["certain"]`,
			`"issue_type":"secrets","new_note":"x","validation_state":["valid"]`,
			`"issue_type":"sast","new_note":"x","repository_visibility":["secret"]`,
			`"issue_type":"sast","new_note":"x","policy_mode":["block"]`,
			`"issue_type":"sast","new_note":"x","issue_ids":["a"]`,
			`"issue_type":"sast","new_note":"x","issue_ids":[1.5]`,
			`"issue_type":"sast","new_note":`,
			`"issue_type":"sast","new_note":"` + strings.Repeat("ü", 3001) + `"`,
		} {
			sent := "{" + body + "}"
			if !strings.Contains(body, "issue_ids") && !strings.HasSuffix(body, ":") && body != "" {
				sent = "{" + body + ids + "}"
			}
			bodies.WriteString(body[:min(len(body), 100)] + "\n\t" + failure(t, s, http.StatusBadRequest, http.MethodPost, triagePath, sent) + "\n")
		}
		apitest.Golden(t, "triage_refused", bodies.String())
		if got := events(t, s, l, "a"); len(got) != 0 {
			t.Errorf("refused calls left events: %q", got)
		}

		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		answer := s.Do(t, reader, http.MethodPost, triagePath, `{"issue_type":"sast","new_note":"x"`+ids+`}`)
		if answer.Status != http.StatusForbidden || len(events(t, s, l, "a")) != 0 {
			t.Errorf("a reader's triage: %d %s", answer.Status, answer.Body)
		}
		member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
		if answer := s.Do(t, member, http.MethodPost, triagePath, `{"issue_type":"sast","new_note":"x"`+ids+`}`); answer.Status != http.StatusOK {
			t.Errorf("a member's triage: %d %s", answer.Status, answer.Body)
		}
	})
}

func TestTriageOverGRPC(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		client := findingsv1.NewTriageServiceClient(s.Conn)
		response, err := client.BulkTriage(s.Context(t, s.Token), &findingsv1.BulkTriageRequest{
			DeploymentSlug: "acme", IssueType: "sast", IssueIds: l.ids(t, "c a"), NewTriageState: "fixing",
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := l.ids(t, "a a-dev a-fixed a-muted c"); response.GetNumTriaged() != 5 || !slices.Equal(response.GetTriagedIssues(), want) {
			t.Errorf("got %v, want %v", response, want)
		}
		// Triage is idempotent, so HTTP returns the same response.
		body := s.Do(t, s.Token, http.MethodPost, triagePath, `{"issue_type":"sast","new_triage_state":"fixing","issue_ids":`+idList(t, l, "a c")+`}`).Body
		apitest.Same(t, response, body)
		apitest.Golden(t, "triage", body)
	})
}
