package findings

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingmatch"
	"github.com/palisade/palisade/ent/identitychange"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/apierr"
)

// SplitFinding reverts the latest join of a finding. Without a join, it gives the finding a new identity, apart from
// its siblings on other refs.
func (s *FindingIdentity) SplitFinding(ctx context.Context, r *findingsv1.SplitFindingRequest) (*findingsv1.SplitFindingResponse, error) {
	out := &findingsv1.SplitFindingResponse{}
	err := s.write(ctx, r.GetValidateOnly(), func(ctx context.Context, tx *ent.Tx) error {
		projectID, err := projectOf(ctx, tx, r.GetFindingId())
		if err != nil {
			return err
		}
		e, err := s.begin(ctx, tx, projectID, r.GetNote())
		if err != nil {
			return err
		}
		row, err := e.loadByID(ctx, r.GetFindingId())
		if err != nil {
			return err
		}
		if row.MergedInto != nil {
			return apierr.FailedPrecondition("finding %d was merged into finding %d: split that one, or undo the merge", row.ID, *row.MergedInto)
		}
		change, findings, err := e.split(ctx, row)
		if err != nil {
			return err
		}
		if out.Findings, err = describeFindings(findings...); err != nil {
			return err
		}
		if r.GetValidateOnly() {
			out.ChangedCount = int32(len(e.touched()))
			for _, created := range out.GetFindings()[1:] {
				created.Id = 0 // it is not kept
			}
			return nil
		}
		out.Change = convertChange(change)
		return e.record(ctx, changeSplit)
	})
	return out, err
}

// split reverts the latest join, or else separates the finding from its siblings.
func (e *identityEdit) split(ctx context.Context, row *editedFinding) (*ent.IdentityChange, []*ent.Finding, error) {
	join, content, err := e.latestJoin(ctx, row)
	if err != nil {
		return nil, nil, err
	}
	if join != nil {
		return e.splitJoin(ctx, row, join, content)
	}
	siblings, err := e.tx.Finding.Query().Where(finding.ProjectID(e.projectID), finding.Fingerprint(row.Fingerprint), finding.IssueType(row.IssueType),
		finding.IDNEQ(row.ID), finding.MergedIntoIsNil()).Count(ctx)
	if err != nil {
		return nil, nil, err
	}
	if siblings == 0 {
		return nil, nil, apierr.FailedPrecondition("finding %d cannot be split: all scans since its last change matched it by the same "+
			"evidence, and it is on no other ref", row.ID)
	}
	row.Fingerprint, row.reason = newFingerprint(), "not the same as on other refs"
	row.TriageState, row.TriageReason, row.TriageComment, row.TriagedAt = lifecycle.Untriaged, nil, nil, nil
	e.setStatuses()
	change, err := e.finish(ctx, changeSplit, row.ID, 0, nil)
	return change, []*ent.Finding{row.Finding}, err
}

// latestJoin returns the latest join of a finding by evidence that was not exact, unless it was split already. It
// returns nil if there is none, and an error if the finding was merged since: the merge must be undone instead.
func (e *identityEdit) latestJoin(ctx context.Context, row *editedFinding) (*ent.FindingMatch, *storev1.FindingMatch, error) {
	join, err := e.tx.FindingMatch.Query().Where(findingmatch.FindingID(row.ID)).Order(ent.Desc(findingmatch.FieldID)).First(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, nil, err
	}
	last, err := e.tx.IdentityChange.Query().Where(identitychange.UndoneAtIsNil(), identitychange.Or(
		identitychange.FindingID(row.ID), identitychange.And(identitychange.OtherID(row.ID), identitychange.Kind(changeSplit)))).
		Order(ent.Desc(identitychange.FieldID)).Select(identitychange.FieldID, identitychange.FieldKind, identitychange.FieldAt).First(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, nil, err
	}
	if last != nil && last.Kind == changeMerge && (join == nil || join.At <= last.At) {
		return nil, nil, apierr.FailedPrecondition("finding %d was changed by merge %d: undo the merge", row.ID, last.ID)
	}
	if join == nil || join.Rung == "" || last != nil && join.At <= last.At {
		return nil, nil, nil
	}
	content := &storev1.FindingMatch{}
	if err := proto.Unmarshal(join.Content, content); err != nil {
		return nil, nil, fmt.Errorf("match %d: %w", join.ID, err)
	}
	// A join with a sibling on another ref created this finding: there is no earlier version to restore.
	if len(content.GetEvidenceBefore()) == 0 || len(content.GetContentBefore()) == 0 {
		return nil, nil, nil
	}
	return join, content, nil
}

// splitJoin restores a finding to its version before the join, and creates a new finding for the current result.
func (e *identityEdit) splitJoin(ctx context.Context, row *editedFinding, join *ent.FindingMatch, content *storev1.FindingMatch) (*ent.IdentityChange, []*ent.Finding, error) {
	present := *row.Finding
	created, err := e.createFrom(ctx, &present, join.ScanID)
	if err != nil {
		return nil, nil, err
	}
	if err := restoreScanData(row.Finding, content); err != nil {
		return nil, nil, err
	}
	row.State, row.StateUpdatedAt = lifecycle.Fixed, e.at
	row.reason = fmt.Sprintf("the join by %s was wrong: finding %d is what is in the code", join.Rung, created.ID)
	e.setStatuses()
	change, err := e.finish(ctx, changeSplit, row.ID, created.ID, []int64{created.ID})
	return change, []*ent.Finding{row.Finding, created.Finding}, err
}

// createFrom stores a finding with the scan data of another one, a new identity and no decision.
func (e *identityEdit) createFrom(ctx context.Context, of *ent.Finding, scanID int64) (*editedFinding, error) {
	content, err := blob.Decode(of.Content)
	if err != nil {
		return nil, fmt.Errorf("content of finding %d: %w", of.ID, err)
	}
	verdict.Keep(&storev1.FindingContent{}, content)
	encoded, err := blob.Encode(content)
	if err != nil {
		return nil, err
	}
	created := *of
	created.ID, created.Fingerprint, created.FirstSeenScanID, created.CreatedAt, created.Content = 0, newFingerprint(), scanID, e.at, encoded
	created.TriageState, created.TriageReason, created.TriageComment, created.TriagedAt = lifecycle.Untriaged, nil, nil, nil
	created.AutotriageVerdict, created.ComponentTag, created.ClickToFixState = nil, nil, nil
	created.Status = lifecycle.Status(created.State, created.TriageState)
	saved, err := e.create(&created).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("store the finding of the present result: %w", err)
	}
	row := &editedFinding{Finding: saved, reason: fmt.Sprintf("split from finding %d", of.ID)}
	e.rows[saved.ID] = row
	return row, nil
}

// restoreScanData restores the evidence, the content and the file of a finding from before a join. It resets the hash
// of the content, so that the next scan that reports the finding updates it.
func restoreScanData(row *ent.Finding, join *storev1.FindingMatch) error {
	evidence := join.GetEvidenceBefore()
	decoded, _, err := identity.Decode(evidence)
	if err != nil {
		return fmt.Errorf("former evidence of finding %d: %w", row.ID, err)
	}
	present, err := blob.Decode(row.Content)
	if err != nil {
		return fmt.Errorf("content of finding %d: %w", row.ID, err)
	}
	former, err := blob.Decode(join.GetContentBefore())
	if err != nil {
		return fmt.Errorf("former content of finding %d: %w", row.ID, err)
	}
	verdict.Keep(present, former)
	if row.Content, err = blob.Encode(former); err != nil {
		return err
	}
	key := decoded.Key()
	row.Evidence, row.MatchKey, row.ContentHash, row.FilePath = &evidence, &key, 0, nil
	if path := former.GetLocation().GetFilePath(); path != "" {
		row.FilePath = &path
	}
	return nil
}

// newFingerprint returns a random identity: 32 hexadecimal digits, as all identities.
func newFingerprint() string {
	var fingerprint [16]byte
	_, _ = rand.Read(fingerprint[:]) // never fails
	return hex.EncodeToString(fingerprint[:])
}
