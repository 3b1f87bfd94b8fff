package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/workflows/step"
)

const (
	maxFindings     = 3000
	defaultFindings = 100
	// maxListed leaves space in an output for the fields around the list.
	maxListed = step.MaxOutput - 4096
	// maxText is the maximum size of a finding's text in the list, in bytes.
	maxText = 4000
)

var (
	severities = []string{"critical", "high", "medium", "low"}
	issueTypes = []string{"sast", "sca", "ai_sast", "secrets"}
	statuses   = []string{
		lifecycle.Open, lifecycle.Ignored, lifecycle.Fixed, lifecycle.Removed, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.ProvisionallyIgnored,
	}
)

// queryParameters are the parameters of findings.query. An absent parameter matches all, except the status.
type queryParameters struct {
	// Status defaults to open.
	Status     words `json:"status"`
	Severities words `json:"severities"`
	IssueTypes words `json:"issueTypes"`
	// Rules are rule names.
	Rules words `json:"rules"`
	// ProjectID has no effect in a run about one project.
	ProjectID id `json:"projectId"`
	// WithoutVerdict excludes findings with a verdict by automation.
	WithoutVerdict bool `json:"withoutVerdict"`
	// UntriagedOnly excludes findings that have been triaged.
	UntriagedOnly bool `json:"untriagedOnly"`
	Limit         int  `json:"limit"`
}

func (p queryParameters) problem(map[string]bool) string {
	for _, check := range []struct {
		name    string
		got     words
		allowed []string
	}{{"status", p.Status, statuses}, {"severities", p.Severities, severities}, {"issueTypes", p.IssueTypes, issueTypes}} {
		if word, foreign := check.got.firstUnknown(check.allowed...); foreign {
			return fmt.Sprintf("%s must be of %s, got %.40q", check.name, strings.Join(check.allowed, ", "), word)
		}
	}
	if p.Limit < 0 || p.Limit > maxFindings {
		return fmt.Sprintf("limit must be 1 to %d, or 0 for %d; got %d", maxFindings, defaultFindings, p.Limit)
	}
	return ""
}

// foundFinding is an item of the output's list.
type foundFinding struct {
	ID       int64  `json:"id"`
	RuleName string `json:"ruleName"`
	Message  string `json:"message"`
	Severity string `json:"severity"`
	Path     string `json:"path"`
	Line     int32  `json:"line"`
	EndLine  int32  `json:"endLine"`
	Snippet  string `json:"snippet"`
	Project  string `json:"project"`
	Ref      string `json:"ref"`
	// ContentHash changes when scans report other content for the finding; findings.verdict takes it. It is a string, like
	// all int64 values of the API.
	ContentHash int64 `json:"contentHash,string"`
}

// query lists findings by severity, worst first, then newest first. Without a ref in the run it lists the primary
// branch of each project, because other branches repeat the same findings.
func query(st *store.Store) step.Kind {
	return step.Kind{
		Name: "findings.query", Doc: "Lists findings of the run's project, or of all: [{id, ruleName, message, severity, path, line, endLine, snippet, project, ref, contentHash}].",
		Check: checked[queryParameters](),
		Run: func(ctx context.Context, call step.Call) (step.Result, error) {
			p, err := decodeParameters[queryParameters](call)
			if err != nil {
				return step.Result{}, err
			}
			ctx = tenant.NewContext(ctx, call.DeploymentID)
			where, err := p.predicates(ctx, st, call)
			if err != nil {
				return step.Result{}, err
			}
			limit := p.Limit
			if limit == 0 {
				limit = defaultFindings
			}
			rows, err := st.Reader.Finding.Query().Where(where...).Order(worstFirst).Limit(limit).
				Select(finding.FieldID, finding.FieldProjectID, finding.FieldRuleID, finding.FieldRef, finding.FieldSeverity, finding.FieldContentHash, finding.FieldContent).All(ctx)
			if err != nil {
				return step.Result{}, storeError("the findings could not be read", err)
			}
			return listed(ctx, st, rows)
		},
	}
}

func (p queryParameters) predicates(ctx context.Context, st *store.Store, call step.Call) ([]predicate.Finding, error) {
	where := []predicate.Finding{finding.DeploymentID(call.DeploymentID)}
	status := p.Status
	if len(status) == 0 {
		status = words{lifecycle.Open}
	}
	where = append(where, store.OneOf(finding.FieldStatus, status))
	if len(p.Severities) > 0 {
		where = append(where, store.OneOf(finding.FieldSeverity, p.Severities))
	}
	if len(p.IssueTypes) > 0 {
		where = append(where, store.OneOf(finding.FieldIssueType, p.IssueTypes))
	}
	if len(p.Rules) > 0 {
		ids, err := st.Reader.Rule.Query().Where(rule.DeploymentID(call.DeploymentID), store.OneOf(rule.FieldName, p.Rules)).IDs(ctx)
		if err != nil {
			return nil, storeError("the rules could not be read", err)
		}
		where = append(where, func(s *entsql.Selector) { s.Where(store.InIDs(s.C(finding.FieldRuleID), ids)) })
	}
	if call.ProjectID != nil {
		where = append(where, finding.ProjectID(*call.ProjectID))
	}
	if p.ProjectID != 0 {
		where = append(where, finding.ProjectID(int64(p.ProjectID)))
	}
	if call.GitRef != "" {
		where = append(where, finding.Ref(gitref.Full(call.GitRef)))
	} else {
		where = append(where, onPrimaryBranch(call.DeploymentID))
	}
	if p.WithoutVerdict {
		where = append(where, finding.AutotriageVerdictIsNil())
	}
	if p.UntriagedOnly {
		where = append(where, finding.TriageState(lifecycle.Untriaged))
	}
	return where, nil
}

// onPrimaryBranch excludes the other branches of projects with a known primary branch.
func onPrimaryBranch(deploymentID int64) predicate.Finding {
	return func(s *entsql.Selector) {
		p := entsql.Dialect(s.Dialect()).Table(project.Table).As("owner")
		owner := entsql.Dialect(s.Dialect()).
			SelectExpr(entsql.Expr("COALESCE(NULLIF(" + p.C(project.FieldPrimaryBranch) + ", ''), NULLIF(" + p.C(project.FieldDefaultBranch) + ", ''), " + s.C(finding.FieldRef) + ")")).
			From(p).Where(entsql.And(
			entsql.ColumnsEQ(p.C(project.FieldID), s.C(finding.FieldProjectID)),
			entsql.EQ(p.C(project.FieldDeploymentID), deploymentID),
		))
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(finding.FieldRef)).WriteString(" = ").Wrap(func(b *entsql.Builder) { b.Join(owner) })
		}))
	}
}

func worstFirst(s *entsql.Selector) {
	column := s.C(finding.FieldSeverity)
	s.OrderExpr(entsql.Expr("CASE " + column + " WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END"))
	s.OrderBy(entsql.Desc(s.C(finding.FieldRelevantSince)), entsql.Desc(s.C(finding.FieldID)))
}

// listed builds the output. It stops before the output gets too large; the next run lists the rest.
func listed(ctx context.Context, st *store.Store, rows []*ent.Finding) (step.Result, error) {
	rules, projects, err := namesOf(ctx, st, rows)
	if err != nil {
		return step.Result{}, err
	}
	list, size := []json.RawMessage{}, 2
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return step.Result{}, step.Permanent("the content of finding %d cannot be read", row.ID)
		}
		location := content.GetLocation()
		encoded, err := json.Marshal(foundFinding{
			ID: row.ID, RuleName: rules[row.RuleID], Message: clip(content.GetMessage()), Severity: row.Severity, Path: location.GetFilePath(),
			Line: location.GetLine(), EndLine: location.GetEndLine(), Snippet: clip(content.GetSnippet()), Project: projects[row.ProjectID], Ref: row.Ref,
			ContentHash: row.ContentHash,
		})
		if err != nil {
			return step.Result{}, err
		}
		if size += len(encoded) + 1; size > maxListed {
			break
		}
		list = append(list, encoded)
	}
	return output(list)
}

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// namesOf looks up the names of the findings' rules and projects.
func namesOf(ctx context.Context, st *store.Store, rows []*ent.Finding) (rules, projects map[int64]string, err error) {
	rules, projects = map[int64]string{}, map[int64]string{}
	var ruleIDs, projectIDs []int64
	for _, row := range rows {
		if _, known := rules[row.RuleID]; !known {
			rules[row.RuleID], ruleIDs = "", append(ruleIDs, row.RuleID)
		}
		if _, known := projects[row.ProjectID]; !known {
			projects[row.ProjectID], projectIDs = "", append(projectIDs, row.ProjectID)
		}
	}
	found, err := st.Reader.Rule.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(rule.FieldID), ruleIDs)) }).
		Select(rule.FieldID, rule.FieldName).All(ctx)
	if err != nil {
		return nil, nil, storeError("the rules could not be read", err)
	}
	for _, r := range found {
		rules[r.ID] = r.Name
	}
	owners, err := st.Reader.Project.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(project.FieldID), projectIDs)) }).
		Select(project.FieldID, project.FieldName).All(ctx)
	if err != nil {
		return nil, nil, storeError("the projects could not be read", err)
	}
	for _, p := range owners {
		projects[p.ID] = p.Name
	}
	return rules, projects, nil
}
