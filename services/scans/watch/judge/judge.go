// Package judge decides how fresh the results of an analysis are, from its history and the time. It reads no clock and
// no database.
package judge

import (
	"slices"
	"time"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// State is the state of an analysis. The database stores the numbers: larger is worse.
type State int32

// The states.
const (
	// Unwatched is a branch that does not count: neither the primary branch nor a long-lived one, or one that nobody
	// scans any more.
	Unwatched State = iota
	OK
	// Shrunk: results, files or rules dropped sharply.
	Shrunk
	// Late: no successful scan for longer than usual.
	Late
	// Failing: the last scans failed.
	Failing
	// Silent: no successful scan for so long that scanning is off.
	Silent
)

var words = []string{"", "ok", "shrunk", "late", "failing", "silent"}

// String is the state in the words of the API.
func (s State) String() string { return words[s] }

// Parse reads a state in the words of the API.
func Parse(word string) State { return State(max(0, slices.Index(words, word))) }

const (
	day = 24 * time.Hour
	// maxDays is how many days with scans are kept.
	maxDays = 30
	// minDays is how many days with scans tell a usual interval. With fewer, a week is assumed.
	minDays = 4
	// weekend is the number of days between working days. The gaps of young days in a history do not tell it yet.
	weekend, young = 3, 28
	// failures is how many scans in a row have to fail.
	failures = 2
	// lifetime is the time between the first and the last scan that makes a branch long-lived.
	lifetime = 30 * day
)

// Ref is what the project says about the branch.
type Ref struct {
	// Primary is true for the primary branch of the project.
	Primary bool
	// Forget is the age of the last scan from which another branch is forgotten; 0 means never.
	Forget time.Duration
}

// Verdict is the state of an analysis at a time.
type Verdict struct {
	State State
	// Since is when time alone brought the state; zero for states that a scan brings.
	Since time.Time
	// Due is when the verdict changes without a scan; zero: never.
	Due time.Time
}

// Judge decides about an analysis.
func Judge(h *storev1.Freshness, ref Ref, now time.Time) Verdict {
	var forget time.Time
	if !ref.Primary && ref.Forget > 0 {
		if forget = timeOf(h.GetLastAt()).Add(ref.Forget); !now.Before(forget) {
			return Verdict{State: Unwatched}
		}
	}
	if !ref.Primary && h.GetLastAt()-h.GetFirstAt() < lifetime.Microseconds() {
		return Verdict{State: Unwatched, Due: forget}
	}
	usual, last := UsualOf(h), timeOf(reference(h))
	late, silent := last.Add(usual.Late), last.Add(usual.Silent)
	v := Verdict{}
	switch {
	case !now.Before(silent):
		v.State, v.Since = Silent, silent
	case h.GetFailures() >= failures:
		v.State, v.Due = Failing, silent
	case !now.Before(late):
		v.State, v.Since, v.Due = Late, late, silent
	case len(Drops(h)) > 0:
		v.State, v.Due = Shrunk, late
	default:
		v.State, v.Due = OK, late
	}
	if !forget.IsZero() && (v.Due.IsZero() || forget.Before(v.Due)) {
		v.Due = forget
	}
	return v
}

// LateAt is when the analysis becomes late without a successful scan.
func LateAt(h *storev1.Freshness) time.Time { return timeOf(reference(h)).Add(UsualOf(h).Late) }

// reference is when the last successful scan began, or else the first scan.
func reference(h *storev1.Freshness) int64 {
	if last := Last(h); last != nil {
		return last.GetAt()
	}
	return h.GetFirstAt()
}

// ToolVersion is the version of the tool in the last successful scan, or in the newest one if none was successful;
// empty when unknown.
func ToolVersion(h *storev1.Freshness) string {
	if last := Last(h); last != nil {
		return last.GetToolVersion()
	}
	return h.GetLastToolVersion()
}

// Last is the last successful scan; nil if there is none.
func Last(h *storev1.Freshness) *storev1.FreshnessDay {
	if n := len(h.GetDays()); n > 0 {
		return h.GetDays()[n-1]
	}
	return nil
}

// Usual is how often an analysis scans.
type Usual struct {
	// Days is the median number of days between days with a scan; 0 if there are too few.
	Days int
	// Late and Silent are the ages of the last successful scan from which the analysis is late and silent.
	Late, Silent time.Duration
}

// UsualOf returns how often an analysis scans. Whole days count, so that many scans of one working day do not make the
// weekend late. In the first weeks a weekend is expected, unless there were scans on seven days in a row. Late is twice
// the median gap, and one and a half times a long gap: the ninth of ten. So the weekend is no outage, and one outage
// does not become usual. Silent is three times as long, but 14 days at least, and 30 days after late at most.
func UsualOf(h *storev1.Freshness) Usual {
	median, long := 0, 7
	if n := len(h.GetDays()); n >= minDays {
		gaps := make([]int, n-1)
		for i := range gaps {
			gaps[i] = int(date(h.GetDays()[i+1].GetAt()) - date(h.GetDays()[i].GetAt()))
		}
		slices.Sort(gaps)
		median, long = gaps[(n-2)/2], gaps[(n-2)*9/10]
	}
	if mayRest(h) {
		long = max(long, weekend)
	}
	u := Usual{Days: median}
	if u.Late = max(2*time.Duration(median)*day, time.Duration(long)*day*3/2); median == 0 {
		u.Late = 14 * day
	}
	u.Silent = max(14*day, min(3*u.Late, u.Late+30*day))
	return u
}

// mayRest reports whether the analysis may leave out weekends and its gaps do not tell yet: its days span few weeks,
// and there are no seven in a row. Five working days have up to six dates in UTC.
func mayRest(h *storev1.Freshness) bool {
	days := h.GetDays()
	if len(days) == 0 || date(Last(h).GetAt())-date(days[0].GetAt()) >= young {
		return false
	}
	for i := range max(0, len(days)-6) {
		if date(days[i+6].GetAt())-date(days[i].GetAt()) == 6 {
			return false
		}
	}
	return true
}

// date numbers the days (UTC).
func date(micros int64) int64 { return micros / day.Microseconds() }

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
