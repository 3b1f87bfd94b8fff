package columns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/findings/lifecycle"
)

// Facts pack the columns of a finding that have few words, except its place and its rule. Few different Facts exist, so
// a [Table] numbers them, and a filter decides once for each number.
//
// All changes of these columns have events. Columns that change without one are not here.
type Facts uint64

// fact is a part of Facts: 0 is null, the words are numbered from 1, and the highest number is any other word.
type fact struct {
	column string
	bits   int
	words  []string
}

// yes is the word of a column that is true or null.
const yes = "true"

var facts = []fact{
	{"issue_type", 3, issueType.words},
	{"severity", 3, severity.words},
	{"state", 3, []string{lifecycle.Unresolved, lifecycle.Muted, lifecycle.Fixed, lifecycle.Removed}},
	{"triage_state", 3, []string{lifecycle.Untriaged, lifecycle.Ignored, lifecycle.Reopened, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.ProvisionallyIgnored}},
	{"triage_reason", 3, []string{"false_positive", "acceptable_risk", "no_time", "duplicate", lifecycle.NoTriageReason}},
	{"exposure", 3, append([]string{"unknown"}, exposure.words...)},
	{"transitivity", 3, []string{"unknown", "direct", "transitive"}},
	{"validation_state", 4, []string{"no_validator", "confirmed_valid", "confirmed_invalid", "validation_error", "valid", "invalid", "error"}},
	{"autotriage_verdict", 3, append([]string{"no_verdict"}, verdict.words...)},
	{"policy_mode", 3, append([]string{"rule-board-audit"}, policy.words...)},
	{"malicious", 1, []string{yes}},
	{"historical", 1, []string{yes}},
}

// shiftOf has the position of each fact.
var shiftOf = func() map[string]int {
	shifts, next := map[string]int{}, 0
	for _, f := range facts {
		shifts[f.column] = next
		next += f.bits
	}
	return shifts
}()

// other is the number of words that a fact does not know. Columns that are true or null have only one word.
func (f fact) other() Facts { return 1<<f.bits - 1 }

// FactsSQL is the SQL expression that packs the columns of a finding.
func FactsSQL() string {
	parts := make([]string, len(facts))
	for i, f := range facts {
		shift := shiftOf[f.column]
		if f.bits == 1 {
			parts[i] = fmt.Sprintf("CASE WHEN %s IS NULL THEN 0 ELSE %d END", f.column, uint64(1)<<shift)
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "CASE WHEN %[1]s IS NULL THEN 0 ELSE CASE %[1]s", f.column)
		for n, word := range f.words {
			fmt.Fprintf(&b, " WHEN '%s' THEN %d", word, uint64(n+1)<<shift)
		}
		fmt.Fprintf(&b, " ELSE %d END END", f.other()<<shift)
		parts[i] = b.String()
	}
	return strings.Join(parts, " + ")
}

// Word is the word of a column. null says that it has none, and known is false if the facts do not say it.
func (p Facts) Word(column string) (word string, null, known bool) {
	if column == "status" {
		return p.Status(), false, true
	}
	for _, f := range facts {
		if f.column != column {
			continue
		}
		n := int(p>>shiftOf[column]) & (1<<f.bits - 1)
		if n == 0 {
			return "", true, true
		}
		if n > len(f.words) {
			return "", false, false
		}
		return f.words[n-1], false, true
	}
	return "", false, false
}

// Knows reports whether Facts distinguish a word of a column.
func Knows(column, word string) bool {
	if column == "status" {
		_, ok := statuses[word]
		return ok
	}
	return slices.Contains(WordsOf(column), word)
}

// WordsOf are the words of a column that Facts distinguish; none for other columns.
func WordsOf(column string) []string {
	for _, f := range facts {
		if f.column == column {
			return f.words
		}
	}
	return nil
}

// Status combines state and triage state, as the column of the table does.
func (p Facts) Status() string {
	state, _, _ := p.Word("state")
	triage, _, _ := p.Word("triage_state")
	return lifecycle.Status(state, triage)
}

// FactsOf packs words by column. Words that are not there are null.
func FactsOf(words map[string]string) (packed Facts) {
	for _, f := range facts {
		word, given := words[f.column]
		if !given {
			continue
		}
		number := f.other()
		for n, w := range f.words {
			if w == word {
				number = Facts(n + 1)
			}
		}
		packed |= number << shiftOf[f.column]
	}
	return packed
}

// Attr has the part of the facts that reports distinguish.
func (p Facts) Attr() Attr {
	word := func(column string) string {
		w, _, _ := p.Word(column)
		return w
	}
	return Words{
		IssueType: word("issue_type"), Severity: word("severity"), Exposure: word("exposure"), Validation: validity(word("validation_state")),
		Verdict: word("autotriage_verdict"), Policy: word("policy_mode"),
	}.Attr()
}

// validity is the word of reports for the state of a secret. Scanners say confirmed_valid, confirmed_invalid and
// validation_error.
func validity(state string) string {
	return strings.TrimPrefix(strings.TrimPrefix(state, "confirmed_"), "validation_")
}
