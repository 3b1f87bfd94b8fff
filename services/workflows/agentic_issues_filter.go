package workflows

import (
	"context"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/agenticissuelabel"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowfinding"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/workflows/issues"
)

// issueFilter converts a filter to conditions, joined with AND. The deployment comes first, as in each index.
func issueFilter(ctx context.Context, f *workflowsv1.IssueFilters) []predicate.AgenticIssue {
	deploymentID, _ := tenant.FromContext(ctx)
	labels := func(kind string, values []string) predicate.AgenticIssue {
		return labelled(deploymentID, kind, len(values) > 0, func(column string) *entsql.Predicate {
			return store.In(column, values)
		})
	}
	where := []predicate.AgenticIssue{
		agenticissue.DeploymentID(deploymentID),
		inIDs(agenticissue.FieldID, f.GetIds()),
		inIDs(agenticissue.FieldProjectID, f.GetProjectIds()),
		contains(agenticissue.FieldTitle, f.GetTitleQuery()),
		contains(agenticissue.FieldDescription, f.GetDescriptionQuery()),
		contains(agenticissue.FieldReasoning, f.GetReasoningQuery()),
		inWords(agenticissue.FieldDetectionState, f.GetDetectionStates()),
		inSeverities(f.GetSeverities()),
		inWords(agenticissue.FieldTriageState, f.GetTriageStates()),
		inReasons(f.GetTriageReasons()),
		labels(issues.LabelAction, f.GetActions()),
		labels(issues.LabelWorkflow, f.GetWorkflowIds()),
		labels(issues.LabelIdentity, f.GetIdentities()),
		labels(issues.LabelTriggerSource, f.GetTriggerSources()),
		labels(issues.LabelRef, fullRefs(f.GetRefIds())),
		labelled(deploymentID, issues.LabelFilePath, f.GetFilePathQuery() != "", func(column string) *entsql.Predicate {
			return containsFold(column, f.GetFilePathQuery())
		}),
		inTime(agenticissue.FieldCreatedAt, f.GetCreatedAt()),
		inTime(agenticissue.FieldLastDetectedAt, f.GetLastDetectedAt()),
		inTime(agenticissue.FieldTriagedAt, f.GetTriagedAt()),
		detectedBy(deploymentID, f.GetWorkflowJobIds()),
	}
	return slices.DeleteFunc(where, func(p predicate.AgenticIssue) bool { return p == nil })
}

func inIDs(column string, ids []int64) predicate.AgenticIssue {
	if len(ids) == 0 {
		return nil
	}
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(column), ids)) }
}

// inWords filters by the words of an enum. The zero value does not filter.
func inWords[E interface{ String() string }](column string, values []E) predicate.AgenticIssue {
	var words []string
	for _, value := range values {
		if word := issues.Words(value); word != "" {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return nil
	}
	return func(s *entsql.Selector) { s.Where(store.In(s.C(column), words)) }
}

// inReasons filters by reason. The zero value selects issues without a reason.
func inReasons(values []workflowsv1.TriageReason) predicate.AgenticIssue {
	if len(values) == 0 {
		return nil
	}
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = issues.Words(value)
	}
	return store.OneOf(agenticissue.FieldTriageReason, words)
}

func inSeverities(values []workflowsv1.Severity) predicate.AgenticIssue {
	var numbers []int32
	for _, value := range values {
		if value != workflowsv1.Severity_SEVERITY_UNSPECIFIED {
			numbers = append(numbers, int32(value))
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	return store.OneOf(agenticissue.FieldSeverity, numbers)
}

func inTime(column string, r *workflowsv1.TimeRange) predicate.AgenticIssue {
	if r.GetStartAt() == nil && r.GetEndAt() == nil {
		return nil
	}
	return func(s *entsql.Selector) {
		if r.GetStartAt() != nil {
			s.Where(entsql.GTE(s.C(column), store.Micros(r.GetStartAt().AsTime())))
		}
		if r.GetEndAt() != nil {
			s.Where(entsql.LT(s.C(column), store.Micros(r.GetEndAt().AsTime())))
		}
	}
}

// labelled filters issues by a kind of label and a condition on its value.
func labelled(deploymentID int64, kind string, asked bool, condition func(column string) *entsql.Predicate) predicate.AgenticIssue {
	if !asked {
		return nil
	}
	return func(s *entsql.Selector) {
		t := entsql.Dialect(s.Dialect()).Table(agenticissuelabel.Table).As("labels")
		s.Where(entsql.In(s.C(agenticissue.FieldID), entsql.Dialect(s.Dialect()).Select(t.C(agenticissuelabel.FieldIssueID)).From(t).Where(entsql.And(
			entsql.EQ(t.C(agenticissuelabel.FieldDeploymentID), deploymentID),
			entsql.EQ(t.C(agenticissuelabel.FieldKind), kind),
			condition(t.C(agenticissuelabel.FieldValue)),
		))))
	}
}

// detectedBy filters issues by the runs that detected them. The results of a run are kept as long as the run.
func detectedBy(deploymentID int64, runIDs []int64) predicate.AgenticIssue {
	if len(runIDs) == 0 {
		return nil
	}
	return func(s *entsql.Selector) {
		t := entsql.Dialect(s.Dialect()).Table(workflowfinding.Table).As("results")
		s.Where(entsql.In(s.C(agenticissue.FieldID), entsql.Dialect(s.Dialect()).Select(t.C(workflowfinding.FieldIssueID)).From(t).Where(entsql.And(
			entsql.EQ(t.C(workflowfinding.FieldDeploymentID), deploymentID),
			store.InIDs(t.C(workflowfinding.FieldRunID), runIDs),
		))))
	}
}

func contains(column, text string) predicate.AgenticIssue {
	if text == "" {
		return nil
	}
	return func(s *entsql.Selector) { s.Where(containsFold(s.C(column), text)) }
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// containsFold is the condition that a column contains a text, case-insensitively. Databases differ in case folding
// outside of ASCII, so it looks for the text as given, in lower case and in upper case.
func containsFold(column, text string) *entsql.Predicate {
	spellings := []string{text, strings.ToLower(text), strings.ToUpper(text)}
	slices.Sort(spellings)
	return entsql.P(func(b *entsql.Builder) {
		operator := " LIKE "
		if b.Dialect() == dialect.Postgres {
			operator = " ILIKE "
		}
		b.WriteByte('(')
		for i, spelling := range slices.Compact(spellings) {
			if i > 0 {
				b.WriteString(" OR ")
			}
			b.WriteString(column).WriteString(operator).Arg("%" + likeEscaper.Replace(spelling) + "%").WriteString(` ESCAPE '\'`)
		}
		b.WriteByte(')')
	})
}

// fullRefs adds the full refs of short branch names.
func fullRefs(refs []string) []string {
	out := make([]string, len(refs))
	for i, ref := range refs {
		out[i] = gitref.Full(ref)
	}
	return out
}
