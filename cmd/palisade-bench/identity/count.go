package identity

import (
	"cmp"
	"slices"
	"strings"
)

// Finding is a finding in the server's list.
type Finding struct {
	ID      int64
	Rule    string
	Place   Place
	Column  int
	Message string
	Status  string // open, fixed, or a triage state; removed findings are not listed
	Note    string
}

// statusFixed is the status of a finding that is closed but still listed.
const statusFixed = "fixed"

// Decision is a triage decision before the edit. Notes are distinct.
type Decision struct{ Status, Note string }

// Problem is a result in the report before the edit, and its finding on the server.
type Problem struct {
	Finding  int64
	Decision *Decision // nil: untriaged
	// Closed is true if the finding was closed before this scan.
	Closed bool
}

// Counts has the counts of one scan after an edit, or a sum of them.
type Counts struct {
	Findings int // before the edit
	Touched  int // triaged problems that the edit touched and that still exist
	Kept     int // of Touched: still the same finding, with its decision
	// AsNew counts problems with a different finding after the edit: their identity was lost.
	AsNew int
	// WrongMerges counts findings that are matched to a different problem; WrongDecisions counts the triaged ones among
	// them.
	WrongMerges, WrongDecisions int
	// WrongCloses counts problems in the code without an open finding.
	WrongCloses int
	// WrongReopens counts closed or ignored findings that were reopened although their own problem did not come back.
	WrongReopens int
	// MissedCloses counts open findings without a problem.
	MissedCloses int
}

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	c.Findings += o.Findings
	c.Touched += o.Touched
	c.Kept += o.Kept
	c.AsNew += o.AsNew
	c.WrongMerges += o.WrongMerges
	c.WrongDecisions += o.WrongDecisions
	c.WrongCloses += o.WrongCloses
	c.WrongReopens += o.WrongReopens
	c.MissedCloses += o.MissedCloses
}

// Count compares the server's list after a scan with the truth. problems and truth have the order of the report before
// the edit. It also describes each faulty problem.
func Count(problems []Problem, truth []Truth, report *Report, listed []Finding) (Counts, []Fault) {
	var faults []Fault
	c := Counts{Findings: len(problems)}
	findingOf := MatchFindings(report, listed) // finding id per result
	resultOf := map[int64]int{}                // result index plus one, per finding
	for i, id := range findingOf {
		if id != 0 {
			resultOf[id] = i + 1
		}
	}
	unmatched := map[int64]Finding{} // open findings that are new or were not covered
	for _, f := range listed {
		unmatched[f.ID] = f
	}
	for i, problem := range problems {
		now, listed := unmatched[problem.Finding]
		delete(unmatched, problem.Finding)
		open := listed && now.Status != statusFixed
		var one Counts
		one.countProblem(problem, truth[i], now, open, resultOf[problem.Finding], findingOf)
		if what := one.fault(); what != "" {
			faults = append(faults, Fault{i, what, resultOf[problem.Finding] - 1})
		}
		c.Add(one)
	}
	for id, f := range unmatched {
		if f.Status != statusFixed && resultOf[id] == 0 {
			c.MissedCloses++
		}
	}
	return c, faults
}

// Fault is a faulty problem.
type Fault struct {
	Problem int
	What    string
	// Result is the result that its finding is matched to, -1: none.
	Result int
}

// fault returns the name of the fault of the one counted problem; empty: none.
func (c Counts) fault() string {
	var what []string
	for _, one := range []struct {
		n    int
		name string
	}{
		{c.WrongMerges, "wrong merge"}, {c.WrongCloses, "wrong close"}, {c.WrongReopens, "wrong reopen"}, {c.AsNew, "shown as new"},
		{c.MissedCloses, "not closed"}, {c.Touched - c.Kept, "decision lost"},
	} {
		if one.n > 0 {
			what = append(what, one.name)
		}
	}
	return strings.Join(what, ", ")
}

// countProblem counts one problem. matched is the index plus one of the result that its finding is matched to, 0: none.
func (c *Counts) countProblem(problem Problem, truth Truth, now Finding, open bool, matched int, findingOf []int64) {
	decided := problem.Decision != nil
	own := truth.State == Here && truth.is(matched-1) || truth.State == Unseen && matched == 0
	wrong := open && matched != 0 && !own
	kept := open && own && (!decided || now.Status == problem.Decision.Status && now.Note == problem.Decision.Note)
	if wrong {
		c.WrongMerges++
		if decided {
			c.WrongDecisions++
		}
	}
	if decided && truth.Touched && truth.State != Gone {
		c.Touched++
		if kept {
			c.Kept++
		}
	}
	switch {
	case truth.State == Gone:
		if open && !wrong {
			c.MissedCloses++
		}
	case truth.State == Unseen && !open:
		c.WrongCloses++
	case truth.State == Here && findingOf[truth.Result] == 0:
		c.WrongCloses++
	case truth.State == Here && (matched == 0 || !truth.is(matched-1)):
		c.AsNew++
	}
	c.reopened(problem, truth, now, open, own)
}

// is reports whether a result belongs to the problem.
func (t Truth) is(result int) bool { return t.Result == result || slices.Contains(t.Ambiguous, result) }

// reopened counts a finding that was reopened wrongly.
func (c *Counts) reopened(problem Problem, truth Truth, now Finding, open, own bool) {
	cameBack := problem.Closed && open && !(truth.State == Here && own)
	undecided := open && problem.Decision != nil && (now.Status != problem.Decision.Status)
	if cameBack || undecided {
		c.WrongReopens++
	}
}

// matchKey is the key that identifies a finding in a report.
type matchKey struct {
	rule string
	Place
	column  int
	message string
}

// MatchFindings returns the open finding for each result of a report, 0 if there is none: by rule, place and message,
// else by rule and line, and last by a former name of the rule.
func MatchFindings(report *Report, listed []Finding) []int64 {
	written := func(rule string) string { return rule }
	seats := make([]int64, len(report.Results))
	taken := map[int64]bool{}
	for _, name := range []func(string) string{written, report.canonical} {
		for _, whole := range []bool{true, false} {
			at := func(rule string, place Place, column int, message string) matchKey {
				if !whole {
					column, message = 0, ""
				}
				return matchKey{name(rule), place, column, message}
			}
			byMatchKey := map[matchKey][]int64{}
			for _, f := range inOrder(listed) {
				if !taken[f.ID] {
					k := at(f.Rule, f.Place, f.Column, f.Message)
					byMatchKey[k] = append(byMatchKey[k], f.ID)
				}
			}
			for i, r := range report.Results {
				k := at(r.Rule, r.Place, r.Column, r.Message)
				if ids := byMatchKey[k]; seats[i] == 0 && len(ids) > 0 {
					seats[i], taken[ids[0]], byMatchKey[k] = ids[0], true, ids[1:]
				}
			}
		}
	}
	return seats
}

// inOrder returns the open findings sorted by column and age.
func inOrder(listed []Finding) []Finding {
	open := slices.DeleteFunc(slices.Clone(listed), func(f Finding) bool { return f.Status == statusFixed })
	slices.SortFunc(open, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID)) })
	return open
}

// canonical returns the canonical name of a rule with two names.
func (r *Report) canonical(rule string) string {
	if former, renamed := r.Aliases[rule]; renamed {
		return former
	}
	return rule
}
