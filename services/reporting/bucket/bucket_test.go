package bucket

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestMake(t *testing.T) {
	cases := []struct {
		name, since, until string
		size               Size
		want               []string // where the buckets begin
	}{
		{"days", "2026-03-30T00:00:00Z", "2026-04-02T00:00:00Z", Day, []string{"2026-03-30T00:00:00Z", "2026-03-31T00:00:00Z", "2026-04-01T00:00:00Z"}},
		{"within a day", "2026-03-30T01:00:00Z", "2026-03-30T02:00:00Z", Day, []string{"2026-03-30T01:00:00Z"}},
		{"weeks begin on Mondays", "2026-03-31T12:00:00Z", "2026-04-14T00:00:00Z", Week, []string{"2026-03-31T12:00:00Z", "2026-04-06T00:00:00Z", "2026-04-13T00:00:00Z"}},
		{"a Sunday ends its week", "2026-04-05T23:59:59Z", "2026-04-06T00:00:01Z", Week, []string{"2026-04-05T23:59:59Z", "2026-04-06T00:00:00Z"}},
		{"months over the year", "2025-12-31T00:00:00Z", "2026-02-01T00:00:00Z", Month, []string{"2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z"}},
		{"a leap day", "2028-02-28T00:00:00Z", "2028-03-01T00:00:00Z", Day, []string{"2028-02-28T00:00:00Z", "2028-02-29T00:00:00Z"}},
		{"another zone", "2026-04-01T01:00:00+02:00", "2026-04-01T03:00:00+02:00", Day, []string{"2026-03-31T23:00:00Z", "2026-04-01T00:00:00Z"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			periods, err := Make(at(c.since), at(c.until), c.size)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range periods {
				got = append(got, show(p.Since))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestMakeRefuses(t *testing.T) {
	day := at("2026-04-01T00:00:00Z")
	for name, c := range map[string]struct {
		since, until time.Time
		text         string
	}{
		"nothing":        {day, day, "since must be before until"},
		"backwards":      {day, day.Add(-time.Second), "since must be before until"},
		"too many":       {day, day.AddDate(0, 0, Max+1), "at most 400 buckets"},
		"all of history": {time.Time{}.Add(1), at("9999-12-31T00:00:00Z"), "at most 400 buckets"},
	} {
		if _, err := Make(c.since, c.until, Day); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %s", name, err, c.text)
		}
	}
	if periods, err := Make(day, day.AddDate(0, 0, Max), Day); err != nil || len(periods) != Max {
		t.Errorf("%d days: %d buckets, %v", Max, len(periods), err)
	}
}

func TestOf(t *testing.T) {
	now := at("2026-04-30T12:00:00Z").Add(1500 * time.Nanosecond)
	p, err := Of(time.Time{}, time.Time{}, now)
	if err != nil || p.Length() != DefaultLength || p.Until != now.Truncate(time.Microsecond) || p.Size() != Day {
		t.Errorf("default: got %v %v", p, err)
	}
	if p, err = Of(now.AddDate(0, -4, 0), time.Time{}, now); err != nil || p.Size() != Week {
		t.Errorf("since alone: got %v %v", p, err)
	}
	if p, err = Of(time.Time{}, now.AddDate(-1, 0, 0), now); err != nil || p.Length() != DefaultLength {
		t.Errorf("until alone: got %v %v", p, err)
	}
	if previous := p.Previous(); previous.Until != p.Since || previous.Length() != p.Length() {
		t.Errorf("previous: got %v", previous)
	}
	if _, err = Of(now, now, now); err == nil {
		t.Error("an empty period was accepted")
	}
	if p = (Period{time.Time{}, now}); p.Size() != Month {
		t.Errorf("all of history: got %v", p.Size())
	}
}

// Buckets cover the period without gaps and overlaps and begin at the right times, and Index finds the bucket of each
// time.
func TestBucketsPartitionThePeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		since := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "since")).UTC()
		length := time.Duration(rapid.Int64Range(1, int64(380*24*time.Hour/time.Microsecond)).Draw(t, "length")) * time.Microsecond
		size := rapid.SampledFrom([]Size{Day, Week, Month}).Draw(t, "size")
		periods, err := Make(since, since.Add(length), size)
		if err != nil {
			t.Fatal(err)
		}
		end := since
		for i, p := range periods {
			if !p.Since.Equal(end) || !p.Since.Before(p.Until) {
				t.Fatalf("bucket %d is %v, the one before ended at %v", i, p, end)
			}
			if begins := p.Since; i > 0 && (!begins.Equal(begins.Truncate(24*time.Hour)) ||
				size == Week && begins.Weekday() != time.Monday || size == Month && begins.Day() != 1) {
				t.Fatalf("a %v begins at %v", size, begins)
			}
			end = p.Until
		}
		if !end.Equal(since.Add(length)) {
			t.Fatalf("the buckets end at %v", end)
		}
		moment := since.Add(time.Duration(rapid.Int64Range(-1000, int64(length/time.Microsecond)+1000).Draw(t, "moment")) * time.Microsecond)
		naive := slices.IndexFunc(periods, func(p Period) bool { return p.Contains(moment) })
		if got := Index(periods, moment); got != naive {
			t.Fatalf("Index(%v) is %d, want %d", moment, got, naive)
		}
	})
}
