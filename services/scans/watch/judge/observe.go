package judge

import (
	"slices"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Scan is a scan of an analysis. Sizes are -1 when unknown.
type Scan struct {
	ID, At                int64
	Status                string
	Failure               string // empty for a successful scan
	Results, Files, Rules int64
	ToolVersion           string
}

// Observe adds a scan to the history. Scans may come in any order.
func Observe(h *storev1.Freshness, s Scan) {
	if h.FirstAt == 0 || s.At < h.FirstAt {
		h.FirstAt = s.At
	}
	newest := s.At >= h.LastAt
	if newest {
		h.LastAt, h.LastStatus, h.Failure, h.LastToolVersion = s.At, s.Status, s.Failure, s.ToolVersion
	}
	if s.Failure != "" {
		if newest {
			if h.Failures++; h.Failures == 1 {
				h.FailingSince = s.At
			}
		}
		return
	}
	if newest {
		h.Failures, h.FailingSince = 0, 0
	}
	keepDay(h, &storev1.FreshnessDay{At: s.At, ScanId: s.ID, Results: s.Results, Files: s.Files, Rules: s.Rules, ToolVersion: s.ToolVersion})
}

// keepDay keeps the last successful scan of each day.
func keepDay(h *storev1.Freshness, d *storev1.FreshnessDay) {
	at, known := slices.BinarySearchFunc(h.Days, date(d.GetAt()), func(d *storev1.FreshnessDay, day int64) int { return int(date(d.GetAt()) - day) })
	switch {
	case !known:
		h.Days = slices.Insert(h.Days, at, d)
	case h.Days[at].GetAt() <= d.GetAt():
		h.Days[at] = d
	}
	if len(h.Days) > maxDays {
		h.Days = slices.Delete(h.Days, 0, len(h.Days)-maxDays)
	}
}
