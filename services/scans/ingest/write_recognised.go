package ingest

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/projects/gitref"
)

// recognised is the event of a created finding that was recognised as a finding of another ref.
type recognised struct {
	id             int64
	status, reason string
}

// match describes how a result was recognised, or which findings it could have been.
func (i *Result) match(name string, before *storev1.FindingContent) *storev1.FindingMatch {
	m := &storev1.FindingMatch{IdentityVersion: identity.Version, Identity: name, After: i.Content.GetLocation(), Considered: i.matches.considered[i.result]}
	if before != nil {
		m.Before = before.GetLocation()
	}
	if foreign := i.matches.foreign[i.result]; foreign != nil {
		m.FromRef = foreign.ref
	}
	return m
}

func (w *writer) newMatch(id int64, rung string, m *storev1.FindingMatch) (*ent.FindingMatchCreate, error) {
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	return w.tx.FindingMatch.Create().SetDeploymentID(w.deploymentID).SetFindingID(id).SetScanID(w.scan.ID).
		SetRung(rung).SetContent(content).SetAt(w.now), nil
}

// recogniseOld records an inexact join to a stored finding, with all that is needed to undo it.
func (w *writer) recogniseOld(c change, before *storev1.FindingContent) (match *ent.FindingMatchCreate, reason string, err error) {
	m := c.match(c.old.Fingerprint, before)
	if c.old.Evidence != nil {
		m.EvidenceBefore = *c.old.Evidence
	}
	if m.ContentBefore, err = blob.Encode(before); err != nil {
		return nil, "", err
	}
	match, err = w.newMatch(c.old.ID, c.rung(), m)
	return match, matchReason(c.rung(), m.Before, m.After, m.FromRef), err
}

// recogniseFresh records which created findings equal findings of other refs inexactly, and which are new although
// there were candidates.
func (w *writer) recogniseFresh(ctx context.Context, fresh []*Result, elsewhere map[int64]*storev1.FindingContent) error {
	var noted []*Result
	for _, i := range fresh {
		joined := i.foreignID() != 0
		if joined && i.rung() != "" || !joined && len(i.matches.considered[i.result]) > 0 {
			noted = append(noted, i)
		}
	}
	if len(noted) == 0 {
		return nil
	}
	made, err := w.readCreated(ctx, noted)
	if err != nil {
		return err
	}
	rows := make([]*ent.FindingMatchCreate, len(noted))
	for n, i := range noted {
		row := made[storedKey{i.fingerprint, i.Group.Category}]
		if row == nil {
			return fmt.Errorf("created finding not found: %s", i.fingerprint)
		}
		before := elsewhere[i.foreignID()]
		m := i.match(i.fingerprint, before)
		if foreign := i.matches.foreign[i.result]; foreign != nil {
			m.EvidenceBefore = foreign.evidence
			w.recognised = append(w.recognised, recognised{row.ID, row.Status, matchReason(i.rung(), m.Before, m.After, m.FromRef)})
		}
		if rows[n], err = w.newMatch(row.ID, i.rung(), m); err != nil {
			return err
		}
	}
	return w.tx.FindingMatch.CreateBulk(rows...).Exec(ctx)
}

// readCreated reads the rows of findings that were just created.
func (w *writer) readCreated(ctx context.Context, fresh []*Result) (map[storedKey]*ent.Finding, error) {
	prints := make([]string, len(fresh))
	for n, i := range fresh {
		prints[n] = i.fingerprint
	}
	rows, err := w.tx.Finding.Query().
		Where(finding.DeploymentID(w.deploymentID), finding.ProjectID(w.project.ID), finding.Ref(w.scan.Ref), finding.FingerprintIn(prints...)).
		Select(finding.FieldID, finding.FieldFingerprint, finding.FieldAnalysisCategory, finding.FieldStatus).All(ctx)
	if err != nil {
		return nil, err
	}
	made := make(map[storedKey]*ent.Finding, len(rows))
	for _, row := range rows {
		made[storedKey{row.Fingerprint, row.AnalysisCategory}] = row
	}
	return made, nil
}

// recordRecognised writes the events of created findings that were recognised.
func (w *writer) recordRecognised(ctx context.Context) error {
	for len(w.recognised) > 0 {
		part := w.recognised[:min(len(w.recognised), batchSize)]
		w.recognised = w.recognised[len(part):]
		rows := make([]*ent.FindingEventCreate, len(part))
		for n, r := range part {
			rows[n] = w.tx.FindingEvent.Create().SetDeploymentID(w.deploymentID).SetFindingID(r.id).SetKind("matched").
				SetFromStatus(r.status).SetToStatus(r.status).SetReason(r.reason).
				SetActorKind("scan").SetActorID(w.scan.ID).SetScanID(w.scan.ID).SetAt(w.now)
		}
		if err := w.tx.FindingEvent.CreateBulk(rows...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// matchReason describes the evidence as text: how the code has changed since the finding was last reported.
func matchReason(rung string, before, after *findingsv1.FindingLocation, fromRef string) string {
	text := "same place"
	switch {
	case before == nil:
		text = "same code"
	case before.GetFilePath() != after.GetFilePath():
		text = fmt.Sprintf("moved from %s:%d to %s:%d", before.GetFilePath(), before.GetLine(), after.GetFilePath(), after.GetLine())
	case before.GetLine() != after.GetLine():
		text = fmt.Sprintf("moved from line %d to line %d", before.GetLine(), after.GetLine())
	}
	switch rung[strings.LastIndexByte(rung, ':')+1:] {
	case identity.RungShape, identity.RungLine:
		text = "code changed, " + text
	case rungName:
		text = "the code is as it was at first, " + text
	}
	if fromRef != "" {
		text = "as on " + gitref.Short(fromRef) + ": " + text
	}
	return text
}
