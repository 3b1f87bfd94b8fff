package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/identity"
)

// rungName is the rung of a result that no other evidence matched, but that equals an identity as it was first seen.
const rungName = "name"

// naming is a new result that needs a fingerprint.
type naming struct {
	*Result
	try int
}

// candidate is the next fingerprint to try: the initial one, then others derived from it.
func (n naming) candidate() string {
	if n.try == 1 {
		return n.initialFingerprint
	}
	sum := sha256.Sum256([]byte(n.initialFingerprint + "#" + strconv.Itoa(n.try)))
	return hex.EncodeToString(sum[:16])
}

// assignFingerprints gives fingerprints to results that have no finding on this ref. A fingerprint belongs to one
// identity of the project forever, even if the evidence of the identity changes.
func (w *writer) assignFingerprints(ctx context.Context, batch []*Result) error {
	var waiting []naming
	for _, i := range batch {
		foreign := i.matches.foreign[i.result]
		switch {
		case foreign != nil:
			i.fingerprint, i.elsewhere = foreign.name, true
		case i.knownID() == 0:
			waiting = append(waiting, naming{i, 1})
		}
	}
	if w.newProject { // no fingerprint is taken yet, and fingerprints of one scan are distinct
		for _, n := range waiting {
			n.fingerprint = n.initialFingerprint
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

// owners reads the findings that have the candidate fingerprints already.
func (w *writer) owners(ctx context.Context, waiting []naming) (map[storedKey][]*ent.Finding, error) {
	prints := make([]string, len(waiting))
	for n, w := range waiting {
		prints[n] = w.candidate()
	}
	rows, err := w.tx.Finding.Query().
		Where(finding.DeploymentID(w.deploymentID), finding.ProjectID(w.project.ID), finding.FingerprintIn(prints...)).
		Select(finding.FieldID, finding.FieldRef, finding.FieldFingerprint, finding.FieldAnalysisCategory, finding.FieldIssueType,
			finding.FieldFirstSeenScanID, finding.FieldMergedInto, finding.FieldEvidence).All(ctx)
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

// isReturn reports whether a new result is the identity that got this fingerprint originally: the code is as it was
// then, while the findings of that identity have changed or were closed. If so, it joins the result to the identity. It
// returns false if the identity is joined already, was merged into another one, or belongs to another product, if the
// tool's fingerprints or the logical locations differ, and if the result could be one of several findings.
func (n naming) isReturn(owners []*ent.Finding, scan *ent.Scan) bool {
	g, name := n.matches, n.initialFingerprint
	if n.try != 1 || g.taken[name] || len(g.considered[n.result]) > 0 {
		return false
	}
	last := owners[0]
	if slices.ContainsFunc(owners, func(owner *ent.Finding) bool {
		return owner.MergedInto != nil || !g.replaces(owner.IssueType) || n.contradicts(owner)
	}) {
		return false
	}
	for _, owner := range owners {
		switch {
		case owner.Ref == scan.Ref && (owner.FirstSeenScanID == scan.ID || g.isJoined(owner.ID)):
			return false
		case owner.Ref == scan.Ref:
			g.rejoin(n.result, owner.ID)
			g.rungs[n.result] = rungName
			return true
		case owner.ID > last.ID:
			last = owner
		}
	}
	g.taken[name] = true
	g.foreign[n.result] = &foreignJoin{id: last.ID, name: name, ref: last.Ref, rung: rungName}
	return true
}

// contradicts reports whether the evidence of a stored finding excludes that the result is the same.
func (n naming) contradicts(owner *ent.Finding) bool {
	if owner.Evidence == nil {
		return false
	}
	stored, _, err := identity.Decode(*owner.Evidence)
	return err == nil && identity.Contradict(&stored, &n.evidence)
}
