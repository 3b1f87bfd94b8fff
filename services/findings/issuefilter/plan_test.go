package issuefilter_test

import (
	"context"
	"regexp"
	"testing"

	"entgo.io/ent/dialect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// plansSQL stores 20,000 findings with the distribution of values that a real tenant has.
const plansSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
INSERT INTO findings (deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type,
	severity, state, triage_state, status, triage_reason, policy_mode, autotriage_verdict, component_tag, exposure, transitivity, package, advisory, file_path,
	epss_probability, malicious, click_to_fix_state, validation_state, historical, created_at, relevant_since, state_updated_at, content_hash, content)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + CASE WHEN i % 100 = 9 THEN 1 ELSE 0 END, CAST(? AS BIGINT) + CASE WHEN i % 400 = 3 THEN 2 ELSE 1 END, 1,
	'refs/heads/r' || (i % 40), 'test', '', 'print-' || (i / 40), CASE i % 3 WHEN 0 THEN 'sast' WHEN 1 THEN 'sca' ELSE 'secrets' END,
	CASE i % 20 WHEN 0 THEN 'critical' WHEN 1 THEN 'high' WHEN 2 THEN 'medium' ELSE 'low' END,
	CASE WHEN i % 90 = 3 THEN 'fixed' ELSE 'unresolved' END, CASE WHEN i % 90 = 6 THEN 'ignored' ELSE 'untriaged' END,
	CASE i % 90 WHEN 3 THEN 'fixed' WHEN 6 THEN 'ignored' ELSE 'open' END, CASE i % 90 WHEN 6 THEN 'duplicate' END,
	CASE i % 50 WHEN 0 THEN 'rule-board-block' END, CASE i % 50 WHEN 1 THEN 'true_positive' END, CASE i % 50 WHEN 2 THEN 'payments' END,
	CASE WHEN i % 3 = 1 THEN CASE i % 50 WHEN 3 THEN 'reachable' ELSE 'unknown' END END,
	CASE WHEN i % 3 = 1 THEN CASE i % 50 WHEN 4 THEN 'direct' ELSE 'unknown' END END,
	CASE WHEN i % 3 = 1 THEN 'package' || (i % 100) END, CASE WHEN i % 3 = 1 THEN 'CVE-2026-' || (i % 100) END, 'src/app/' || i || '.py',
	CASE WHEN i % 3 = 1 THEN CASE i % 50 WHEN 5 THEN 'high' ELSE 'none' END END, CASE WHEN i % 300 = 1 THEN TRUE END, CASE i % 50 WHEN 6 THEN 'open' END,
	CASE WHEN i % 3 = 2 THEN CASE i % 50 WHEN 7 THEN 'confirmed_valid' ELSE 'no_validator' END END, CASE WHEN i % 300 = 2 THEN TRUE END,
	1, CAST(? AS BIGINT) - i, 1, 1, ? FROM n`

// wholeTable matches a plan that reads all findings. SQLite calls it SCAN.
var wholeTable = map[string]*regexp.Regexp{
	dialect.SQLite:   regexp.MustCompile(`SCAN (findings|twin|parent)\b`),
	dialect.Postgres: regexp.MustCompile(`Seq Scan on findings`),
}

// A page of a list by any common field is read along an index.
func TestPlansUseIndexes(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWorld(t, s, s.Tenant)
		w.remember(t)
		w.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return s.Store.Exec(ctx, tx, plansSQL, w.DeploymentID, w.projects["acme/Web"], w.rules["aws.key"], store.Micros(now), []byte{})
		})
		s.RefreshStatistics(t)
		st, seen := apitest.OpenRecorded(t, s, func(string) bool { return true })
		reader, _ := st.DB()
		ctx := tenant.NewContext(t.Context(), w.DeploymentID)
		first := s.Store.Reader.Finding.Query().FirstIDX(s.System(t))
		for _, c := range []struct {
			name, kind string
			filter     *findingsv1.IssuesFilter
		}{
			{"nothing", "sast", nil},
			{"ids", "", &findingsv1.IssuesFilter{Ids: []int64{first, first + 3}}},
			{"issueParentIds", "", &findingsv1.IssuesFilter{IssueParentIds: []int64{first, first + 3}}},
			{"since", "sast", &findingsv1.IssuesFilter{Since: timestamppb.New(now)}},
			{"repositoryIds", "sast", &findingsv1.IssuesFilter{RepositoryIds: []int64{w.projects["acme/api"]}}},
			{"repositoryNames", "sast", &findingsv1.IssuesFilter{RepositoryNames: []string{"acme/api"}}},
			{"repositoryTags", "sast", &findingsv1.IssuesFilter{RepositoryTags: []string{"pci"}}},
			{"teamNames", "sast", &findingsv1.IssuesFilter{TeamNames: []string{"Platform"}}},
			{"refs", "sast", &findingsv1.IssuesFilter{Refs: []string{"r7"}}},
			{"onPrimaryBranch", "sast", &findingsv1.IssuesFilter{OnPrimaryBranch: true}},
			{"tab", "sast", &findingsv1.IssuesFilter{Tab: findingsv1.IssueTab_ISSUE_TAB_OPEN}},
			{"aggregateIssueStates", "sast", &findingsv1.IssuesFilter{AggregateIssueStates: aggregates("IGNORED_APP")}},
			{"severities", "sast", &findingsv1.IssuesFilter{Severities: []findingsv1.Severity{findingsv1.Severity_SEVERITY_CRITICAL}}},
			{"rules", "sast", &findingsv1.IssuesFilter{Rules: []string{"py.sqli"}}},
			{"ruleIds", "sast", &findingsv1.IssuesFilter{RuleIds: []int64{w.rules["py.sqli"]}}},
			{"policySlugs", "sast", &findingsv1.IssuesFilter{PolicySlugs: []string{"rule-board-block"}}},
			{"aiVerdicts", "sast", &findingsv1.IssuesFilter{AiVerdicts: []findingsv1.Verdict{findingsv1.Verdict_VERDICT_TRUE_POSITIVE}}},
			{"aiSensitivities", "sast", &findingsv1.IssuesFilter{AiSensitivities: []string{"payments"}}},
			{"triageReasons", "sast", &findingsv1.IssuesFilter{TriageReasons: []findingsv1.FindingTriageReason{findingsv1.FindingTriageReason_FINDING_TRIAGE_REASON_DUPLICATE}}},
			{"dependencies", "sca", &findingsv1.IssuesFilter{Dependencies: []string{"package7"}}},
			{"cves", "sca", &findingsv1.IssuesFilter{Cves: []string{"cve-2026-7"}}},
			{"reachabilities", "sca", &findingsv1.IssuesFilter{Reachabilities: []findingsv1.Reachability{findingsv1.Reachability_REACHABILITY_REACHABLE}}},
			{"transitivities", "sca", &findingsv1.IssuesFilter{Transitivities: []string{"DIRECT"}}},
			{"epssProbabilities", "sca", &findingsv1.IssuesFilter{EpssProbabilities: []findingsv1.EpssProbability{findingsv1.EpssProbability_EPSS_PROBABILITY_HIGH}}},
			{"scaRuleKind", "sca", &findingsv1.IssuesFilter{ScaRuleKind: []findingsv1.ScaRuleKind{findingsv1.ScaRuleKind_SCA_RULE_KIND_MALICIOUS_DEPENDENCY}}},
			{"validationStates", "secrets", &findingsv1.IssuesFilter{ValidationStates: []findingsv1.ValidationState{findingsv1.ValidationState_VALIDATION_STATE_CONFIRMED_VALID}}},
			{"clickToFixPrStates", "sast", &findingsv1.IssuesFilter{ClickToFixPrStates: []findingsv1.ClickToFixPrState{findingsv1.ClickToFixPrState_CLICK_TO_FIX_PR_STATE_OPEN}}},
			{"filePaths", "sast", &findingsv1.IssuesFilter{FilePaths: []string{"app"}}},
			{"memoryIdInScope", "sast", &findingsv1.IssuesFilter{MemoryIdInScope: "1"}},
			{"aiMemoryRendered", "sast", &findingsv1.IssuesFilter{AiMemoryRendered: "1"}},
			{"hasInFlightAutofixPr", "sast", &findingsv1.IssuesFilter{HasInFlightAutofixPr: true}},
		} {
			where, err := issuefilter.Where(ctx, c.filter, now)
			if err != nil {
				t.Fatal(err)
			}
			query := st.Reader.Finding.Query().Where(where...).Order(ent.Desc(finding.FieldRelevantSince, finding.FieldID)).Limit(100)
			if c.kind != "" {
				query.Where(finding.IssueType(c.kind))
			}
			if _, err := query.IDs(ctx); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			asked := seen.Take()
			last := asked[len(asked)-1]
			plan := apitest.Explain(t, st, reader, last)
			if wholeTable[s.Store.Dialect()].MatchString(plan) {
				t.Errorf("%s: all findings are read:\n%s\n%s", c.name, last.Text, plan)
			}
		}
	})
}
