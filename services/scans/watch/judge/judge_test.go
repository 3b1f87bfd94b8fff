package judge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/scans/watch/judge"
)

const day = 24 * time.Hour

var (
	begin   = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) // a Monday
	primary = judge.Ref{Primary: true, Forget: 90 * day}
	release = judge.Ref{Forget: 90 * day}
)

// history has a successful scan at each day after the beginning.
func history(days ...int) *storev1.Freshness {
	h := &storev1.Freshness{}
	for i, d := range days {
		judge.Observe(h, scan(int64(i+1), begin.Add(time.Duration(d)*day)))
	}
	return h
}

func scan(id int64, at time.Time) judge.Scan {
	return judge.Scan{ID: id, At: at.UnixMicro(), Status: "SCAN_STATUS_COMPLETED", Results: 100, Files: 100, Rules: 100, ToolVersion: "1.2.3"}
}

// upTo is each step-th day up to a day.
func upTo(last, step int) (list []int) {
	for d := 0; d <= last; d += step {
		list = append(list, d)
	}
	return list
}

func TestTimeMakesAnalysesLateAndSilent(t *testing.T) {
	t.Parallel()
	workdays := slices.DeleteFunc(upTo(46, 1), func(d int) bool { return d%7 > 4 })
	for name, c := range map[string]struct {
		days         []int
		late, silent time.Duration // after the last scan
	}{
		"every day":         {upTo(29, 1), 2 * day, 14 * day},
		"working days":      {workdays, 4*day + 12*time.Hour, 14 * day},
		"every week":        {upTo(70, 7), 14 * day, 42 * day},
		"every month":       {upTo(300, 30), 60 * day, 90 * day},
		"a new daily one":   {upTo(6, 1), 2 * day, 14 * day},
		"two scans only":    {[]int{0, 1}, 14 * day, 42 * day},
		"one scan only":     {[]int{0}, 14 * day, 42 * day},
		"one outage before": {append(upTo(20, 1), 110, 111, 112), 2 * day, 14 * day},
	} {
		h := history(c.days...)
		last := time.UnixMicro(judge.Last(h).GetAt())
		for _, at := range []struct {
			after time.Duration
			want  judge.State
		}{
			{0, judge.OK}, {c.late - 1000, judge.OK}, {c.late, judge.Late}, {c.silent - 1000, judge.Late}, {c.silent, judge.Silent}, {400 * day, judge.Silent},
		} {
			if got := judge.Judge(h, primary, last.Add(at.after)); got.State != at.want {
				t.Errorf("%s: %v after the last scan: %v, want %v", name, at.after, got, at.want)
			}
		}
	}
}

// A pipeline that scans on working days is never late on a weekend, also in its first weeks and in any time zone. One
// that scans every day for a week is late after two days.
func TestWeekendsAreNotLate(t *testing.T) {
	t.Parallel()
	for start := range 7 { // the weekday of the first scan
		for _, hours := range []int{0, 10, 16} { // 16 hours after 10: the scans of an evening are on the next date in UTC
			h := &storev1.Freshness{}
			var last time.Time
			for d := start; d < 70; d++ {
				at := begin.Add(time.Duration(d) * day)
				for hour := range 24 {
					if now := at.Add(time.Duration(hour) * time.Hour); !last.IsZero() && judge.Judge(h, primary, now).State != judge.OK {
						t.Fatalf("starting on weekday %d: %v at %v, after the scan at %v", start, judge.Judge(h, primary, now), now, last)
					}
				}
				if d%7 > 4 {
					continue
				}
				if last = at.Add(23 * time.Hour); d%2 == 0 || hours == 0 {
					last = at.Add(time.Duration(hours) * time.Hour)
				}
				judge.Observe(h, scan(int64(d), last))
			}
		}
	}
	for days, want := range map[int]time.Duration{6: 4*day + 12*time.Hour, 7: 2 * day} {
		h := history(upTo(days-1, 1)...)
		if got := judge.UsualOf(h).Late; got != want {
			t.Errorf("after %d days in a row: late after %v, want %v", days, got, want)
		}
	}
}

func TestOtherBranches(t *testing.T) {
	t.Parallel()
	feature, long := history(0, 1, 2, 29), history(0, 10, 20, 30)
	for _, c := range []struct {
		name  string
		h     *storev1.Freshness
		after time.Duration
		want  judge.Verdict
	}{
		{"a feature branch", feature, 80 * day, judge.Verdict{State: judge.Unwatched, Due: begin.Add(119 * day)}},
		{"an old feature branch", feature, 90 * day, judge.Verdict{}},
		{"a long-lived branch", long, 0, judge.Verdict{State: judge.OK, Due: begin.Add(50 * day)}},
		{"a late long-lived branch", long, 20 * day, judge.Verdict{State: judge.Late, Since: begin.Add(50 * day), Due: begin.Add(80 * day)}},
		{"a silent long-lived branch", long, 51 * day, judge.Verdict{State: judge.Silent, Since: begin.Add(80 * day), Due: begin.Add(120 * day)}},
		{"a long-lived branch without scans", long, 90 * day, judge.Verdict{}},
	} {
		if got := judge.Judge(c.h, release, time.UnixMicro(c.h.GetLastAt()).Add(c.after)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := judge.Judge(long, judge.Ref{}, begin.Add(1000*day)); got.State != judge.Silent {
		t.Errorf("never forgotten: %v", got)
	}
}

func TestShrunk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*judge.Scan)
		want   string // the reason begins with it
	}{
		"the same":             {func(*judge.Scan) {}, ""},
		"half of the results":  {func(s *judge.Scan) { s.Results = 50 }, ""},
		"few results":          {func(s *judge.Scan) { s.Results = 39 }, "Dropped: results from 100 to 39."},
		"no results":           {func(s *judge.Scan) { s.Results = 0 }, "Dropped: results from 100 to 0."},
		"half of the files":    {func(s *judge.Scan) { s.Files = 50 }, ""},
		"few files and rules":  {func(s *judge.Scan) { s.Files, s.Rules = 49, 3 }, "Dropped: files from 100 to 49, rules from 100 to 3."},
		"a scan without sizes": {func(s *judge.Scan) { s.Results, s.Files, s.Rules = -1, -1, -1 }, ""},
	} {
		h := history(upTo(9, 1)...)
		s := scan(99, begin.Add(10*day))
		c.change(&s)
		judge.Observe(h, s)
		now := begin.Add(10 * day)
		got := judge.Judge(h, primary, now).State
		reason := judge.Reason(h, got, now)
		if shrunk := got == judge.Shrunk; shrunk != (c.want != "") || !strings.HasPrefix(reason, c.want) {
			t.Errorf("%s: %v %q, want %q", name, got, reason, c.want)
		}
	}
	h := history(0, 1, 2)
	for i := range 12 {
		s := scan(int64(10+i), begin.Add(time.Duration(3+i)*day))
		s.Results = 5
		judge.Observe(h, s)
		got := judge.Judge(h, primary, begin.Add(time.Duration(3+i)*day)).State
		if i == 0 && got != judge.Shrunk || i == 11 && got != judge.OK {
			t.Errorf("after %d small scans: %v", i+1, got)
		}
	}
}

func TestFailing(t *testing.T) {
	t.Parallel()
	h := history(upTo(9, 1)...)
	fail := func(id int64, hours int) time.Time {
		s := scan(id, begin.Add(9*day).Add(time.Duration(hours)*time.Hour))
		s.Status, s.Failure = "SCAN_STATUS_ERROR", "the scanner ended with exit code 2"
		judge.Observe(h, s)
		return time.UnixMicro(s.At)
	}
	if got := judge.Judge(h, primary, fail(20, 5)).State; got != judge.OK {
		t.Errorf("one failed scan: %v", got)
	}
	now := fail(21, 20)
	if got := judge.Judge(h, primary, now); got.State != judge.Failing || got.Due != begin.Add(23*day) {
		t.Errorf("two failed scans: %v", got)
	}
	const want = "The last 2 scans failed since 2026-03-11: the scanner ended with exit code 2. Look at the log of the CI job, and run \"palisade doctor --ci\" in it."
	if got := judge.Reason(h, judge.Failing, now); !strings.HasPrefix(got, want) {
		t.Errorf("reason %q", got)
	}
	now = fail(22, 24*15)
	if got := judge.Judge(h, primary, now).State; got != judge.Silent {
		t.Errorf("scans fail for two weeks: %v", got)
	}
	if got := judge.Reason(h, judge.Silent, now); !strings.HasPrefix(got, "No successful scan for 15 days; usually there is one every day. The last 3 scans failed") {
		t.Errorf("reason %q", got)
	}
	judge.Observe(h, scan(23, now))
	if got := judge.Judge(h, primary, now).State; got != judge.OK {
		t.Errorf("a successful scan: %v", got)
	}
	before := proto.CloneOf(h)
	fail(19, 0) // a late report of an earlier scan
	if !proto.Equal(before, h) {
		t.Errorf("a failure from before the last success changed the history:\n%v\n%v", before, h)
	}
}

// TestVerdict: without scans a state only gets worse, it changes exactly when it is due, and a successful scan ends
// everything but a drop.
func TestVerdict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, at := &storev1.Freshness{}, begin
		for i := range rapid.IntRange(1, 60).Draw(t, "scans") {
			at = at.Add(time.Duration(rapid.Int64Range(1, int64(9*day)).Draw(t, "gap")))
			s := scan(int64(i+1), at)
			s.Results, s.Files = rapid.Int64Range(-1, 200).Draw(t, "results"), rapid.Int64Range(-1, 200).Draw(t, "files")
			if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
				s.Failure = "failed"
			}
			judge.Observe(h, s)
			if got := judge.Judge(h, primary, at).State; s.Failure == "" && got > judge.Shrunk {
				t.Fatalf("a successful scan leaves the state %v", got)
			}
		}
		if len(h.GetDays()) > 30 || !slices.IsSortedFunc(h.GetDays(), func(a, b *storev1.FreshnessDay) int { return int(a.GetAt() - b.GetAt()) }) {
			t.Fatalf("days %v", h.GetDays())
		}
		ref := judge.Ref{Primary: rapid.Bool().Draw(t, "primary"), Forget: time.Duration(rapid.IntRange(0, 120).Draw(t, "forget")) * day}
		now, v := at, judge.Judge(h, ref, at)
		for range 5 {
			if (v.State > judge.OK) != (judge.Reason(h, v.State, now) != "") {
				t.Fatalf("%v has the reason %q", v, judge.Reason(h, v.State, now))
			}
			if v.Due.IsZero() {
				break
			}
			if !v.Due.After(now) {
				t.Fatalf("%v is due at %v", v, now)
			}
			if before := judge.Judge(h, ref, v.Due.Add(-time.Microsecond)); before != v {
				t.Fatalf("%v became %v before it was due", v, before)
			}
			next := judge.Judge(h, ref, v.Due)
			if next == v || next != (judge.Verdict{}) && next.State <= v.State {
				t.Fatalf("%v became %v", v, next)
			}
			now, v = v.Due, next
		}
		if later := judge.Judge(h, ref, at.Add(10000*day)); v != later {
			t.Fatalf("%v at last, but %v when it was due", later, v)
		}
	})
}

// TestOrderOfScans: the order in which scans are stored does not change what is known of their days.
func TestOrderOfScans(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var scans []judge.Scan
		for i := range rapid.IntRange(1, 25).Draw(t, "scans") {
			scans = append(scans, scan(int64(i+1), begin.Add(time.Duration(i)*7*time.Hour)))
		}
		observe := func(list []judge.Scan) *storev1.Freshness {
			h := &storev1.Freshness{}
			for _, s := range list {
				judge.Observe(h, s)
			}
			return h
		}
		want, got := observe(scans), observe(rapid.Permutation(scans).Draw(t, "order"))
		if !proto.Equal(want, got) {
			t.Fatalf("%v\n%v", want, got)
		}
	})
}
