package issuefilter

import (
	"cmp"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// Condition is one condition on findings: in SQL, for columns in memory, and with the facts that planners of lists
// need.
type Condition struct {
	// Column is what the condition is about; "" if it is about more than one column.
	Column string
	// Values are the values of the column that it selects ([]string, []int64 or true), and NumValues is their number. It
	// is 0 if the condition cannot drive an index.
	Values    any
	NumValues int
	// None: it selects nothing, because the object that it names does not exist.
	None bool
	// Where is the condition in SQL.
	Where predicate.Finding

	// term is the condition for columns in memory; nil if only SQL can decide it.
	term *term
	// scans: no index finds the findings, so it is checked on the ones that other conditions select.
	scans bool
	// except selects the findings that the condition leaves out, if they are fewer; nil if there is no such condition.
	except predicate.Finding
}

// term is a condition that columns in memory can decide. It is about one column, or joins others.
type term struct {
	column string
	words  []string // one of them
	null   bool     // or null
	not    bool     // the contrary
	ids    []int64  // of projects or rules
	rows   []any    // text that selects projects or rules, after the condition on their deployment
	// from and until limit a time in microseconds; 0 is no limit.
	from, until int64
	any, all    []term
}

// Pseudo-columns of terms about the project of a finding.
const (
	primaryBranch = "primary_branch"
	archived      = "archived"
)

// where is the term in SQL.
func (t term) where(deploymentID int64) predicate.Finding {
	switch {
	case t.any != nil:
		options := make([]predicate.Finding, len(t.any))
		for i, option := range t.any {
			options[i] = option.where(deploymentID)
		}
		return anyOption(options)
	case t.all != nil:
		parts := make([]predicate.Finding, len(t.all))
		for i, part := range t.all {
			parts[i] = part.where(deploymentID)
		}
		return finding.And(parts...)
	case t.column == primaryBranch:
		return OnPrimaryBranch(deploymentID)
	case t.column == archived:
		return ofOthers(finding.FieldProjectID, "projects", !t.not, deploymentID, " AND archived_at IS NOT NULL")
	case t.rows != nil && t.column == finding.FieldRuleID:
		return ofOthers(t.column, "rules", true, deploymentID, t.rows...)
	case t.rows != nil:
		return ofOthers(t.column, "projects", true, deploymentID, t.rows...)
	case t.ids != nil:
		return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(t.column), t.ids)) }
	case t.from != 0 || t.until != 0:
		return between(t.column, t.from, t.until)
	}
	return t.ofWords()
}

func (t term) ofWords() predicate.Finding {
	var options []predicate.Finding
	switch {
	case t.column == finding.FieldMalicious && len(t.words) > 0:
		options = append(options, IsMalicious)
	case len(t.words) == 1:
		options = append(options, entsql.FieldEQ(t.column, t.words[0]))
	case len(t.words) > 1:
		options = append(options, store.OneOf(t.column, t.words))
	}
	if t.null {
		options = append(options, entsql.FieldIsNull(t.column))
	}
	if len(options) == 0 {
		return nothing
	}
	one := anyOption(options)
	if t.not {
		return finding.Not(one)
	}
	return one
}

// between limits a time.
func between(column string, from, until int64) predicate.Finding {
	return func(s *entsql.Selector) {
		if from != 0 {
			s.Where(entsql.GTE(s.C(column), from))
		}
		if until != 0 {
			s.Where(entsql.LTE(s.C(column), until))
		}
	}
}

// ofOthers is the condition that a column is, or is not, the id of some rows of another table.
func ofOthers(column, table string, in bool, deploymentID int64, rest ...any) predicate.Finding {
	how := " IN "
	if !in {
		how = " NOT IN "
	}
	return func(s *entsql.Selector) {
		parts := append([]any{s.C(column), how, "(SELECT id FROM ", table, " WHERE deployment_id = ", arg{deploymentID}}, rest...)
		s.Where(text(append(parts, ")")...))
	}
}

func nothing(s *entsql.Selector) { s.Where(entsql.False()) }

// manyOptions is the number of options above which they are joined in halves. SQLite rejects expressions deeper than
// 1,000, and a plain chain of n options has depth n.
const manyOptions = 100

func anyOption(options []predicate.Finding) predicate.Finding {
	if len(options) == 1 {
		return options[0]
	}
	if len(options) <= manyOptions {
		return finding.Or(options...)
	}
	half := len(options) / 2
	return finding.Or(anyOption(options[:half]), anyOption(options[half:]))
}

// of makes a condition of a term.
func of(deploymentID int64, t term) Condition {
	return Condition{Column: t.column, Where: t.where(deploymentID), term: &t}
}

// OneOf selects findings with one of the values in a column.
func OneOf(column string, values ...string) Condition {
	values = distinct(values)
	t := term{column: column, words: values}
	return Condition{Column: column, NumValues: len(values), Values: values, Where: t.ofWords(), term: &t}
}

// Policies selects findings by their policies. A finding without a policy is monitored.
func Policies(deploymentID int64, slugs []string) Condition {
	if !slices.Contains(slugs, Monitored) {
		return OneOf(finding.FieldPolicyMode, slugs...)
	}
	return of(deploymentID, term{column: finding.FieldPolicyMode, words: distinct(slugs), null: true})
}

// Malicious selects findings about malicious packages, or the others.
func Malicious(deploymentID int64, malicious bool) Condition {
	if malicious {
		c := of(deploymentID, term{column: finding.FieldMalicious, words: []string{"true"}})
		c.NumValues, c.Values = 1, true
		return c
	}
	return of(deploymentID, term{column: finding.FieldMalicious, null: true})
}

// NotHistorical leaves out secrets that are only in the history.
func NotHistorical(deploymentID int64) Condition {
	return of(deploymentID, term{column: finding.FieldHistorical, null: true})
}

// Shown selects the findings that the API shows. Removed findings are never shown, whatever a filter names (contract
// facts 3.11). A finding that was merged into another is removed, so that columns need not know about merges.
func Shown() Condition {
	return Condition{
		Column: finding.FieldState,
		Where:  finding.And(finding.StateNEQ(lifecycle.Removed), finding.MergedIntoIsNil()),
		term:   &term{column: finding.FieldState, words: []string{lifecycle.Removed}, not: true},
	}
}

func distinct[T cmp.Ordered](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
