package ingest

import (
	"cmp"
	"context"
	"path"
	"slices"
	"time"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
)

const (
	// leftAfter is how long a file is not searched until it counts as gone, if scans that could have searched it miss it.
	leftAfter = 24 * time.Hour
	// forgottenAfter is the same if it is unknown whether they could have searched it.
	forgottenAfter = 30 * 24 * time.Hour
)

// absences decides about files that a full scan did not search. Such a file is gone, or it belongs to another part of
// the project: the jobs of a matrix scan parts, and nothing tells so except their files. So a scan says that a file is
// gone only if it continues the last scan that searched the file:
//
//   - It searched a file beside it (same directory and extension) which that scan searched, too. Parts are directories
//     or types of files. So both scans belong to the same part, unless the other scans of that commit tell them apart.
//   - Or it searched mostly what that scan searched, and scans have missed the file for a day. This is how a deleted
//     directory ends, while the parts of a scan that was just split have a day to arrive.
//   - Or no scan has searched it for a month.
//
// A report that does not list all files (SARIF) says so if the report before it misses the file, too, and if it has a
// file in common with the last one that did not.
type absences struct {
	history
	files map[string]bool // of this scan
	cells map[cell][]string
	// seenBefore has the files of the previous report, if this one does not list all files (SARIF).
	seenBefore map[string]bool
	// unsearched are the files that may be there. Later scans read them.
	unsearched map[string]*storev1.Unsearched
	// older says that a newer scan was stored before.
	older bool
}

// cell is a kind of files in a directory.
type cell struct{ dir, extension string }

func cellOf(file string) cell { return cell{path.Dir(file), path.Ext(file)} }

func newAbsences(s *session, g *group) *absences {
	return &absences{history: history{session: s, group: g}, unsearched: map[string]*storev1.Unsearched{}}
}

// before takes the previous report; nil if it does not count.
func (a *absences) before(c *previousCoverage) {
	if c != nil && c.GetFilesKnown() {
		a.seenBefore = set(slices.Concat(c.GetFiles(), c.GetSkipped()))
	}
}

// judge decides about a file that this scan did not search.
func (a *absences) judge(ctx context.Context, file string) (decision, error) {
	last, since, err := a.lastSearch(ctx, file)
	if err != nil {
		return keepState, err
	}
	f, err := a.decide(ctx, file, last, since)
	if f == keepState && err == nil {
		missed := &storev1.Unsearched{Since: cmp.Or(since, a.now)}
		if last != nil {
			missed.ScanId = last.scanID
		}
		a.unsearched[file] = missed
	}
	return f, err
}

func (a *absences) decide(ctx context.Context, file string, last *earlierScan, since int64) (decision, error) {
	missedFor := func(d time.Duration) bool { return since != 0 && a.now-since >= d.Microseconds() }
	switch {
	case a.older && a.group.coverage.ListsAll:
		return keepState, nil // newer scans may have added the file
	case missedFor(forgottenAfter):
		return fileLeft, nil
	case !a.group.coverage.ListsAll:
		if a.seenBefore == nil || a.seenBefore[file] || last != nil && !a.meets(last) {
			return keepState, nil
		}
		return fileMissing, nil
	case last == nil:
		return keepState, nil
	case missedFor(leftAfter) && a.shares(last):
		return fileLeft, nil
	}
	beside, err := a.beside(ctx, file, last)
	if err != nil || !beside {
		return keepState, err
	}
	return fileGone, nil
}

// searched returns the files of this scan.
func (a *absences) searched() map[string]bool {
	if a.files == nil {
		a.files, a.cells = set(a.group.coverage.GetFiles()), map[cell][]string{}
		for _, file := range a.group.coverage.GetFiles() {
			a.cells[cellOf(file)] = append(a.cells[cellOf(file)], file)
		}
	}
	return a.files
}

// shares reports whether an earlier scan searched the files of this scan.
func (a *absences) shares(c *earlierScan) bool { return overlap(a.searched(), c.files) }

// meets reports whether an earlier scan searched any file of this scan.
func (a *absences) meets(c *earlierScan) bool {
	return slices.ContainsFunc(a.group.coverage.GetFiles(), func(file string) bool { return c.files[file] })
}

// overlap reports whether more than half of the smaller set is in the other one. Two parts of a project may have some
// files in common, such as lockfiles.
func overlap(a, b map[string]bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	common := 0
	for file := range a {
		if b[file] {
			common++
		}
	}
	return 2*common > len(a)
}

// beside reports whether this scan searched a file beside another one, and the last scan that searched the other one
// did, too. A file that some scan of that commit searched without the other one proves nothing.
func (a *absences) beside(ctx context.Context, file string, last *earlierScan) (bool, error) {
	a.searched()
	for _, neighbour := range a.cells[cellOf(file)] {
		if !last.files[neighbour] {
			continue
		}
		peers, err := a.ofCommit(ctx, last)
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(peers, func(c *earlierScan) bool { return c.files[neighbour] && !c.files[file] }) {
			return true, nil
		}
	}
	return false, nil
}

// elsewhere returns the hashes of unsearched files of open findings that belong to another part. Their findings have
// not moved to files of this scan.
func (a *absences) elsewhere(ctx context.Context, known []identity.Known) (map[uint64]bool, error) {
	if c := a.group.coverage; !a.scan.IsFullScan || !c.ListsAll || !c.GetFilesKnown() || c.GetFailure() != "" {
		return nil, nil
	}
	wanted := map[uint64]bool{}
	here := pathHashes(a.group.coverage.GetFiles(), a.group.coverage.GetSkipped())
	for _, k := range known {
		if k.Open && k.Path != 0 && !here[k.Path] {
			wanted[k.Path] = true
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	if err := a.read(ctx); err != nil {
		return nil, err
	}
	others, continues := map[uint64]bool{}, false
	for _, row := range a.rows {
		c, err := a.ofScan(ctx, row.ScanID)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		shares := a.shares(c)
		continues = continues || shares
		for file := range c.files {
			if hash := identity.PathHash(file); wanted[hash] {
				delete(wanted, hash)
				others[hash] = !shares
			}
		}
		if len(wanted) == 0 && continues {
			break
		}
	}
	for hash, other := range others {
		// The only file of a project may have been renamed: then no earlier scan has the files of this one.
		if !other || !continues {
			delete(others, hash)
		}
	}
	return others, nil
}
