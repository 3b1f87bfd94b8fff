package findings_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// seedForFilters adds secrets and project tags to the findings of seedVariety.
func seedForFilters(t *testing.T, s *apitest.Server) *fixture {
	t.Helper()
	l := seedVariety(t, s)
	l.seed(t, s,
		fact{label: "s1", kind: "secrets", rule: "aws.key", project: "acme/Web", validation: "confirmed_valid"},
		fact{label: "s2", kind: "secrets", rule: "slack.url", project: "acme/Web", validation: "confirmed_invalid", severity: "low"},
		fact{label: "s3", kind: "secrets", rule: "slack.url", project: "acme/api", validation: "no_validator", historical: true},
	)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for tag, project := range map[string]string{"team-a": "acme/Web", "team-b": "acme/bare"} {
			row, err := tx.Tag.Create().SetDeploymentID(l.DeploymentID).SetName(tag).SetCreatedAt(base).Save(ctx)
			if err != nil {
				return err
			}
			err = tx.ProjectTag.Create().SetDeploymentID(l.DeploymentID).SetProjectID(l.projects[project]).SetTagID(row.ID).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Every filter of the request applies. A note spreads to siblings like a decision, so tests that expect a1 also expect
// its sibling a4.
func TestTriageFilters(t *testing.T) {
	t.Parallel()
	second := float64(base) / 1e6
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedForFilters(t, s)
		const all = "a1 a2 a3 a4 a5 b1 b2 b3 b4 b5 b6 b8"
		for i, c := range []struct{ kind, filter, want string }{
			{"sast", ``, all},
			{"sast", `"since":0,"status":"","limit":0,"repos":null,"ref":"","confidence":"","issue_ids":[],"severities":null`, all},
			{"sast", fmt.Sprintf(`"since":"%.6f"`, second-1), "a1 a2 a4"},
			{"sast", fmt.Sprintf(`"since":%.6f`, second-1), "a1 a2 a4"},
			{"sast", `"repos":["ACME/api"]`, "b1 b2 b3 b4 b5 b6"},
			{"sast", `"repos":"acme/bare"`, "b8"},
			{"sast", `"status":"fixing"`, "a5"},
			{"sast", `"status":"fixed"`, "b6"},
			{"sast", `"status":"ignored","triage_reasons":["duplicate"]`, "b2"},
			{"sast", `"triage_reasons":["duplicate"]`, all},
			{"sast", `"severities":["low","medium"]`, "a2 a3"},
			{"sast", `"ref":"refs/pull/7/merge"`, "a5"},
			{"sast", `"ref":"release"`, "a1 a4 b2"},
			{"sast", `"ref":"_default"`, "a1 a2 a3 a4 b2"},
			{"sast", `"policies":["rule-board-pr-comments"]`, "a2"},
			{"sast", `"policy_mode":["rule-board-pr-comments"]`, "a2"},
			{"sast", `"rules":["py.style","js.xss"]`, "a2 a3"},
			{"sast", `"categories":["best-practice"]`, "a2"},
			{"sast", `"confidence":"medium"`, "a3"},
			{"sast", `"autotriage_verdict":"true_positive"`, "a1 a4"},
			{"sast", `"component_tags":["payments"]`, "b1"},
			{"sast", `"project_tags":["team-b","team-c"]`, "b8"},
			{"sast", `"project_tags":["team-c"]`, ""},
			{"sast", `"repository_visibility":["public"]`, "b1 b2 b3 b4 b5 b6"},
			{"sast", `"repository_visibility":["unknown"],"repos":["acme/bare","acme/api"]`, "b8"},
			{"sast", `"limit":2`, "a1 a2 a4"},
			{"sast", `"issue_ids":` + idList(t, l, "a2 a3 b1") + `,"severities":["low"]`, "a2"},
			// A field that the list ignores for an issue type narrows what is triaged: a write never selects more than it says.
			{"sast", `"secret_types":["aws.key"]`, ""},
			{"sast", `"validation_state":["no_validator"]`, ""},
			{"sast", `"exposures":["unknown"],"dependencies":["x"],"epss_probability":["low"]`, ""},
			{"sca", `"rules":["py.style"]`, "c4"},
			{"sca", `"rules":["js.xss"]`, ""},
			{"sca", `"categories":["best-practice"]`, "c4"},
			{"sca", `"policies":["rule-board-block"]`, "c1"},
			{"sca", `"autotriage_verdict":"true_positive"`, "c4"},
			{"secrets", `"dependencies":["lodash"]`, ""},
			{"sca", ``, "c1 c2 c3 c4 c5"},
			{"sca", `"exposures":["unknown","reachable"]`, "c1 c5"},
			{"sca", `"transitivities":["transitive"]`, "c2"},
			{"sca", `"dependencies":["lodash","left-pad"]`, "c1 c2"},
			{"sca", `"epss_probability":["high","none"]`, "c1 c4"},
			{"secrets", ``, "e1 s1 s2"},
			{"secrets", `"include_historical":true`, "e1 s1 s2 s3"},
			{"secrets", `"validation_state":["confirmed_invalid","confirmed_valid"]`, "s1 s2"},
			{"secrets", `"secret_types":["slack.url"]`, "s2"},
			{"secrets", `"secret_types":["slack.url"],"rules":["aws.key"]`, ""},
			{"secrets", `"rules":["aws.key"]`, "e1 s1"},
			{"secrets", `"issue_ids":` + idList(t, l, "s3"), "s3"},
			{"secrets", `"severities":["low"]`, "s2"},
			{"secrets", `"severities":["low"],"categories":["x"]`, ""},
			{"secrets", `"severities":["low"],"policies":["rule-board-block"]`, ""},
		} {
			note := fmt.Sprintf("note %d", i)
			filter := c.filter
			if filter != "" {
				filter = "," + filter
			}
			if got := triage(t, s, l, fmt.Sprintf(`"issue_type":%q,"new_note":%q%s`, c.kind, note, filter)); got != c.want {
				t.Errorf("%s %s:\n got %s\nwant %s", c.kind, c.filter, got, c.want)
			}
			// The database has the same findings as the response.
			noted := s.Store.Reader.Finding.Query().Where(finding.TriageComment(note), finding.StatusNEQ(lifecycle.Removed)).CountX(s.System(t))
			if noted != len(strings.Fields(c.want)) {
				t.Errorf("%s %s: %d findings have the note", c.kind, c.filter, noted)
			}
		}
	})
}

// The SQL of a decision sets the same status as lifecycle.Status, for every state and decision.
func TestTriageStatusEqualsLifecycle(t *testing.T) {
	t.Parallel()
	states := []string{lifecycle.Unresolved, lifecycle.Muted, lifecycle.Fixed, lifecycle.Removed}
	before := []string{
		lifecycle.Untriaged, lifecycle.Ignored, lifecycle.Reopened, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.ProvisionallyIgnored,
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		var facts []fact
		for _, state := range states {
			for _, old := range before {
				for _, next := range before[1:] {
					facts = append(facts, fact{label: state + "/" + old + "/" + next, state: state, triage: old, severity: "low"})
				}
			}
		}
		l.seed(t, s, facts...)
		for _, next := range before[1:] {
			var chosen []string
			for _, f := range facts {
				if strings.HasSuffix(f.label, "/"+next) {
					chosen = append(chosen, f.label)
				}
			}
			triage(t, s, l, `"issue_type":"sast","new_triage_state":"`+next+`","issue_ids":`+idList(t, l, strings.Join(chosen, " ")))
		}
		for _, row := range s.Store.Reader.Finding.Query().AllX(s.System(t)) {
			part := strings.Split(row.Fingerprint, "/")
			want := lifecycle.Status(part[0], part[2])
			if row.Status != want {
				t.Errorf("%s: status %s, want %s", row.Fingerprint, row.Status, want)
			}
			changed := part[0] != lifecycle.Removed && (part[1] != part[2] || part[2] == lifecycle.Ignored) // an ignored finding gets a reason
			found := s.Store.Reader.FindingEvent.Query().Where(findingevent.FindingID(row.ID)).AllX(s.System(t))
			if changed != (len(found) == 1) {
				t.Errorf("%s: %d events", row.Fingerprint, len(found))
			}
			for _, e := range found {
				if e.FromStatus != lifecycle.Status(part[0], part[1]) || e.ToStatus != want {
					t.Errorf("%s: event from %s to %s", row.Fingerprint, e.FromStatus, e.ToStatus)
				}
			}
		}
	})
}

// One request triages very many findings: by their ids, or as siblings of a few.
func TestTriageOfManyFindings(t *testing.T) {
	testrun.Deep(t) // has very many rows
	t.Parallel()
	const refs = 50
	n := testrun.Size(10_000, 100_000)
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		seedBulk(t, s, l, n, refs)
		rows, err := s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).IDs(s.System(t))
		if err != nil || len(rows) != n {
			t.Fatal(len(rows), err)
		}
		var ids strings.Builder
		for i, id := range rows {
			if i > 0 {
				ids.WriteByte(',')
			}
			fmt.Fprint(&ids, id)
		}
		for _, body := range []string{
			`{"issue_type":"sast","new_triage_state":"ignored","issue_ids":[` + ids.String() + `]}`,
			`{"issue_type":"sast","new_triage_state":"reopened","new_note":"again","ref":"r0"}`, // one of 50 refs
		} {
			answer := s.Do(t, s.Token, http.MethodPost, triagePath, body)
			if answer.Status != http.StatusOK || !strings.HasPrefix(answer.Body, fmt.Sprintf(`{"num_triaged":%d,`, n)) {
				t.Fatalf("%d %.200s", answer.Status, answer.Body)
			}
		}
		counts := map[string]int{}
		for _, kind := range []string{"triaged", "triage_spread"} {
			counts[kind] = s.Store.Reader.FindingEvent.Query().Where(findingevent.Kind(kind)).CountX(s.System(t))
		}
		if counts["triaged"] != n+n/refs || counts["triage_spread"] != n-n/refs {
			t.Errorf("events: %v", counts)
		}
		if open := s.Store.Reader.Finding.Query().Where(finding.Status("open"), finding.TriageReasonIsNil(), finding.TriageComment("again")).
			CountX(s.System(t)); open != n {
			t.Errorf("%d findings are open again", open)
		}
	})
}

// seedBulk stores n findings with one statement: n/refs of them on each ref r0, r1, …
func seedBulk(t testing.TB, s *apitest.Server, l *fixture, n, refs int) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return s.Store.Exec(ctx, tx, `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(? AS INTEGER) - 1)
			INSERT INTO findings (deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type,
				severity, state, triage_state, status, created_at, relevant_since, state_updated_at, content_hash, content)
			SELECT CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), 1, 'refs/heads/r' || (i % CAST(? AS INTEGER)), 'test', '',
				'print-' || (i / CAST(? AS INTEGER)), 'sast', CASE i % 4 WHEN 0 THEN 'low' WHEN 1 THEN 'medium' WHEN 2 THEN 'high' ELSE 'critical' END,
				'unresolved', 'untriaged', 'open', 1, 1000 + i, 1, 1, ? FROM n`,
			n, l.DeploymentID, l.projects["acme/web"], l.rules["py.sqli"], refs, refs, []byte{})
	})
	if err != nil {
		t.Fatal(err)
	}
}
