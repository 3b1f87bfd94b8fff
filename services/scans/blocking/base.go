package blocking

import (
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// Base is what the findings of a scan are compared with. A finding is new unless it was there. How often the commit
// was scanned does not matter: a repeated job gets the same answer.
type Base struct {
	// Ref is the compared ref; empty if there is none, and then every finding is new.
	Ref string
	// ScanID is the scan of the merge base; 0 if the state comes from no scan.
	ScanID int64
	// At is the time of the compared state.
	At int64
	// SameCommit has the scans of the scanned commit on Ref, if that is the scanned ref: what they found first is new.
	SameCommit map[int64]bool
}

// Had reports whether a finding was present at the time of the base. It has the state since stateSince, and is there
// since relevantSince.
func (b *Base) Had(state string, relevantSince, stateSince int64) bool {
	return relevantSince <= b.At && (lifecycle.Seen(state) || stateSince > b.At)
}

// ScanOfMergeBase chooses the scan that says what a merge base has among the candidates, the newest first: one of all
// products, and of the primary branch if there is one. It returns nil if there is none.
func ScanOfMergeBase(candidates []*ent.Scan, products int32, primary string) *ent.Scan {
	found := slices.DeleteFunc(candidates, func(of *ent.Scan) bool { return of.Products&products != products })
	if len(found) == 0 {
		return nil
	}
	return found[max(0, slices.IndexFunc(found, func(of *ent.Scan) bool { return of.Ref == primary }))]
}
