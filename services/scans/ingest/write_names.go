package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
)

// rungName is the rung of a result that nothing spoke for, but that looks as one identity did when it got its name.
const rungName = "name"

// naming is a new result on its way to a name.
type naming struct {
	*Result
	try int
}

// candidate is the name at hand: that of birth, then others made from it.
func (n naming) candidate() string {
	if n.try == 1 {
		return n.birthName
	}
	sum := sha256.Sum256([]byte(n.birthName + "#" + strconv.Itoa(n.try)))
	return hex.EncodeToString(sum[:16])
}

// nameNew names the identities of results that no finding of this ref was joined to. A name belongs to one identity of
// the project for ever, whatever became of its evidence.
func (w *writer) nameNew(ctx context.Context, batch []*Result) error {
	var waiting []naming
	for _, i := range batch {
		foreign := i.matches.named[i.result]
		switch {
		case foreign != nil:
			i.fingerprint, i.elsewhere = foreign.name, true
		case i.knownID() == 0:
			waiting = append(waiting, naming{i, 1})
		}
	}
	if w.newProject { // nobody has a name yet, and those of one scan differ
		for _, n := range waiting {
			n.fingerprint = n.birthName
		}
		return nil
	}
	given := map[storedKey]bool{}
	for len(waiting) > 0 {
		owners, err := w.owners(ctx, waiting)
		if err != nil {
			return err
		}
		var next []naming
		for _, n := range waiting {
			key := storedKey{n.candidate(), n.Group.Category}
			n.elsewhere = n.elsewhere || len(owners[key]) > 0
			if !given[key] && (len(owners[key]) == 0 || n.isReturn(owners[key], w.scan)) {
				n.fingerprint, given[key] = key.fingerprint, true
				continue
			}
			next = append(next, naming{n.Result, n.try + 1})
		}
		waiting = next
	}
	return nil
}

type storedKey struct{ fingerprint, category string }

// owners reads who has the names at hand already.
func (w *writer) owners(ctx context.Context, waiting []naming) (map[storedKey][]*ent.Finding, error) {
	prints := make([]string, len(waiting))
	for n, w := range waiting {
		prints[n] = w.candidate()
	}
	rows, err := w.tx.Finding.Query().
		Where(finding.DeploymentID(w.deploymentID), finding.ProjectID(w.project.ID), finding.FingerprintIn(prints...)).
		Select(finding.FieldID, finding.FieldRef, finding.FieldFingerprint, finding.FieldAnalysisCategory, finding.FieldIssueType,
			finding.FieldFirstSeenScanID, finding.FieldMergedInto).All(ctx)
	if err != nil {
		return nil, err
	}
	owners := map[storedKey][]*ent.Finding{}
	for _, row := range rows {
		key := storedKey{row.Fingerprint, row.AnalysisCategory}
		owners[key] = append(owners[key], row)
	}
	return owners, nil
}

// isReturn reports whether a new result is the identity that was named for just this evidence: the code is as it was
// then, while findings of that name have gone on or away. It joins the result to it. It is not if that identity was
// met, merged into another one or found by a report of another product, or if the result could be several findings.
func (n naming) isReturn(owners []*ent.Finding, scan *ent.Scan) bool {
	g, name := n.matches, n.birthName
	if n.try != 1 || g.taken[name] || len(g.considered[n.result]) > 0 {
		return false
	}
	last := owners[0]
	if slices.ContainsFunc(owners, func(owner *ent.Finding) bool { return owner.MergedInto != nil || !g.replaces(owner.IssueType) }) {
		return false
	}
	for _, owner := range owners {
		switch {
		case owner.Ref == scan.Ref && (owner.FirstSeenScanID == scan.ID || g.isMet(owner.ID)):
			return false
		case owner.Ref == scan.Ref:
			g.meet(n.result, owner.ID)
			g.rungs[n.result] = rungName
			return true
		case owner.ID > last.ID:
			last = owner
		}
	}
	g.taken[name] = true
	g.named[n.result] = &foreignJoin{id: last.ID, name: name, ref: last.Ref, rung: rungName}
	return true
}
