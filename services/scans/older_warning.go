package scans

import (
	"fmt"
	"time"

	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/sarif"
)

// olderWarning says that the report is older than an earlier scan of the analysis; empty if there is no such scan.
func (u *upload) olderWarning(of ingest.Analysis) string {
	newer, older := u.result.Older[of]
	if !older {
		return ""
	}
	this := "the commit of this report"
	if newer.By == ingest.ByRun {
		this = fmt.Sprintf("the run of this report (%s)", ranAt(u.report.groups()[of]).Format(time.RFC3339))
	}
	return fmt.Sprintf("%s is older than that of scan %d: it closes and reopens nothing that newer ones decided, and %d of its "+
		"findings, which they no longer have, are stored as closed", this, newer.ScanID, u.result.Superseded())
}

// ranAt is the time of the latest run; zero if none is known.
func ranAt(runs []*sarif.Run) (latest time.Time) {
	for _, run := range runs {
		if run.RanAt.After(latest) {
			latest = run.RanAt
		}
	}
	return latest
}
