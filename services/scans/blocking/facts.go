package blocking

import (
	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/scans/watch"
)

// Monitored is the policy mode of rules that never make a scan fail.
const Monitored = "rule-board-audit"

// Status is the status of a reported finding for policies. covered says that a decision about the same code covers it.
// What only automation ignored still blocks (contract facts, section 4).
func Status(triageState string, covered bool) string {
	status := lifecycle.Status(lifecycle.Unresolved, triageState)
	switch {
	case covered:
		return lifecycle.Ignored
	case status == lifecycle.ProvisionallyIgnored:
		return lifecycle.Open
	}
	return status
}

// Counts reports whether policies count a finding: not if its rule is only monitored, nor if a scanner found it by a
// rule that is not of the deployment. uploaded says that it is in an uploaded report.
func Counts(f *ent.Finding, uploaded bool) bool {
	if f.Tool != watch.ScannerTool {
		return true
	}
	if f.PolicyMode != nil {
		return *f.PolicyMode != Monitored
	}
	return uploaded || !MaybeOfScanner(f)
}

// MaybeOfScanner reports whether a finding is of a scanner that gets its rules from Palisade, or of an uploaded report
// of the same tool.
func MaybeOfScanner(f *ent.Finding) bool {
	return f.Tool == watch.ScannerTool && f.AnalysisCategory == ""
}
