package schema

import (
	"context"
	"fmt"

	"entgo.io/ent"
	"entgo.io/ent/dialect/sql"

	gen "github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/aimemory"
	"github.com/palisade/palisade/ent/aimemoryuse"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/detectionexception"
	"github.com/palisade/palisade/ent/exceptionrequest"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/findingmatch"
	"github.com/palisade/palisade/ent/freshness"
	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/ent/identitychange"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/policyact"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/privacy"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/pullrequestfeedback"
	"github.com/palisade/palisade/ent/ruleboardproject"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scananswer"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/ticketlink"
	"github.com/palisade/palisade/ent/workflowrun"
)

// Policy of projects: only projects of the caller's teams are visible.
func (Project) Policy() ent.Policy {
	return ofVisibleProjects[predicate.Project, *gen.ProjectQuery](byProject(project.FieldID))
}

// Policy of project tags: visible with the project.
func (ProjectTag) Policy() ent.Policy {
	return ofVisibleProjects[predicate.ProjectTag, *gen.ProjectTagQuery](byProject(projecttag.FieldProjectID))
}

// Policy of tags: visible with at least one of their projects. The names of other tags could reveal what hidden
// projects are about.
func (Tag) Policy() ent.Policy {
	return ofVisibleProjects[predicate.Tag, *gen.TagQuery](byLink)
}

// Policy of scans: visible with the project.
func (Scan) Policy() ent.Policy {
	return ofVisibleProjects[predicate.Scan, *gen.ScanQuery](byProject(scan.FieldProjectID))
}

// Policy of managed scans: visible with the project.
func (ManagedScan) Policy() ent.Policy {
	return ofVisibleProjects[predicate.ManagedScan, *gen.ManagedScanQuery](byProject(managedscan.FieldProjectID))
}

// Policy of findings: visible with the project.
func (Finding) Policy() ent.Policy {
	return ofVisibleProjects[predicate.Finding, *gen.FindingQuery](byProject(finding.FieldProjectID))
}

// Policy of finding events: visible with the finding.
func (FindingEvent) Policy() ent.Policy {
	return ofVisibleProjects[predicate.FindingEvent, *gen.FindingEventQuery](byFinding)
}

// Policy of matches: visible with the finding.
func (FindingMatch) Policy() ent.Policy {
	return ofVisibleProjects[predicate.FindingMatch, *gen.FindingMatchQuery](byFinding)
}

// Policy of identity changes: visible with the project.
func (IdentityChange) Policy() ent.Policy {
	return ofVisibleProjects[predicate.IdentityChange, *gen.IdentityChangeQuery](byProject(identitychange.FieldProjectID))
}

// Policy of triage changes' findings: visible with the finding.
func (TriageChangeFinding) Policy() ent.Policy {
	return ofVisibleProjects[predicate.TriageChangeFinding, *gen.TriageChangeFindingQuery](byFinding)
}

// Policy of exception requests: visible with the project.
func (ExceptionRequest) Policy() ent.Policy {
	return ofVisibleProjects[predicate.ExceptionRequest, *gen.ExceptionRequestQuery](byProject(exceptionrequest.FieldProjectID))
}

// Policy of held closes: visible with the project.
func (HeldClose) Policy() ent.Policy {
	return ofVisibleProjects[predicate.HeldClose, *gen.HeldCloseQuery](byProject(heldclose.FieldProjectID))
}

// Policy of feedback on pull requests: visible with the project.
func (PullRequestFeedback) Policy() ent.Policy {
	return ofVisibleProjects[predicate.PullRequestFeedback, *gen.PullRequestFeedbackQuery](byProject(pullrequestfeedback.FieldProjectID))
}

// Policy of links to tickets: visible with the project.
func (TicketLink) Policy() ent.Policy {
	return ofVisibleProjects[predicate.TicketLink, *gen.TicketLinkQuery](byProject(ticketlink.FieldProjectID))
}

// Policy of acts of policies: visible with the project.
func (PolicyAct) Policy() ent.Policy {
	return ofVisibleProjects[predicate.PolicyAct, *gen.PolicyActQuery](byProject(policyact.FieldProjectID))
}

// Policy of scan coverages: visible with the project.
func (ScanCoverage) Policy() ent.Policy {
	return ofVisibleProjects[predicate.ScanCoverage, *gen.ScanCoverageQuery](byProject(scancoverage.FieldProjectID))
}

// Policy of answers to uploads: visible with the project.
func (ScanAnswer) Policy() ent.Policy {
	return ofVisibleProjects[predicate.ScanAnswer, *gen.ScanAnswerQuery](byProject(scananswer.FieldProjectID))
}

// Policy of freshness: visible with the project.
func (Freshness) Policy() ent.Policy {
	return ofVisibleProjects[predicate.Freshness, *gen.FreshnessQuery](byProject(freshness.FieldProjectID))
}

// Policy of detection exceptions: visible with the project; exceptions for tags are visible to everybody.
func (DetectionException) Policy() ent.Policy {
	return ofVisibleProjects[predicate.DetectionException, *gen.DetectionExceptionQuery](orOfNone(detectionexception.FieldProjectID))
}

// Policy of assignments to rule boards: visible with the project.
func (RuleboardProject) Policy() ent.Policy {
	return ofVisibleProjects[predicate.RuleboardProject, *gen.RuleboardProjectQuery](byProject(ruleboardproject.FieldProjectID))
}

// Policy of dependencies: visible with the project.
func (Dependency) Policy() ent.Policy {
	return ofVisibleProjects[predicate.Dependency, *gen.DependencyQuery](byProject(dependency.FieldProjectID))
}

// Policy of workflow runs: visible with the project. Runs about no single project show findings of all projects, so
// limited callers do not see them.
func (WorkflowRun) Policy() ent.Policy {
	return ofVisibleProjects[predicate.WorkflowRun, *gen.WorkflowRunQuery](byProject(workflowrun.FieldProjectID))
}

// Policy of agentic-workflow issues: visible with the project.
func (AgenticIssue) Policy() ent.Policy {
	return ofVisibleProjects[predicate.AgenticIssue, *gen.AgenticIssueQuery](byProject(agenticissue.FieldProjectID))
}

// Policy of memories: visible with the project; memories of the whole deployment are visible to everybody.
func (AiMemory) Policy() ent.Policy {
	return ofVisibleProjects[predicate.AiMemory, *gen.AiMemoryQuery](orOfNone(aimemory.FieldProjectID))
}

// Policy of analyses: visible with the finding.
func (AiAnalysis) Policy() ent.Policy {
	return ofVisibleProjects[predicate.AiAnalysis, *gen.AiAnalysisQuery](byFinding)
}

// Policy of fixes: visible with the finding.
func (AiFix) Policy() ent.Policy {
	return ofVisibleProjects[predicate.AiFix, *gen.AiFixQuery](byFinding)
}

// Policy of memory uses: visible with the finding.
func (AiMemoryUse) Policy() ent.Policy {
	return ofVisibleProjects[predicate.AiMemoryUse, *gen.AiMemoryUseQuery](byFinding)
}

// Hooks of projects: callers who are limited to teams cannot create projects, and lists of findings show names and
// links of projects.
func (Project) Hooks() []ent.Hook {
	return []ent.Hook{
		createsIn(project.FieldID, func(context.Context, *gen.Client, int64) (bool, error) { return false, nil }),
		inCatalog(project.FieldName, project.FieldURL, project.FieldScmType),
	}
}

// Hooks of project tags.
func (ProjectTag) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(projecttag.FieldProjectID, projectExists)}
}

// Hooks of scans.
func (Scan) Hooks() []ent.Hook { return []ent.Hook{createsIn(scan.FieldProjectID, projectExists)} }

// Hooks of findings.
func (Finding) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(finding.FieldProjectID, projectExists)}
}

// Hooks of events.
func (FindingEvent) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(findingevent.FieldFindingID, findingExists)}
}

// Hooks of matches.
func (FindingMatch) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(findingmatch.FieldFindingID, findingExists)}
}

// Hooks of identity changes.
func (IdentityChange) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(identitychange.FieldProjectID, projectExists)}
}

// Hooks of held closes.
func (HeldClose) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(heldclose.FieldProjectID, projectExists)}
}

// Hooks of feedback on pull requests.
func (PullRequestFeedback) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(pullrequestfeedback.FieldProjectID, projectExists)}
}

// Hooks of links to tickets.
func (TicketLink) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(ticketlink.FieldProjectID, projectExists)}
}

// Hooks of acts of policies.
func (PolicyAct) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(policyact.FieldProjectID, projectExists)}
}

// Hooks of scan coverages.
func (ScanCoverage) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(scancoverage.FieldProjectID, projectExists)}
}

// Hooks of answers to uploads.
func (ScanAnswer) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(scananswer.FieldProjectID, projectExists)}
}

// Hooks of freshness.
func (Freshness) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(freshness.FieldProjectID, projectExists)}
}

// Hooks of dependencies.
func (Dependency) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(dependency.FieldProjectID, projectExists)}
}

// Hooks of runs.
func (WorkflowRun) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(workflowrun.FieldProjectID, projectExists)}
}

// Hooks of agentic-workflow issues.
func (AgenticIssue) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(agenticissue.FieldProjectID, projectExists)}
}

// Hooks of detection exceptions.
func (DetectionException) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(detectionexception.FieldProjectID, projectExists)}
}

// Hooks of assignments to rule boards.
func (RuleboardProject) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(ruleboardproject.FieldProjectID, projectExists)}
}

// Hooks of memories.
func (AiMemory) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(aimemory.FieldProjectID, projectExists)}
}

// Hooks of analyses.
func (AiAnalysis) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(aianalysis.FieldFindingID, findingExists)}
}

// Hooks of fixes.
func (AiFix) Hooks() []ent.Hook { return []ent.Hook{createsIn(aifix.FieldFindingID, findingExists)} }

// Hooks of memory uses.
func (AiMemoryUse) Hooks() []ent.Hook {
	return []ent.Hook{createsIn(aimemoryuse.FieldFindingID, findingExists)}
}

// condition selects the rows of a table that belong to visible projects; nil when all projects are visible.
type condition func(ctx context.Context, s *sql.Selector) *sql.Predicate

// byProject is the condition for a table with a project id.
func byProject(column string) condition {
	return func(ctx context.Context, s *sql.Selector) *sql.Predicate {
		return tenant.InVisibleProjects(ctx, s, s.C(column))
	}
}

// orOfNone is the condition for a table with a project id where null means the whole deployment.
func orOfNone(column string) condition {
	return func(ctx context.Context, s *sql.Selector) *sql.Predicate {
		return sql.Or(sql.IsNull(s.C(column)), tenant.InVisibleProjects(ctx, s, s.C(column)))
	}
}

// byLink is the condition that a visible project has a tag.
func byLink(ctx context.Context, s *sql.Selector) *sql.Predicate {
	link := sql.Table(projecttag.Table).As("link")
	visible := tenant.InVisibleProjects(ctx, s, link.C(projecttag.FieldProjectID))
	if visible == nil {
		return nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	return sql.Exists(sql.Dialect(s.Dialect()).Select(link.C(projecttag.FieldID)).From(link).Where(sql.And(
		sql.ColumnsEQ(link.C(projecttag.FieldTagID), s.C(tag.FieldID)),
		sql.EQ(link.C(projecttag.FieldDeploymentID), deploymentID),
		visible,
	)))
}

// byFinding is the condition for a table with a finding id. It looks up each finding, which is cheaper for one page
// than listing all visible findings.
func byFinding(ctx context.Context, s *sql.Selector) *sql.Predicate {
	owner := sql.Table(finding.Table).As("owner")
	owners := sql.Dialect(s.Dialect()).Select(owner.C(finding.FieldID)).From(owner)
	visible := tenant.InVisibleProjects(ctx, s, owner.C(finding.FieldProjectID))
	if visible == nil {
		return nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	return sql.Exists(owners.Where(sql.And(
		sql.ColumnsEQ(owner.C(finding.FieldID), s.C(findingevent.FieldFindingID)),
		sql.EQ(owner.C(finding.FieldDeploymentID), deploymentID),
		visible,
	)))
}

// ofVisibleProjects limits queries, updates and deletes of a table to the data of the caller's teams (see
// tenant.WithTeams). It is evaluated after the tenant rule and, like it, does not cover subqueries.
func ofVisibleProjects[P ~func(*sql.Selector), Q interface{ Where(...P) Q }](visible condition) ent.Policy {
	limit := func(ctx context.Context, where func(func(*sql.Selector))) {
		if _, limited := tenant.Teams(ctx); limited {
			where(func(s *sql.Selector) { s.Where(visible(ctx, s)) })
		}
	}
	return privacy.Policy{
		Query: privacy.QueryPolicy{privacy.QueryRuleFunc(func(ctx context.Context, q ent.Query) error {
			query, ok := q.(Q)
			if !ok {
				return privacy.Denyf("a policy for another table than that of %T", q)
			}
			limit(ctx, func(p func(*sql.Selector)) { query.Where(p) })
			return privacy.Skip
		})},
		Mutation: privacy.MutationPolicy{privacy.MutationRuleFunc(func(ctx context.Context, m ent.Mutation) error {
			mutation, ok := m.(interface{ WhereP(...func(*sql.Selector)) })
			if !ok {
				return privacy.Denyf("%T takes no conditions", m)
			}
			limit(ctx, func(p func(*sql.Selector)) { mutation.WhereP(p) })
			return privacy.Skip
		})},
	}
}

// createsIn refuses to create a row for a parent that the caller does not see. A policy cannot do this: it only filters
// existing rows.
func createsIn(field string, exists func(ctx context.Context, db *gen.Client, id int64) (bool, error)) ent.Hook {
	return func(next ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
			if _, limited := tenant.Teams(ctx); !limited || !m.Op().Is(ent.OpCreate) {
				return next.Mutate(ctx, m)
			}
			client, ok := m.(interface{ Client() *gen.Client })
			if !ok {
				return nil, fmt.Errorf("create with %T: %w", m, privacy.Deny)
			}
			named, _ := m.Field(field)
			id, _ := named.(int64)
			visible, err := exists(ctx, client.Client(), id)
			if err == nil && !visible {
				err = fmt.Errorf("create %s outside of the projects of the caller's teams: %w", m.Type(), privacy.Deny)
			}
			if err != nil {
				return nil, err
			}
			return next.Mutate(ctx, m)
		})
	}
}

func projectExists(ctx context.Context, db *gen.Client, id int64) (bool, error) {
	return db.Project.Query().Where(project.ID(id)).Exist(ctx)
}

func findingExists(ctx context.Context, db *gen.Client, id int64) (bool, error) {
	return db.Finding.Query().Where(finding.ID(id)).Exist(ctx)
}
