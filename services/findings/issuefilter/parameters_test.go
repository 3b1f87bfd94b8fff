package issuefilter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/internal/apitest"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

// variety has findings that differ in everything that the filter can select by.
var variety = []fact{
	{label: "a1", severity: "critical", policy: "rule-board-block", verdict: "true_positive", path: "src/app/Login.py", tag: "payments", risk: "high"},
	{label: "a2", rule: "py.style", severity: "low", policy: "rule-board-pr-comments", verdict: "false_positive", path: "src/application/x.py", age: 2 * hour, tag: "user data", risk: "neutral"},
	{label: "a3", print: "a1", ref: "refs/heads/release", triage: "reviewing", path: "src/app/Login.py", age: 2 * day, fixPR: "open"},
	{label: "a4", ref: "refs/pull/7/merge", triage: "fixing", fixPR: "merged", path: "a_b%c.py", age: 20 * day},
	{label: "a5", triage: "ignored", reason: "false_positive", triagedAge: hour, policy: "rule-board-audit", age: 40 * day},
	{label: "b1", project: "acme/api", state: "muted", severity: "medium", age: 100 * day},
	{label: "b2", project: "acme/api", ref: "refs/heads/release", state: "fixed", triage: "ignored", reason: "no_time", triagedAge: 10 * day, stateAge: 3 * day, age: 200 * day},
	{label: "b3", project: "acme/api", state: "removed", age: 400 * day},
	{label: "b4", project: "acme/api", triage: "provisionally_ignored", verdict: "false_positive"},
	{label: "b5", project: "acme/api", state: "muted", triage: "ignored", reason: "no_triage_reason", triagedAge: 5 * day},
	{label: "c1", kind: "sca", rule: "npm.left", exposure: "reachable", transitivity: "direct", pkg: "left-pad", advice: "CVE-2026-0001", epss: "high", path: "package-lock.json"},
	{label: "c2", kind: "sca", rule: "npm.left", exposure: "conditionally_reachable", transitivity: "transitive", pkg: "lodash", advice: "GHSA-ABCD-EFGH-1234", epss: "none"},
	{label: "c3", kind: "sca", rule: "npm.left", exposure: "unknown", transitivity: "unknown", pkg: "evil", malicious: true},
	{label: "c4", kind: "sca", rule: "npm.left", exposure: "unknown", epss: "low", project: "acme/api"},
	{label: "c5", kind: "sca", rule: "npm.left", exposure: "unreachable", epss: "medium", project: "acme/api"},
	{label: "d1", kind: "secrets", rule: "aws.key", validation: "confirmed_valid"},
	{label: "d2", kind: "secrets", rule: "aws.key", validation: "no_validator", historical: true},
	{label: "e1", project: "acme/old", severity: "critical"},
}

const everything = "a1 a2 a3 a4 a5 b1 b2 b4 b5 c1 c2 c3 c4 c5 d1 d2"

// Every field of the filter, on both databases.
func TestParameters(t *testing.T) {
	t.Parallel()
	type filter = findingsv1.IssuesFilter
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWorld(t, s, s.Tenant)
		w.seed(t, variety...)
		w.remember(t)
		other := newWorld(t, s, s.AddTenant(t, "rival"))
		other.seed(t, fact{label: "theirs", path: "src/app/Login.py", verdict: "true_positive"})
		at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(-d)) }
		memoryID := func(name string) string { return fmt.Sprint(w.memories[name]) }
		for _, c := range []struct {
			filter *filter
			want   string
		}{
			{nil, everything},
			{&filter{}, everything},
			{&filter{Ids: w.ids("a2 c1 e1")}, "a2 c1"},
			{&filter{Ids: append(w.ids("b1"), other.findings["theirs"])}, "b1"},
			{&filter{IssueParentIds: w.ids("a3")}, "a1 a3"},
			{&filter{IssueParentIds: []int64{other.findings["theirs"]}}, ""},
			{&filter{Since: at(2 * day)}, "a1 a2 a3 b4 b5 c1 c2 c3 c4 c5 d1 d2"},
			{&filter{Since: at(2*day - time.Microsecond)}, "a1 a2 b4 b5 c1 c2 c3 c4 c5 d1 d2"},
			{&filter{Until: at(200 * day)}, "b2"},
			{&filter{Since: timestamppb.New(time.Time{}), Until: timestamppb.New(time.Time{})}, everything},
			{&filter{Since: at(6 * day), TimeFilter: findingsv1.TimeFilter_TIME_FILTER_TRIAGED_AT}, "a5 b5"},
			{&filter{TimeFilter: findingsv1.TimeFilter_TIME_FILTER_TRIAGED_AT}, everything},
			{&filter{Since: at(3 * day), TimeFilter: findingsv1.TimeFilter_TIME_FILTER_FIXED_AT}, "b2"},
			{&filter{Since: at(2 * day), TimeFilter: findingsv1.TimeFilter_TIME_FILTER_FIXED_AT}, ""},
			{&filter{RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_ONE_MINUTE, FilePaths: []string{"src"}}, "a1"},
			{&filter{RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_ONE_DAY, FilePaths: []string{"src"}}, "a1 a2"},
			{&filter{RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_ONE_WEEK, FilePaths: []string{"src"}}, "a1 a2 a3"},
			{&filter{RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_ONE_MONTH, Until: at(day)}, "a3 a4"},
			{&filter{RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_THREE_MONTHS, Until: at(day)}, "a3 a4 a5"},
			{&filter{RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_SIX_MONTHS, Until: at(day)}, "a3 a4 a5 b1"},
			{&filter{RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_ONE_YEAR, Until: at(day)}, "a3 a4 a5 b1 b2"},
			{&filter{RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_ALL_TIME, Until: at(day)}, "a3 a4 a5 b1 b2"},
			{&filter{RepositoryNames: []string{"ACME/api", ""}}, "b1 b2 b4 b5 c4 c5"},
			{&filter{RepositoryNames: []string{"", " "}}, everything},
			{&filter{RepositoryNames: []string{"acme/none"}}, ""},
			{&filter{RepositoryIds: []int64{w.projects["acme/api"]}}, "b1 b2 b4 b5 c4 c5"},
			{&filter{RepositoryIds: []int64{other.projects["acme/api"]}}, ""},
			{&filter{RepositoryTags: []string{"pci"}, Severities: []findingsv1.Severity{findingsv1.Severity_SEVERITY_CRITICAL}}, "a1"},
			{&filter{RepositoryTags: []string{"none"}}, ""},
			{&filter{TeamNames: []string{"Edge"}}, "b1 b2 b4 b5 c4 c5"},
			{&filter{TeamNames: []string{"Platform"}}, "b1 b2 b4 b5 c4 c5"},
			{&filter{TeamNames: []string{"Engineering", "Nobody"}}, "b1 b2 b4 b5 c4 c5"},
			{&filter{TeamNames: []string{"Nobody"}}, ""},
			{&filter{Refs: []string{"release", "refs/pull/7/merge"}}, "a3 a4 b2"},
			{&filter{Refs: []string{"_default"}, RepositoryNames: []string{"acme/api"}}, "b2"},
			{&filter{OnPrimaryBranch: true}, "a1 a2 a5 b2 c1 c2 c3 d1 d2"},
			{&filter{RepositoryRefIds: []string{"refs/heads/release"}}, "a3 b2"},
			{&filter{RepositoryRefIds: []string{"refs/pull/7/merge", issuefilter.RefID(w.projects["acme/api"], "refs/heads/release")}}, "a4 b2"},
			{&filter{RepositoryRefIds: []string{issuefilter.RefID(w.projects["acme/Web"], "refs/heads/release"), issuefilter.RefID(w.projects["acme/api"], "refs/heads/release")}}, "a3 b2"},
			{&filter{AiVerdicts: []findingsv1.Verdict{findingsv1.Verdict_VERDICT_FALSE_POSITIVE}}, "a2 b4"},
			{&filter{AiVerdicts: []findingsv1.Verdict{0, findingsv1.Verdict_VERDICT_TRUE_POSITIVE, findingsv1.Verdict_VERDICT_NO_VERDICT}}, "a1 a3 a4 a5 b1 b2 b5 c1 c2 c3 c4 c5 d1 d2"},
			{&filter{AiVerdicts: []findingsv1.Verdict{0}}, everything},
			{&filter{AiSensitivities: []string{"user data"}}, "a2"},
			{&filter{AiSensitivities: []string{"HIGH"}}, "a1"},
			{&filter{AiSensitivities: []string{"SENSITIVITY_NEUTRAL_SENSITIVITY", "payments"}}, "a1 a2"},
			{&filter{AiSensitivities: []string{"low"}}, ""},
			{&filter{Status: []findingsv1.IssueStatus{findingsv1.IssueStatus_ISSUE_STATUS_MUTED}}, "b1 b5"},
			{&filter{Status: []findingsv1.IssueStatus{findingsv1.IssueStatus_ISSUE_STATUS_FIXED, findingsv1.IssueStatus_ISSUE_STATUS_REMOVED}}, "b2"},
			{&filter{Status: []findingsv1.IssueStatus{findingsv1.IssueStatus_ISSUE_STATUS_REMOVED}}, ""},
			{&filter{Status: []findingsv1.IssueStatus{findingsv1.IssueStatus_ISSUE_STATUS_UNRESOLVED}, RepositoryNames: []string{"acme/api"}}, "b4 c4 c5"},
			{&filter{Tab: findingsv1.IssueTab_ISSUE_TAB_OPEN}, "a1 a2 c1 c2 c3 c4 c5 d1 d2"},
			{&filter{Tab: findingsv1.IssueTab_ISSUE_TAB_IGNORED}, "a5 b1 b5"},
			{&filter{Tab: findingsv1.IssueTab_ISSUE_TAB_CLOSED}, "b2"},
			{&filter{Tab: findingsv1.IssueTab_ISSUE_TAB_REVIEWING}, "a3"},
			{&filter{Tab: findingsv1.IssueTab_ISSUE_TAB_FIXING}, "a4"},
			{&filter{Tab: findingsv1.IssueTab_ISSUE_TAB_PROVISIONALLY_IGNORED}, "b4"},
			{&filter{AggregateIssueStates: aggregates("OPEN")}, "a1 a2 c1 c2 c3 c4 c5 d1 d2"},
			{&filter{AggregateIssueStates: aggregates("FIXED", "REMOVED", "UNSPECIFIED")}, "b2"},
			{&filter{AggregateIssueStates: aggregates("REMOVED")}, ""},
			{&filter{AggregateIssueStates: aggregates("IGNORED_APP")}, "a5 b5"},
			{&filter{AggregateIssueStates: aggregates("IGNORED_CODE", "REVIEWING", "FIXING")}, "a3 a4 b1"},
			{&filter{AggregateIssueStates: aggregates("PROVISIONALLY_IGNORED_APP", "UNKNOWN")}, "b4"},
			{&filter{AggregateIssueStates: aggregates("UNKNOWN")}, ""},
			{&filter{TriageReasons: []findingsv1.FindingTriageReason{findingsv1.FindingTriageReason_FINDING_TRIAGE_REASON_FALSE_POSITIVE, findingsv1.FindingTriageReason_FINDING_TRIAGE_REASON_NO_TRIAGE_REASON}}, "a5 b1 b5"},
			{&filter{TriageReasons: []findingsv1.FindingTriageReason{findingsv1.FindingTriageReason_FINDING_TRIAGE_REASON_UNKNOWN}}, ""},
			{&filter{Actions: []findingsv1.Mode{findingsv1.Mode_MODE_BLOCK, findingsv1.Mode_MODE_COMMENT}}, "a1 a2"},
			{&filter{Actions: []findingsv1.Mode{findingsv1.Mode_MODE_MONITOR}}, "a3 a4 a5 b1 b2 b4 b5 c1 c2 c3 c4 c5 d1 d2"},
			{&filter{Actions: []findingsv1.Mode{findingsv1.Mode_MODE_DISABLED}}, ""},
			{&filter{PolicySlugs: []string{"rule-board-block"}}, "a1"},
			{&filter{PolicySlugs: []string{"rule-board-audit"}, RepositoryNames: []string{"acme/web"}, OnPrimaryBranch: true}, "a5 c1 c2 c3 d1 d2"},
			{&filter{Rules: []string{"py.style", "none"}}, "a2"},
			{&filter{RuleIds: []int64{w.rules["py.style"], other.rules["aws.key"]}}, "a2"},
			{&filter{Categories: []string{"best-practice"}}, "a2"},
			{&filter{Categories: []string{"security"}, Rules: []string{"py.style"}}, ""},
			{&filter{Confidences: []findingsv1.Confidence{findingsv1.Confidence_CONFIDENCE_LOW, findingsv1.Confidence_CONFIDENCE_MEDIUM}}, "a2 c1 c2 c3 c4 c5"},
			{&filter{Severities: []findingsv1.Severity{findingsv1.Severity_SEVERITY_LOW, findingsv1.Severity_SEVERITY_MEDIUM}}, "a2 b1"},
			{&filter{Transitivities: []string{"DIRECT"}}, "c1"},
			{&filter{Transitivities: []string{"TRANSITIVE", "UNKNOWN_TRANSITIVITY"}}, "c2 c3"},
			{&filter{Exposures: []string{"REACHABLE"}}, "c1 c2"},
			{&filter{Exposures: []string{"UNREACHABLE", "UNKNOWN_EXPOSURE"}}, "c3 c4 c5"},
			{&filter{Dependencies: []string{"lodash", "left-pad"}}, "c1 c2"},
			{&filter{Cves: []string{"cve-2026-0001"}}, "c1"},
			{&filter{AdvisoryIds: []string{"GHSA-abcd-efgh-1234", "CVE-2026-0001"}}, "c1 c2"},
			{&filter{Reachabilities: []findingsv1.Reachability{findingsv1.Reachability_REACHABILITY_CONDITIONALLY_REACHABLE}}, "c2"},
			{&filter{Reachabilities: []findingsv1.Reachability{findingsv1.Reachability_REACHABILITY_UNKNOWN, findingsv1.Reachability_REACHABILITY_REACHABLE}}, "c1 c3 c4"},
			{&filter{EpssProbabilities: []findingsv1.EpssProbability{findingsv1.EpssProbability_EPSS_PROBABILITY_HIGH, findingsv1.EpssProbability_EPSS_PROBABILITY_NONE}}, "c1 c2"},
			{&filter{ScaRuleKind: []findingsv1.ScaRuleKind{findingsv1.ScaRuleKind_SCA_RULE_KIND_MALICIOUS_DEPENDENCY}}, "c3"},
			{&filter{ScaRuleKind: []findingsv1.ScaRuleKind{findingsv1.ScaRuleKind_SCA_RULE_KIND_REACHABLE}}, "c1 c5"},
			{&filter{ScaRuleKind: []findingsv1.ScaRuleKind{findingsv1.ScaRuleKind_SCA_RULE_KIND_UPGRADE_ONLY}}, "c2 c4"},
			{&filter{ScaRuleKind: []findingsv1.ScaRuleKind{findingsv1.ScaRuleKind_SCA_RULE_KIND_LEGACY}}, ""},
			{&filter{ValidationStates: []findingsv1.ValidationState{findingsv1.ValidationState_VALIDATION_STATE_CONFIRMED_VALID}}, "d1"},
			{&filter{SecretTypes: []string{"aws.key", "py.sqli"}}, "d1 d2"},
			{&filter{ExcludeHistorical: true, SecretTypes: []string{"aws.key"}}, "d1"},
			{&filter{RepoVisibilities: []findingsv1.RepositoryVisibility{findingsv1.RepositoryVisibility_REPOSITORY_VISIBILITY_PUBLIC}}, "b1 b2 b4 b5 c4 c5"},
			{&filter{RepoVisibilities: []findingsv1.RepositoryVisibility{findingsv1.RepositoryVisibility_REPOSITORY_VISIBILITY_UNKNOWN}}, ""},
			{&filter{ClickToFixPrStates: []findingsv1.ClickToFixPrState{findingsv1.ClickToFixPrState_CLICK_TO_FIX_PR_STATE_OPEN}}, "a3"},
			{&filter{ClickToFixPrStates: []findingsv1.ClickToFixPrState{findingsv1.ClickToFixPrState_CLICK_TO_FIX_PR_STATE_NO_PR}, Refs: []string{"release", "refs/pull/7/merge"}}, "b2"},
			{&filter{FilePaths: []string{"APP/login", "package"}}, "a1 a3"},
			{&filter{FilePaths: []string{"_b%"}}, "a4"},
			{&filter{FilePaths: []string{""}}, everything},
			{&filter{IncludeArchived: true}, "e1"},
			{&filter{IncludeTicketed: true}, everything},
			{&filter{FilterIssueTypes: []findingsv1.IssueType{findingsv1.IssueType_ISSUE_TYPE_SCA}}, everything},
			{&filter{HasInFlightAutofixPr: true}, "a1"},
			{&filter{AiMemoryReferenced: memoryID("all")}, "a1"},
			{&filter{AiMemoryReferenced: memoryID("all"), IncludeAiMemoryRendered: true}, "a1 a2 b4"},
			{&filter{AiMemoryRendered: memoryID("all")}, "a1 a2 b4"},
			{&filter{AiMemoryRendered: memoryID("rule")}, ""},
			{&filter{AiMemoryWillFlipVerdict: memoryID("all")}, "a2"},
			{&filter{IncludeAiMemoryRendered: true}, everything},
			{&filter{MemoryIdInScope: memoryID("all")}, everything},
			{&filter{MemoryIdInScope: memoryID("rule")}, "a2"},
			{&filter{MemoryIdInScope: memoryID("project")}, "b1 b2 b4 b5 c4 c5"},
			{&filter{MemoryIdInScope: memoryID("tag")}, "a1 a2 a3 a4 a5 c1 c2 c3 d1 d2"},
			{&filter{MemoryIdInScope: memoryID("paths")}, "a1 a3 c1"},
			{&filter{MemoryIdInScope: memoryID("class")}, "a1 a3 a4 a5 b1 b2 b4 b5"},
			{&filter{MemoryIdInScope: memoryID("deleted")}, ""},
			{&filter{MemoryIdInScope: "0"}, everything},
			{&filter{Rulesets: []string{"default"}}, ""},
			{&filter{Source: []findingsv1.Source{findingsv1.Source_SOURCE_CUSTOM}}, "a2"},
			{&filter{Source: []findingsv1.Source{findingsv1.Source_SOURCE_CUSTOM, findingsv1.Source_SOURCE_COMMUNITY}}, "a2 d1 d2"},
			{&filter{Source: []findingsv1.Source{findingsv1.Source_SOURCE_PRO}}, ""},
			{&filter{Source: []findingsv1.Source{0}}, everything},
			{&filter{BacklogType: findingsv1.IssueBacklogType_ISSUE_BACKLOG_TYPE_PROD}, ""},
			{&filter{UpgradeGuidance: []findingsv1.BreakingChangeType{findingsv1.BreakingChangeType_BREAKING_CHANGE_TYPE_NOT_BREAKING}}, ""},
			{&filter{UpgradeGuidanceFilters: []findingsv1.UpgradeGuidanceSelection{findingsv1.UpgradeGuidanceSelection_UPGRADE_GUIDANCE_SELECTION_SAFE}}, ""},
			{&filter{RepositoryDeploymentStatuses: []findingsv1.DeploymentStatus{findingsv1.DeploymentStatus_DEPLOYMENT_STATUS_DEPLOYED}}, ""},
			{&filter{RepositoryDeploymentStatuses: []findingsv1.DeploymentStatus{findingsv1.DeploymentStatus_DEPLOYMENT_STATUS_DEPLOYED, findingsv1.DeploymentStatus_DEPLOYMENT_STATUS_UNKNOWN}}, everything},
			{&filter{RepositoryPublicExposures: []findingsv1.PublicExposure{findingsv1.PublicExposure_PUBLIC_EXPOSURE_PUBLIC}}, ""},
			{&filter{RepositoryPublicExposures: []findingsv1.PublicExposure{findingsv1.PublicExposure_PUBLIC_EXPOSURE_UNKNOWN}}, everything},
		} {
			if got := w.chosen(t, c.filter); got != c.want {
				t.Errorf("%v:\n got %s\nwant %s", c.filter, got, c.want)
			}
		}
	})
}

func aggregates(words ...string) (list []findingsv1.AggregateIssueState) {
	for _, word := range words {
		list = append(list, findingsv1.AggregateIssueState(findingsv1.AggregateIssueState_value["AGGREGATE_ISSUE_STATE_"+word]))
	}
	return list
}

// remember stores memories, analyses with the memory all, and requests for fixes.
func (w *world) remember(t testing.TB) {
	t.Helper()
	w.write(t, func(ctx context.Context, tx *ent.Tx) error {
		rule, project, tag := w.rules["py.style"], w.projects["acme/api"], w.tags["pci"]
		for _, m := range []struct {
			name  string
			shape func(*ent.AiMemoryCreate)
		}{
			{"all", func(*ent.AiMemoryCreate) {}},
			{"rule", func(m *ent.AiMemoryCreate) { m.SetRuleID(rule) }},
			{"project", func(m *ent.AiMemoryCreate) { m.SetProjectID(project) }},
			{"tag", func(m *ent.AiMemoryCreate) { m.SetProjectTagID(tag) }},
			{"paths", func(m *ent.AiMemoryCreate) { m.SetPathPrefixes([]string{"src/app", "package-lock.json"}) }},
			{"class", func(m *ent.AiMemoryCreate) { m.SetVulnerabilityClass("SQL Injection") }},
			{"deleted", func(m *ent.AiMemoryCreate) { m.SetStage("deleted") }},
		} {
			create := tx.AiMemory.Create().SetDeploymentID(w.DeploymentID).SetContent(m.name).SetContext([]string{"TRIAGE"}).
				SetPathPrefixes([]string{}).SetStage("live").SetCreatedAt(1).SetUpdatedAt(1)
			m.shape(create)
			row, err := create.Save(ctx)
			if err != nil {
				return err
			}
			w.memories[m.name] = row.ID
		}
		for _, a := range []struct {
			label, verdict string
			with, named    bool
		}{
			{"a1", "true_positive", false, false},
			{"a1", "true_positive", true, true}, // as before
			{"a2", "true_positive", false, false},
			{"a2", "false_positive", true, false}, // flipped
			{"b4", "false_positive", true, false}, // no earlier verdict
		} {
			row, err := tx.AiAnalysis.Create().SetDeploymentID(w.DeploymentID).SetFindingID(w.findings[a.label]).SetStatus("done").
				SetVerdict(a.verdict).SetCreatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			if a.with {
				err := tx.AiMemoryUse.Create().SetDeploymentID(w.DeploymentID).SetMemoryID(w.memories["all"]).SetAnalysisID(row.ID).
					SetFindingID(row.FindingID).SetReferenced(a.named).Exec(ctx)
				if err != nil {
					return err
				}
			}
		}
		for _, f := range []struct {
			label, status string
			age           time.Duration
		}{{"a1", "failed", 2 * hour}, {"a1", "requested", 9 * time.Minute}, {"a2", "requested", 11 * time.Minute}, {"a3", "requested", time.Minute}, {"a3", "opened", time.Minute}} {
			err := tx.AiFix.Create().SetDeploymentID(w.DeploymentID).SetFindingID(w.findings[f.label]).SetStatus(f.status).
				SetActorKind("user").SetActorID(1).SetRequestedAt(ago(f.age)).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// An invalid id is rejected with the name of the field.
func TestInvalid(t *testing.T) {
	ctx := tenant.NewContext(t.Context(), 1)
	for field, f := range map[string]*findingsv1.IssuesFilter{
		"filter.repositoryRefIds":        {RepositoryRefIds: []string{"12:refs/heads/main", "main"}},
		"filter.memoryIdInScope":         {MemoryIdInScope: "one"},
		"filter.aiMemoryReferenced":      {AiMemoryReferenced: "99999999999999999999"},
		"filter.aiMemoryRendered":        {AiMemoryRendered: "-"},
		"filter.aiMemoryWillFlipVerdict": {AiMemoryWillFlipVerdict: "x"},
	} {
		if _, err := issuefilter.Where(ctx, f, now); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, id := range []string{"1:main", "-1:refs/heads/main", "+1:refs/heads/main", "01:refs/heads/main", "0:refs/heads/main", "1:", ":refs/heads/main", "12"} {
		_, err := issuefilter.Where(ctx, &findingsv1.IssuesFilter{RepositoryRefIds: []string{id}}, now)
		if want := fmt.Sprintf("filter.repositoryRefIds: got %q, want a full ref, such as refs/heads/main, or the id of a project", id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := issuefilter.Where(t.Context(), nil, now); err == nil {
		t.Error("a filter without a deployment")
	}
}

// Callers with teams see the findings of their teams only, for any filter.
func TestTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWorld(t, s, s.Tenant)
		w.seed(t, variety...)
		w.remember(t)
		edge := s.Store.Reader.Team.Query().Order(ent.Desc("id")).FirstIDX(s.System(t))
		ctx := tenant.WithTeams(tenant.NewContext(t.Context(), w.DeploymentID), []int64{edge})
		for _, c := range []struct {
			filter *findingsv1.IssuesFilter
			want   string
		}{
			{nil, "b1 b2 b4 b5 c4 c5"},
			{&findingsv1.IssuesFilter{Ids: w.ids("a1 b1")}, "b1"},
			{&findingsv1.IssuesFilter{IssueParentIds: w.ids("a1")}, ""},
			{&findingsv1.IssuesFilter{RepositoryNames: []string{"acme/web"}}, ""},
			{&findingsv1.IssuesFilter{AiMemoryRendered: fmt.Sprint(w.memories["all"])}, "b4"},
		} {
			if got := w.chosenIn(t, ctx, c.filter); got != c.want {
				t.Errorf("%v: got %s, want %s", c.filter, got, c.want)
			}
		}
	})
}
