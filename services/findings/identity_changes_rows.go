package findings

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
)

// editBatch is how many findings one statement writes. Each has 40 columns; SQLite allows 32,766 parameters.
const editBatch = 200

// editedFinding is a finding with its old and its new values.
type editedFinding struct {
	old ent.Finding
	*ent.Finding
	// reason is the reason in the event.
	reason string
}

// identityEdit changes identities in one project, in a transaction that has locked the project.
type identityEdit struct {
	tx                      *ent.Tx
	deploymentID, projectID int64
	at                      int64 // microseconds since 1970
	note                    string
	actorKind               string
	actorID                 int64
	rows                    map[int64]*editedFinding
	undoesSplit             bool
}

// load reads findings of the project to change them, in the order of their ids. A finding that was loaded before is
// returned with its changes.
func (e *identityEdit) load(ctx context.Context, where ...predicate.Finding) ([]*editedFinding, error) {
	return e.read(ctx, e.tx.Finding.Query().Where(where...))
}

// loadByIDs loads findings by their ids.
func (e *identityEdit) loadByIDs(ctx context.Context, ids ...int64) ([]*editedFinding, error) {
	query := e.tx.Finding.Query()
	query.Modify(store.FoundByIDs(ids))
	return e.read(ctx, query)
}

// read sorts the rows in memory. For ORDER BY id, SQLite without statistics scans all findings of the deployment.
func (e *identityEdit) read(ctx context.Context, query *ent.FindingQuery) ([]*editedFinding, error) {
	found, err := query.Where(finding.ProjectID(e.projectID)).All(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b *ent.Finding) int { return cmp.Compare(a.ID, b.ID) })
	out := make([]*editedFinding, len(found))
	for n, row := range found {
		if e.rows[row.ID] == nil {
			e.rows[row.ID] = &editedFinding{old: *row, Finding: row}
		}
		out[n] = e.rows[row.ID]
	}
	return out, nil
}

// loadByID loads one finding, or returns an error if it does not exist.
func (e *identityEdit) loadByID(ctx context.Context, id int64) (*editedFinding, error) {
	rows, err := e.loadByIDs(ctx, id)
	if err == nil && len(rows) == 0 {
		err = noFinding(id)
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// loadIdentity loads the findings of an identity that are not merged, on all refs and of all analyses. They share
// decisions.
func (e *identityEdit) loadIdentity(ctx context.Context, of *editedFinding, fingerprint string) ([]*editedFinding, error) {
	return e.load(ctx, finding.Fingerprint(fingerprint), finding.IssueType(of.IssueType), finding.MergedIntoIsNil())
}

// changed returns the findings with changes, by id.
func (e *identityEdit) changed() (rows []*editedFinding) {
	for _, row := range e.rows {
		if row.isChanged() {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, byID)
	return rows
}

// touched returns the findings with changes and the findings that another one was merged into, by id.
func (e *identityEdit) touched() []*editedFinding {
	rows := slices.DeleteFunc(slices.Collect(maps.Values(e.rows)), func(row *editedFinding) bool { return row.reason == "" && !row.isChanged() })
	slices.SortFunc(rows, byID)
	return rows
}

func byID(a, b *editedFinding) int { return cmp.Compare(a.ID, b.ID) }

func (f *editedFinding) isChanged() bool {
	a, b := &f.old, f.Finding
	return a.Fingerprint != b.Fingerprint || a.State != b.State || a.Status != b.Status || a.TriageState != b.TriageState ||
		!same(a.TriageReason, b.TriageReason) || !same(a.TriageComment, b.TriageComment) || !same(a.TriagedAt, b.TriagedAt) ||
		!same(a.MergedInto, b.MergedInto) || a.IssueType != b.IssueType || !same(a.MatchKey, b.MatchKey) || a.ContentHash != b.ContentHash ||
		string(a.Content) != string(b.Content)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// before returns the old values of the touched findings, for an undo. Scan data is not part of it: a merged finding
// keeps the old scan data of its sibling (see swapScanData).
func (e *identityEdit) before(created []int64) *storev1.IdentityBefore {
	before := &storev1.IdentityBefore{Created: created}
	for _, row := range e.touched() {
		if slices.Contains(created, row.ID) {
			continue
		}
		before.Findings = append(before.Findings, beforeOf(row))
	}
	return before
}

// beforeOf returns the old values of a finding.
func beforeOf(row *editedFinding) *storev1.FindingBefore {
	old := &row.old
	return &storev1.FindingBefore{
		FindingId: old.ID, Fingerprint: old.Fingerprint, State: old.State, TriageState: old.TriageState, TriageReason: old.TriageReason,
		TriageComment: old.TriageComment, TriagedAt: old.TriagedAt, MergedInto: old.MergedInto,
	}
}

// save writes the findings with changes. The caller has set their status.
func (e *identityEdit) save(ctx context.Context) error {
	for part := range slices.Chunk(e.changed(), editBatch) {
		rows := make([]*ent.FindingCreate, len(part))
		for n, row := range part {
			rows[n] = e.create(row.Finding).SetID(row.ID)
		}
		err := e.tx.Finding.CreateBulk(rows...).OnConflictColumns(finding.FieldID).Update(func(u *ent.FindingUpsert) {
			u.UpdateRuleID().UpdateFingerprint().UpdateEvidence().UpdateMatchKey().UpdateMergedInto().UpdateSeverity().UpdateState().
				UpdateTriageState().UpdateStatus().UpdateTriageReason().UpdateTriageComment().UpdateTriagedAt().UpdatePolicyMode().
				UpdateExposure().UpdateTransitivity().UpdatePackage().UpdateAdvisory().UpdateFilePath().UpdateEpssProbability().
				UpdateMalicious().UpdateValidationState().UpdateHistorical().UpdateRelevantSince().UpdateStateUpdatedAt().
				UpdateContentHash().UpdateContent().UpdateIgnoredByPattern().UpdateLastSeenScanID()
			u.SetExcluded(finding.FieldIssueType) // immutable, except for moves
		}).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write findings whose identity changes: %w", err)
		}
	}
	return nil
}

// create returns the builder of a finding.
func (e *identityEdit) create(f *ent.Finding) *ent.FindingCreate {
	row := e.tx.Finding.Create().SetDeploymentID(e.deploymentID).SetProjectID(f.ProjectID).SetRuleID(f.RuleID).
		SetFirstSeenScanID(f.FirstSeenScanID).SetNillableLastSeenScanID(f.LastSeenScanID).SetRef(f.Ref).SetTool(f.Tool).SetAnalysisCategory(f.AnalysisCategory).
		SetFingerprint(f.Fingerprint).SetNillableMatchKey(f.MatchKey).SetNillableMergedInto(f.MergedInto).SetIssueType(f.IssueType).
		SetSeverity(f.Severity).SetState(f.State).SetTriageState(f.TriageState).SetStatus(f.Status).
		SetNillableTriageReason(f.TriageReason).SetNillableTriageComment(f.TriageComment).SetNillablePolicyMode(f.PolicyMode).
		SetNillableAutotriageVerdict(f.AutotriageVerdict).SetNillableComponentTag(f.ComponentTag).SetNillableExposure(f.Exposure).
		SetNillableTransitivity(f.Transitivity).SetNillablePackage(f.Package).SetNillableAdvisory(f.Advisory).
		SetNillableFilePath(f.FilePath).SetNillableEpssProbability(f.EpssProbability).SetNillableMalicious(f.Malicious).
		SetNillableClickToFixState(f.ClickToFixState).SetNillableValidationState(f.ValidationState).SetNillableHistorical(f.Historical).
		SetNillableIgnoredByPattern(f.IgnoredByPattern).
		SetCreatedAt(f.CreatedAt).SetRelevantSince(f.RelevantSince).SetStateUpdatedAt(f.StateUpdatedAt).
		SetNillableTriagedAt(f.TriagedAt).SetContentHash(f.ContentHash).SetContent(f.Content)
	if f.Evidence != nil {
		row.SetEvidence(*f.Evidence)
	}
	return row
}

// record writes an event for each touched finding. Reports reload the findings of new events.
func (e *identityEdit) record(ctx context.Context, kind string) error {
	return e.recordRows(ctx, kind, e.touched())
}

func (e *identityEdit) recordRows(ctx context.Context, kind string, rows []*editedFinding) error {
	for part := range slices.Chunk(rows, editBatch) {
		events := make([]*ent.FindingEventCreate, len(part))
		for n, row := range part {
			events[n] = e.tx.FindingEvent.Create().SetDeploymentID(e.deploymentID).SetFindingID(row.ID).SetKind(kind).
				SetFromStatus(row.old.Status).SetToStatus(row.Status).SetReason(row.reason).SetNote(e.note).
				SetActorKind(e.actorKind).SetActorID(e.actorID).SetAt(e.at)
		}
		if err := e.tx.FindingEvent.CreateBulk(events...).Exec(ctx); err != nil {
			return fmt.Errorf("record changes of identities: %w", err)
		}
	}
	return nil
}

// setStatuses derives the status of all loaded findings.
func (e *identityEdit) setStatuses() {
	for _, row := range e.rows {
		row.Status = lifecycle.Status(row.State, row.TriageState)
	}
}

// swapScanData exchanges the scan data of two findings of one ref. Data from people and from assistance stays.
func swapScanData(a, b *editedFinding) error {
	contentA, err := blob.Decode(a.Content)
	if err != nil {
		return fmt.Errorf("content of finding %d: %w", a.ID, err)
	}
	contentB, err := blob.Decode(b.Content)
	if err != nil {
		return fmt.Errorf("content of finding %d: %w", b.ID, err)
	}
	added := &storev1.FindingContent{}
	verdict.Keep(contentA, added)
	verdict.Keep(contentB, contentA)
	verdict.Keep(added, contentB)
	if a.Content, err = blob.Encode(contentB); err != nil {
		return err
	}
	if b.Content, err = blob.Encode(contentA); err != nil {
		return err
	}
	a.RuleID, b.RuleID = b.RuleID, a.RuleID
	a.Evidence, b.Evidence = b.Evidence, a.Evidence
	a.MatchKey, b.MatchKey = b.MatchKey, a.MatchKey
	a.Severity, b.Severity = b.Severity, a.Severity
	a.State, b.State = b.State, a.State
	a.LastSeenScanID, b.LastSeenScanID = b.LastSeenScanID, a.LastSeenScanID
	a.IgnoredByPattern, b.IgnoredByPattern = b.IgnoredByPattern, a.IgnoredByPattern
	a.PolicyMode, b.PolicyMode = b.PolicyMode, a.PolicyMode
	a.Exposure, b.Exposure = b.Exposure, a.Exposure
	a.Transitivity, b.Transitivity = b.Transitivity, a.Transitivity
	a.Package, b.Package = b.Package, a.Package
	a.Advisory, b.Advisory = b.Advisory, a.Advisory
	a.FilePath, b.FilePath = b.FilePath, a.FilePath
	a.EpssProbability, b.EpssProbability = b.EpssProbability, a.EpssProbability
	a.Malicious, b.Malicious = b.Malicious, a.Malicious
	a.ValidationState, b.ValidationState = b.ValidationState, a.ValidationState
	a.Historical, b.Historical = b.Historical, a.Historical
	a.ContentHash, b.ContentHash = b.ContentHash, a.ContentHash
	a.RelevantSince, b.RelevantSince = b.RelevantSince, a.RelevantSince
	a.StateUpdatedAt, b.StateUpdatedAt = b.StateUpdatedAt, a.StateUpdatedAt
	return nil
}

// describeFinding returns a finding as a message.
func describeFinding(row *ent.Finding) (*findingsv1.IdentityFinding, error) {
	content, err := blob.Decode(row.Content)
	if err != nil {
		return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
	}
	out := &findingsv1.IdentityFinding{
		Id: row.ID, ProjectId: row.ProjectID, Ref: row.Ref, State: row.State, TriageState: row.TriageState, Status: row.Status,
		Place: placeOf(content),
	}
	if row.TriageReason != nil {
		out.TriageReason = *row.TriageReason
	}
	return out, nil
}

func describeFindings(rows ...*ent.Finding) (out []*findingsv1.IdentityFinding, err error) {
	for _, row := range rows {
		described, err := describeFinding(row)
		if err != nil {
			return nil, err
		}
		out = append(out, described)
	}
	return out, nil
}

// placeOf is the place of a finding: its file, and the name inside it.
func placeOf(content *storev1.FindingContent) *findingsv1.IdentityPlace {
	place := convertPlace(content.GetLocation())
	if content.GetLogicalLocation() == "" {
		return place
	}
	if place == nil {
		place = &findingsv1.IdentityPlace{}
	}
	place.LogicalLocation = content.GetLogicalLocation()
	return place
}

func convertPlace(at *findingsv1.FindingLocation) *findingsv1.IdentityPlace {
	if at == nil {
		return nil
	}
	return &findingsv1.IdentityPlace{
		FilePath: at.GetFilePath(), Line: int32(at.GetLine()), Column: int32(at.GetColumn()),
		EndLine: int32(at.GetEndLine()), EndColumn: int32(at.GetEndColumn()),
	}
}
