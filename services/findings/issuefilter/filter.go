package issuefilter

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// Where returns the conditions of the filter, in the deployment of the context. A nil filter selects all findings of
// projects that are not archived. Relative times count from now. An invalid id is an INVALID_ARGUMENT that names the
// field.
func Where(ctx context.Context, f *findingsv1.IssuesFilter, now time.Time) ([]predicate.Finding, error) {
	deploymentID, ok := tenant.FromContext(ctx)
	if !ok {
		return nil, errors.New("issue filter without a deployment")
	}
	c := &conditions{deploymentID: deploymentID, now: now}
	c.add(finding.DeploymentID(deploymentID))
	c.identifiers(f)
	c.times(f)
	c.projects(f)
	c.refs(f)
	c.states(f)
	c.rules(f)
	c.policies(f)
	c.supplyChain(f)
	c.secrets(f)
	c.assistance(f)
	c.memories(f)
	c.unknown(f)
	return c.list, c.err
}

// conditions collects conditions.
type conditions struct {
	deploymentID int64
	now          time.Time
	list         []predicate.Finding
	err          error // the first
}

func (c *conditions) add(p predicate.Finding) { c.list = append(c.list, p) }

// raw adds a condition of SQL text and parameters, which are wrapped in arg. The selector writes the columns of the
// finding.
func (c *conditions) raw(build func(s *entsql.Selector) []any) {
	c.add(func(s *entsql.Selector) { s.Where(text(build(s)...)) })
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

func nothing(s *entsql.Selector) { s.Where(entsql.False()) }

// in adds the condition that a column has one of some values. An empty list adds none.
func (c *conditions) in(column string, values []string) {
	switch values = given(values); len(values) {
	case 0:
	case 1:
		c.add(entsql.FieldEQ(column, values[0]))
	default:
		c.add(store.OneOf(column, values))
	}
}

// ids adds the condition that a column is one of some ids. An empty list adds none.
func (c *conditions) ids(column string, ids []int64) {
	if len(ids) > 0 {
		c.add(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(column), ids)) })
	}
}

// either adds the condition that any of the options holds. An empty list adds none.
func (c *conditions) either(options []predicate.Finding) {
	switch len(options) {
	case 0:
	case 1:
		c.add(options[0])
	default:
		c.add(anyOption(options))
	}
}

// manyOptions is the number of options above which they are joined in halves. SQLite rejects expressions deeper than
// 1,000, and a plain chain of n options has depth n.
const manyOptions = 100

func anyOption(options []predicate.Finding) predicate.Finding {
	if len(options) <= manyOptions {
		return finding.Or(options...)
	}
	half := len(options) / 2
	return finding.Or(anyOption(options[:half]), anyOption(options[half:]))
}

// id parses the id of a field; 0 if it is not set.
func (c *conditions) id(field, value string) int64 {
	if value == "" {
		return 0
	}
	id, err := strconv.ParseInt(value, 10, 64)
	if err != nil && c.err == nil {
		c.err = apierr.InvalidArgument("filter."+field, "filter.%s: got %q, want the id of a memory", field, value)
	}
	return id
}

func (c *conditions) identifiers(f *findingsv1.IssuesFilter) {
	c.ids(finding.FieldID, f.GetIds())
	if parents := f.GetIssueParentIds(); len(parents) > 0 {
		c.raw(func(s *entsql.Selector) []any {
			return []any{
				s.C(finding.FieldID), " IN (SELECT twin.id FROM findings parent JOIN findings twin ON twin.deployment_id = parent.deployment_id",
				" AND twin.project_id = parent.project_id AND twin.fingerprint = parent.fingerprint WHERE parent.deployment_id = ",
				arg{c.deploymentID}, " AND ", store.InIDs("parent.id", parents), ")",
			}
		})
	}
	if paths := f.GetFilePaths(); len(paths) > 0 && paths[0] != "" {
		c.add(finding.FilePathContainsFold(paths[0]))
	}
}

// times adds the conditions on the time that the filter selects.
func (c *conditions) times(f *findingsv1.IssuesFilter) {
	column := finding.FieldRelevantSince
	switch f.GetTimeFilter() {
	case findingsv1.TimeFilter_TIME_FILTER_TRIAGED_AT:
		column = finding.FieldTriagedAt
	case findingsv1.TimeFilter_TIME_FILTER_FIXED_AT:
		column = finding.FieldStateUpdatedAt
	}
	limited := false
	limit := func(at time.Time, compare func(string, int64) predicate.Finding) {
		if at.Year() > 1 {
			c.add(compare(column, store.Micros(at)))
			limited = true
		}
	}
	notBefore := func(column string, at int64) predicate.Finding { return entsql.FieldGTE(column, at) }
	if f.GetSince() != nil {
		limit(f.GetSince().AsTime(), notBefore)
	}
	if f.GetUntil() != nil {
		limit(f.GetUntil().AsTime(), func(column string, at int64) predicate.Finding { return entsql.FieldLTE(column, at) })
	}
	limit(relative(c.now, f.GetRelativeSince()), notBefore)
	if limited && column == finding.FieldStateUpdatedAt {
		c.add(finding.State("fixed"))
	}
}

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
func (c *conditions) unknown(f *findingsv1.IssuesFilter) {
	if len(given(f.GetRulesets())) > 0 || len(set(f.GetSource())) > 0 || f.GetBacklogType() != 0 ||
		len(set(f.GetUpgradeGuidance())) > 0 || len(set(f.GetUpgradeGuidanceFilters())) > 0 ||
		!admits(set(f.GetRepositoryDeploymentStatuses()), findingsv1.DeploymentStatus_DEPLOYMENT_STATUS_UNKNOWN) ||
		!admits(set(f.GetRepositoryPublicExposures()), findingsv1.PublicExposure_PUBLIC_EXPOSURE_UNKNOWN) {
		c.add(nothing)
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
