package issuefilter

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// Where returns the conditions of the filter in SQL, in the deployment of the context. A nil filter selects all
// findings that the API shows, of projects that are not archived: see [Shown]. Relative times count from now. An
// invalid id is an INVALID_ARGUMENT that names the field.
func Where(ctx context.Context, f *findingsv1.IssuesFilter, now time.Time) ([]predicate.Finding, error) {
	c, err := Compile(ctx, f, now)
	if err != nil {
		return nil, err
	}
	return c.Where(), nil
}

// WhereOfAll is [Where] with findings that the API does not show any more: for their history.
func WhereOfAll(ctx context.Context, f *findingsv1.IssuesFilter, now time.Time) ([]predicate.Finding, error) {
	return whereOfAll(ctx, f, now, false)
}

// WhereOfBackup is [WhereOfAll] with the findings of archived projects, too. A filter that names archived projects
// still selects only these.
func WhereOfBackup(ctx context.Context, f *findingsv1.IssuesFilter, now time.Time) ([]predicate.Finding, error) {
	return whereOfAll(ctx, f, now, true)
}

func whereOfAll(ctx context.Context, f *findingsv1.IssuesFilter, now time.Time, archivedToo bool) ([]predicate.Finding, error) {
	c, err := compile(ctx, f, now, archivedToo)
	if err != nil {
		return nil, err
	}
	return c.Where(), nil
}

// Compile converts a filter to conditions; see [Where].
func Compile(ctx context.Context, f *findingsv1.IssuesFilter, now time.Time) (*Conditions, error) {
	c, err := compile(ctx, f, now, false)
	if err != nil {
		return nil, err
	}
	c.List = append(c.List, Shown())
	return c, nil
}

func compile(ctx context.Context, f *findingsv1.IssuesFilter, now time.Time, archivedToo bool) (*Conditions, error) {
	deploymentID, ok := tenant.FromContext(ctx)
	if !ok {
		return nil, errors.New("issue filter without a deployment")
	}
	c := &Conditions{DeploymentID: deploymentID, now: now}
	if seen, limited := tenant.Teams(ctx); limited {
		c.seenTeams = append([]int64{}, seen...)
	}
	c.identifiers(f)
	c.times(f)
	c.projects(f)
	if !archivedToo || f.GetIncludeArchived() {
		c.add(term{column: archived, not: !f.GetIncludeArchived()})
	}
	c.refs(f)
	c.states(f)
	c.rules(f)
	c.policies(f)
	c.supplyChain(f)
	c.secrets(f)
	c.assistance(f)
	c.memories(f)
	c.unknown(f)
	return c, c.err
}

// Conditions are the conditions of a filter.
type Conditions struct {
	DeploymentID int64
	List         []Condition

	now       time.Time
	err       error   // the first
	seenTeams []int64 // nil: all
}

// Where returns the conditions in SQL.
func (c *Conditions) Where() []predicate.Finding {
	where := []predicate.Finding{finding.DeploymentID(c.DeploymentID)}
	for _, condition := range c.List {
		where = append(where, condition.Where)
	}
	return where
}

// OfTypes adds the condition that a finding has one of the types. No type means no condition.
func (c *Conditions) OfTypes(types ...findingsv1.IssueType) {
	c.in(finding.FieldIssueType, words(types, "ISSUE_TYPE_"))
}

// add adds a term.
func (c *Conditions) add(t term) { c.List = append(c.List, of(c.DeploymentID, t)) }

// sql adds a condition that only SQL can decide.
func (c *Conditions) sql(where predicate.Finding) { c.List = append(c.List, Condition{Where: where}) }

// raw adds a condition of SQL text and parameters, which are wrapped in arg. The selector writes the columns of the
// finding.
func (c *Conditions) raw(build func(s *entsql.Selector) []any) {
	c.sql(func(s *entsql.Selector) { s.Where(text(build(s)...)) })
}

// arg is a parameter in a condition of SQL text.
type arg struct{ value any }

// anyOf is a list after IN in a condition of SQL text.
type anyOf []string

// text joins strings, parameters and predicates into one condition.
func text(parts ...any) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		for _, part := range parts {
			switch part := part.(type) {
			case string:
				b.WriteString(part)
			case arg:
				b.Arg(part.value)
			case anyOf:
				b.Join(store.List(part))
			case *entsql.Predicate:
				b.Join(part)
			}
		}
	})
}

// none adds a condition that no finding satisfies.
func (c *Conditions) none() {
	c.List = append(c.List, Condition{None: true, Where: nothing, term: &term{column: finding.FieldIssueType}})
}

// in adds the condition that a column has one of some values. An empty list adds none.
func (c *Conditions) in(column string, values []string) {
	if values = given(values); len(values) > 0 {
		c.List = append(c.List, OneOf(column, values...))
	}
}

// ids adds the condition that a column is one of some ids. An empty list adds none.
func (c *Conditions) ids(column string, ids []int64) {
	if len(ids) > 0 {
		condition := of(c.DeploymentID, term{column: column, ids: distinct(ids)})
		condition.NumValues, condition.Values = len(ids), ids
		c.List = append(c.List, condition)
	}
}

// either adds the condition that any of the options holds. An empty list adds none.
func (c *Conditions) either(options ...term) {
	switch len(options) {
	case 0:
	case 1:
		c.add(options[0])
	default:
		c.add(term{column: common(options), any: options})
	}
}

// common returns the column that all terms are about; "" if they are about different ones.
func common(terms []term) string {
	for _, t := range terms {
		if t.column != terms[0].column {
			return ""
		}
	}
	return terms[0].column
}

// id parses the id of a field; 0 if it is not set.
func (c *Conditions) id(field, value string) int64 {
	if value == "" {
		return 0
	}
	id, err := strconv.ParseInt(value, 10, 64)
	if err != nil && c.err == nil {
		c.err = apierr.InvalidArgument("filter."+field, "filter.%s: got %q, want the id of a memory", field, value)
	}
	return id
}

func (c *Conditions) identifiers(f *findingsv1.IssuesFilter) {
	c.ids(finding.FieldID, f.GetIds())
	if parents := f.GetIssueParentIds(); len(parents) > 0 {
		c.raw(func(s *entsql.Selector) []any {
			return []any{
				s.C(finding.FieldID), " IN (SELECT twin.id FROM findings parent JOIN findings twin ON twin.deployment_id = parent.deployment_id",
				" AND twin.project_id = parent.project_id AND twin.fingerprint = parent.fingerprint WHERE parent.deployment_id = ",
				arg{c.DeploymentID}, " AND ", store.InIDs("parent.id", parents), ")",
			}
		})
	}
	if paths := given(f.GetFilePaths()); len(paths) > 0 {
		c.List = append(c.List, Condition{Column: finding.FieldFilePath, scans: true, Where: finding.FilePathContainsFold(paths[0])})
	}
}

// times adds the conditions on the time that the filter selects.
func (c *Conditions) times(f *findingsv1.IssuesFilter) {
	t := term{column: finding.FieldRelevantSince}
	switch f.GetTimeFilter() {
	case findingsv1.TimeFilter_TIME_FILTER_TRIAGED_AT:
		t.column = finding.FieldTriagedAt
	case findingsv1.TimeFilter_TIME_FILTER_FIXED_AT:
		t.column = finding.FieldStateUpdatedAt
	}
	for _, at := range []time.Time{sent(f.GetSince()), relative(c.now, f.GetRelativeSince())} {
		if at.Year() > 1 {
			t.from = max(t.from, atLeastOne(at))
		}
	}
	if until := sent(f.GetUntil()); until.Year() > 1 {
		t.until = atLeastOne(until)
	}
	if t.from == 0 && t.until == 0 {
		return
	}
	one := of(c.DeploymentID, t)
	one.scans = t.column != finding.FieldRelevantSince
	c.List = append(c.List, one)
	if t.column == finding.FieldStateUpdatedAt {
		c.in(finding.FieldState, []string{lifecycle.Fixed})
	}
}

// sent is a time of the filter; the zero time if there is none.
func sent(at *timestamppb.Timestamp) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.AsTime()
}

// atLeastOne is a time in microseconds. 0 means no limit, and no finding is from 1970 or before.
func atLeastOne(at time.Time) int64 { return max(1, store.Micros(at)) }

// relative is the time that long before now; the zero time if there is no limit.
func relative(now time.Time, since findingsv1.RelativeSince) time.Time {
	switch since {
	case findingsv1.RelativeSince_RELATIVE_SINCE_ONE_MINUTE:
		return now.Add(-time.Minute)
	case findingsv1.RelativeSince_RELATIVE_SINCE_ONE_DAY:
		return now.Add(-24 * time.Hour)
	case findingsv1.RelativeSince_RELATIVE_SINCE_ONE_WEEK:
		return now.Add(-7 * 24 * time.Hour)
	case findingsv1.RelativeSince_RELATIVE_SINCE_ONE_MONTH:
		return now.AddDate(0, -1, 0)
	case findingsv1.RelativeSince_RELATIVE_SINCE_THREE_MONTHS:
		return now.AddDate(0, -3, 0)
	case findingsv1.RelativeSince_RELATIVE_SINCE_SIX_MONTHS:
		return now.AddDate(0, -6, 0)
	case findingsv1.RelativeSince_RELATIVE_SINCE_ONE_YEAR:
		return now.AddDate(-1, 0, 0)
	}
	return time.Time{}
}

// unknown adds the conditions of fields for facts that no table has. They select all findings if the filter allows
// "unknown", or none.
func (c *Conditions) unknown(f *findingsv1.IssuesFilter) {
	if len(given(f.GetRulesets())) > 0 || f.GetBacklogType() != 0 ||
		len(set(f.GetUpgradeGuidance())) > 0 || len(set(f.GetUpgradeGuidanceFilters())) > 0 ||
		!admits(set(f.GetRepositoryDeploymentStatuses()), findingsv1.DeploymentStatus_DEPLOYMENT_STATUS_UNKNOWN) ||
		!admits(set(f.GetRepositoryPublicExposures()), findingsv1.PublicExposure_PUBLIC_EXPOSURE_UNKNOWN) {
		c.none()
	}
}

// given removes empty values, which clients send that fill whole structs.
func given(values []string) []string {
	kept := make([]string, 0, len(values))
	for _, v := range values {
		if strings.TrimSpace(v) != "" {
			kept = append(kept, v)
		}
	}
	return kept
}
