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

// SplitFinding takes the latest join of a finding apart, or else the finding from those of its name on other refs.
func (s *FindingIdentity) SplitFinding(ctx context.Context, r *findingsv1.SplitFindingRequest) (*findingsv1.SplitFindingResponse, error) {
	out := &findingsv1.SplitFindingResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		projectID, err := projectOf(ctx, tx, r.GetFindingId())
		if err != nil {
			return err
		}
		e, err := s.begin(ctx, tx, projectID, r.GetNote())
		if err != nil {
			return err
		}
		row, err := e.one(ctx, r.GetFindingId())
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
		out.Change = convertChange(change)
		return e.record(ctx, changeSplit)
	})
	return out, err
}

// split chooses what there is to take apart.
func (e *identityEdit) split(ctx context.Context, row *editedFinding) (*ent.IdentityChange, []*ent.Finding, error) {
	join, content, err := e.latestJoin(ctx, row)
	if err != nil {
		return nil, nil, err
	}
	if join != nil {
		return e.splitJoin(ctx, row, join, content)
	}
	twins, err := e.tx.Finding.Query().Where(finding.ProjectID(e.projectID), finding.Fingerprint(row.Fingerprint), finding.IssueType(row.IssueType),
		finding.IDNEQ(row.ID), finding.MergedIntoIsNil()).Count(ctx)
	if err != nil {
		return nil, nil, err
	}
	if twins == 0 {
		return nil, nil, apierr.FailedPrecondition("finding %d cannot be split: every scan saw it by the same evidence since it is as it is now, "+
			"and it is on no other ref", row.ID)
	}
	row.Fingerprint, row.reason = newName(), "not the same as on other refs"
	row.TriageState, row.TriageReason, row.TriageComment, row.TriagedAt = lifecycle.Untriaged, nil, nil, nil
	e.setStatuses()
	change, err := e.finish(ctx, changeSplit, row.ID, 0, nil)
	return change, []*ent.Finding{row.Finding}, err
}

// latestJoin is the last scan's join of a finding by other than exact evidence, as long as nobody has taken it apart;
// nil when there is none. A merge since is refused: it has to be undone itself.
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
		return nil, nil, apierr.FailedPrecondition("finding %d is as it is by merge %d: undo that one", row.ID, last.ID)
	}
	if join == nil || join.Rung == "" || last != nil && join.At <= last.At {
		return nil, nil, nil
	}
	content := &storev1.FindingMatch{}
	if err := proto.Unmarshal(join.Content, content); err != nil {
		return nil, nil, fmt.Errorf("match %d: %w", join.ID, err)
	}
	// A join with a finding of another ref has given this one its name when it was born: it was nothing before.
	if len(content.GetEvidenceBefore()) == 0 || len(content.GetContentBefore()) == 0 {
		return nil, nil, nil
	}
	return join, content, nil
}

// splitJoin gives a finding back what it was before a join, and makes a new one of the present result.
func (e *identityEdit) splitJoin(ctx context.Context, row *editedFinding, join *ent.FindingMatch, content *storev1.FindingMatch) (*ent.IdentityChange, []*ent.Finding, error) {
	present := *row.Finding
	fresh, err := e.born(ctx, &present, join.ScanID)
	if err != nil {
		return nil, nil, err
	}
	if err := restoreSight(row.Finding, content); err != nil {
		return nil, nil, err
	}
	row.State, row.StateUpdatedAt = lifecycle.Fixed, e.at
	row.reason = fmt.Sprintf("the join by %s was wrong: finding %d is what is in the code", join.Rung, fresh.ID)
	e.setStatuses()
	change, err := e.finish(ctx, changeSplit, row.ID, fresh.ID, []int64{fresh.ID})
	return change, []*ent.Finding{row.Finding, fresh.Finding}, err
}

// born stores a finding that has what scans say about another one, but a name of its own and nobody's decision.
func (e *identityEdit) born(ctx context.Context, of *ent.Finding, scanID int64) (*editedFinding, error) {
	content, err := blob.Decode(of.Content)
	if err != nil {
		return nil, fmt.Errorf("content of finding %d: %w", of.ID, err)
	}
	verdict.Keep(&storev1.FindingContent{}, content)
	encoded, err := blob.Encode(content)
	if err != nil {
		return nil, err
	}
	fresh := *of
	fresh.ID, fresh.Fingerprint, fresh.FirstSeenScanID, fresh.CreatedAt, fresh.Content = 0, newName(), scanID, e.at, encoded
	fresh.TriageState, fresh.TriageReason, fresh.TriageComment, fresh.TriagedAt = lifecycle.Untriaged, nil, nil, nil
	fresh.AutotriageVerdict, fresh.ComponentTag, fresh.ClickToFixState = nil, nil, nil
	fresh.Status = lifecycle.Status(fresh.State, fresh.TriageState)
	saved, err := e.create(&fresh).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("store the finding of the present result: %w", err)
	}
	row := &editedFinding{Finding: saved, reason: fmt.Sprintf("split from finding %d", of.ID)}
	e.rows[saved.ID] = row
	return row, nil
}

// restoreSight gives a finding the evidence, the content and the place of before a join. The hash of the content is
// forgotten: the next scan that sees it brings news.
func restoreSight(row *ent.Finding, join *storev1.FindingMatch) error {
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

// newName is a name that no result gives: 32 hexadecimal digits, as all names have.
func newName() string {
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails
	return hex.EncodeToString(name[:])
}
