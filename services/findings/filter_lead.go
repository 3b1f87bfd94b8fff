package findings

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// condition is one of a filter, with what the choice of an index asks about it.
type condition struct {
	where  predicate.Finding
	column string // that it looks at
	values int    // of the column that it chooses; 0: an index does not find them
	named  any    // the values, to tell them from others of the column
	none   bool   // it chooses nothing: what it names is not there
}

// isOneOf chooses findings by a word or more.
func isOneOf(column string, values ...string) condition {
	c := condition{column: column, values: len(values), named: values}
	if len(values) == 1 {
		c.where = entsql.FieldEQ(column, values[0])
	} else {
		c.where = store.OneOf(column, values)
	}
	return c
}

// hasID chooses findings by the ids of what they belong to; where is the condition that does.
func hasID(column string, ids []int64, where predicate.Finding) condition {
	return condition{where: where, column: column, values: len(ids), named: ids, none: len(ids) == 0}
}

// statusAndSeverity stands for both columns, which lead an index together.
const statusAndSeverity = "status_severity"

// leading are the columns that an index of lists begins with, in the order in which they are taken where none is known to
// choose less than another: what most findings do not have, then what tells many kinds of them apart, then few.
var leading = []string{
	finding.FieldMalicious, finding.FieldHistorical, finding.FieldClickToFixState, finding.FieldComponentTag, finding.FieldPackage,
	finding.FieldTriageReason, finding.FieldAutotriageVerdict, finding.FieldPolicyMode, finding.FieldEpssProbability,
	finding.FieldTransitivity, finding.FieldExposure, finding.FieldValidationState, finding.FieldRuleID, finding.FieldProjectID,
	finding.FieldRef, statusAndSeverity, finding.FieldSeverity, finding.FieldStatus,
}

// ofOneType are the leading columns whose index has the issue type in front of the order.
var ofOneType = []string{finding.FieldProjectID, finding.FieldRef, statusAndSeverity, finding.FieldSeverity, finding.FieldStatus}

// inReport are the columns of the index findings_report.
var inReport = []string{
	finding.FieldProjectID, finding.FieldRuleID, finding.FieldRef, finding.FieldSeverity, finding.FieldExposure,
	finding.FieldValidationState, finding.FieldAutotriageVerdict, finding.FieldPolicyMode,
}

// held says whether the index that a column leads, or findings_list for none, holds another one.
func held(lead, column string) bool {
	switch column {
	case lead, finding.FieldStatus, finding.FieldRelevantSince, finding.FieldID:
		return true
	case finding.FieldProjectID:
		return lead != ""
	case finding.FieldSeverity, finding.FieldRef:
		return lead == finding.FieldProjectID
	}
	return false
}

// sizes remembers about how many findings a condition chooses, which says what index to read. They may be outdated: that
// costs time and changes no answer.
type sizes struct {
	known *expirable.LRU[[sha256.Size]byte, int]
}

func newSizes() *sizes {
	return &sizes{known: expirable.NewLRU[[sha256.Size]byte, int](10_000, nil, 10*time.Minute)}
}

// steps are the numbers of findings that are told apart. What is found by several values has no order and is sorted, so it
// leads up to sortable steps only.
var steps = []int{100, 1000, 10_000, 25_000, 50_000}

const sortable = 2

// instead is up to how many steps it leads where all that could be read instead is the list of all findings of a type,
// whose entries do not say whether they are among those.
const instead = 3

// of is how many of the steps a condition reaches. It is counted along the index that the condition leads.
func (s *sizes) of(ctx context.Context, db *ent.Client, f *filter, c condition) (int, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%s/%#v", f.deploymentID, f.issueType, c.column, c.named))
	if size, ok := s.known.Get(key); ok {
		return size, nil
	}
	where := []predicate.Finding{finding.DeploymentID(f.deploymentID), c.where}
	if slices.Contains(ofOneType, c.column) {
		where = append(where, finding.IssueType(f.issueType))
	}
	size := 0
	for ; size < len(steps); size++ {
		last, err := db.Finding.Query().Where(where...).Offset(steps[size] - 1).Limit(1).IDs(ctx)
		if err != nil {
			return 0, err
		}
		if len(last) == 0 {
			break
		}
	}
	s.known.Add(key, size)
	return size, nil
}

// arrange gives the conditions in a form that makes SQLite read the index of the one that chooses the fewest findings, and
// look at all others without reading rows. Its planner knows averages at best, which say nothing of the value that is
// asked for, and nothing at all before the first statistics. PostgreSQL knows frequent values, and combines indexes; all it
// is helped with are several values of a column.
func (s *sizes) arrange(ctx context.Context, db *ent.Client, dialectName string, f *filter, list []condition) ([]predicate.Finding, error) {
	if dialectName != dialect.SQLite {
		return f.merged(list), nil
	}
	if _, limited := tenant.Teams(ctx); limited || len(f.ids) > 0 {
		return f.plain(list), nil
	}
	all := paired(list)
	candidates := leads(all)
	if len(candidates) == 1 && len(list) == 2 { // with the status; nothing is counted for the list of a few projects
		if c := all[candidates[0]]; c.column == finding.FieldProjectID && c.values > 1 {
			return f.plain(list), nil
		}
	}
	chosen, err := s.lead(ctx, db, f, all, candidates)
	if err != nil {
		return nil, err
	}
	lead := ""
	if chosen >= 0 {
		lead = all[chosen].column
	}
	var where []predicate.Finding
	if tenant.IsSystem(ctx) { // else the policy of the table says it; what is said twice is compared again in every row
		where = append(where, finding.DeploymentID(f.deploymentID))
	}
	if lead == "" || slices.Contains(ofOneType, lead) {
		where = append(where, finding.IssueType(f.issueType))
	} else {
		where = append(where, store.Unindexed(finding.IssueType(f.issueType)))
	}
	var reported, elsewhere []predicate.Finding
	for i, c := range list {
		switch {
		case i == chosen, lead == statusAndSeverity && (c.column == finding.FieldStatus || c.column == finding.FieldSeverity):
			where = append(where, store.Wrapped("likelihood(", ", 0.0001)", c.where))
		case c.column == finding.FieldRelevantSince:
			where = append(where, c.where)
		case held(lead, c.column):
			where = append(where, store.Unindexed(c.where))
		case slices.Contains(inReport, c.column):
			reported = append(reported, c.where)
		case c.values > 0:
			elsewhere = append(elsewhere, inIndex(f.deploymentID, "findings_list_"+c.column, true, c.where))
		default:
			elsewhere = append(elsewhere, lastly(c.where))
		}
	}
	if len(reported) > 0 {
		where = append(where, inIndex(f.deploymentID, "findings_report", false, reported...))
	}
	return append(where, elsewhere...), nil
}

// paired puts, where there are conditions on one status and on one severity, that on both in their place, behind all others.
func paired(list []condition) []condition {
	list = slices.Clone(list)
	var pair []*condition
	for i, c := range list {
		if c.values == 1 && (c.column == finding.FieldStatus || c.column == finding.FieldSeverity) {
			pair = append(pair, &list[i])
		}
	}
	if len(pair) < 2 {
		return list
	}
	pair[0].values, pair[1].values = 0, 0
	return append(list, condition{
		where: finding.And(pair[0].where, pair[1].where), column: statusAndSeverity, values: 1, named: []any{pair[0].named, pair[1].named},
	})
}

// leads are the places of the conditions whose index may be read, in the order of leading. A choice of several severities
// or statuses leaves too much to sort.
func leads(list []condition) (candidates []int) {
	for i, c := range list {
		broad := c.column == finding.FieldSeverity || c.column == finding.FieldStatus
		if slices.Contains(leading, c.column) && (c.values == 1 || c.values > 1 && !broad) {
			candidates = append(candidates, i)
		}
	}
	slices.SortFunc(candidates, func(a, b int) int {
		return slices.Index(leading, list[a].column) - slices.Index(leading, list[b].column)
	})
	return candidates
}

// lead is the candidate that chooses the fewest findings; -1 for the list of all findings of a type.
func (s *sizes) lead(ctx context.Context, db *ent.Client, f *filter, list []condition, candidates []int) (int, error) {
	if len(candidates) == 1 && list[candidates[0]].values == 1 {
		return candidates[0], nil
	}
	best, least := -1, len(steps)+1
	sorted, fewest := -1, instead+1
	for _, i := range candidates {
		size, err := s.of(ctx, db, f, list[i])
		if err != nil {
			return 0, err
		}
		if size < least && (list[i].values == 1 || size <= sortable) {
			best, least = i, size
		}
		if size < fewest {
			sorted, fewest = i, size
		}
	}
	if best < 0 {
		best = sorted
	}
	return best, nil
}

// lastly makes SQLite look at the condition when all others, those of other indexes too, are met: it needs the row.
func lastly(where predicate.Finding) predicate.Finding {
	return store.Wrapped("(SELECT ", ")", where)
}

// inIndex looks at conditions in another index than the one that is read, which is far smaller than the rows and, where it
// is in the order of lists, read in the same order. The plus makes it a condition like others, met in the order of the filter:
// SQLite would join it, after conditions that need the row.
func inIndex(deploymentID int64, index string, ordered bool, where ...predicate.Finding) predicate.Finding {
	return func(s *entsql.Selector) {
		entry := entsql.Table(finding.Table).As("entry")
		inner := store.Parted(s, entry, where...)
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString("+EXISTS (SELECT 1 FROM findings AS entry INDEXED BY " + index + " WHERE entry.deployment_id = ").Arg(deploymentID)
			b.WriteString(" AND entry.id = " + s.C(finding.FieldID))
			if ordered {
				b.WriteString(" AND entry.relevant_since = " + s.C(finding.FieldRelevantSince))
			}
			b.WriteString(" AND (").Join(inner).WriteString("))")
		}))
	}
}
