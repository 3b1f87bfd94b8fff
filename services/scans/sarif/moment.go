package sarif

import (
	"strings"
	"time"
)

// momentLayouts are the forms of a time. SARIF wants UTC with a Z and lets tools leave the seconds out. A time without
// a zone is in UTC, as the names of its properties say.
var momentLayouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04"}

// ParseTime reads a time. It returns zero for anything else, such as a date without a time.
func ParseTime(text string) time.Time {
	text = strings.ToUpper(strings.Replace(strings.TrimSpace(text), " ", "T", 1))
	for _, layout := range momentLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// moment reads a time that orders reports. Nothing else depends on it, so one that cannot be read blocks no closes.
func (r *reader) moment(run *Run, into *time.Time) error {
	var text string
	if err := r.text(run, &text, false); err != nil || text == "" {
		return err
	}
	if *into = ParseTime(text); into.IsZero() {
		run.notes.add(r.here(), "is no time such as 2026-11-20T21:57:51Z: ignored", false)
	}
	return nil
}

// ranAt is the time of the run: the latest end of its invocations, or the latest start if no end is known.
func (run *Run) ranAt() time.Time {
	var began, ended time.Time
	for _, inv := range run.invoked {
		if inv.began.After(began) {
			began = inv.began
		}
		if inv.ended.After(ended) {
			ended = inv.ended
		}
	}
	if ended.IsZero() {
		return began
	}
	return ended
}
