package scans

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/sarif"
)

// incoming is a result on its way to a finding.
type incoming struct {
	result      *sarif.Result
	group       analysis
	fingerprint string
	content     *storev1.FindingContent

	ruleID      int64
	contentHash int64
	encoded     []byte
}

func newIncoming(r *sarif.Result, group analysis, id identity.Identity) *incoming {
	content := &storev1.FindingContent{
		Location: &findingsv1.FindingLocation{
			FilePath: r.Path, Line: int32(r.Line), Column: int32(r.Column), EndLine: int32(r.EndLine), EndColumn: int32(r.EndColumn),
		},
		Message:           r.Message,
		Snippet:           r.Snippet,
		SyntacticId:       id.SyntacticID,
		MatchBasedId:      id.MatchBasedID,
		IdentityRung:      id.Rung,
		IdentityVersion:   identity.Version,
		ToolFingerprint:   r.ToolFingerprint,
		HistoricalCommit:  r.HistoricalCommit,
		SuppressionReason: r.SuppressionReason,
	}
	if r.Product == sca {
		addPackage(content, r)
	}
	return &incoming{result: r, group: group, fingerprint: id.Fingerprint, content: content}
}

func addPackage(content *storev1.FindingContent, r *sarif.Result) {
	found := &findingsv1.FoundDependency{Ecosystem: "no_package_manager", Transitivity: "unknown"}
	content.FoundDependency, content.VulnerabilityIdentifier = found, r.RuleID
	p := r.Package
	if p == nil {
		return
	}
	found.Package, found.Version = p.Name, p.Version
	if p.Ecosystem != "" {
		found.Ecosystem = p.Ecosystem
	}
	if p.AdvisoryID != "" {
		content.VulnerabilityIdentifier = p.AdvisoryID
	}
	for version := range strings.SplitSeq(p.FixedVersion, ",") {
		if version = strings.TrimSpace(version); version != "" {
			content.FixRecommendations = append(content.FixRecommendations, &findingsv1.FixRecommendation{Package: p.Name, Version: version})
		}
	}
}

// encode renders the blob and the hash that says whether a later scan brings news. The commit is not part of the hash:
// the same finding at the next commit is not news.
func (i *incoming) encode(commit string) error {
	options := proto.MarshalOptions{Deterministic: true}
	bare, err := options.Marshal(i.content)
	if err != nil {
		return err
	}
	h := xxhash.New()
	_, _ = h.Write(bare) // a hash never fails
	_, _ = h.WriteString(i.result.Severity)
	_ = binary.Write(h, binary.LittleEndian, i.ruleID)
	i.contentHash = int64(h.Sum64())
	i.content.Commit = commit
	i.encoded, err = options.Marshal(i.content)
	return err
}

// state is what the scan says about a finding that it reports.
func (i *incoming) state() string {
	if i.result.Suppressed {
		return lifecycle.Muted
	}
	return lifecycle.Unresolved
}

// flush compares the batch with what is stored, and writes what is new or changed.
func (in *ingest) flush(ctx context.Context) error {
	if len(in.batch) == 0 {
		return nil
	}
	batch := in.batch
	in.batch = in.batch[:0:0]
	if err := in.storeRules(ctx, batch); err != nil {
		return err
	}
	stored, err := in.storedFindings(ctx, batch)
	if err != nil {
		return err
	}
	var fresh []*ent.FindingCreate
	var changed []change
	var events []*ent.FindingEventCreate
	decisions, err := in.decisionsFor(ctx, batch, stored)
	if err != nil {
		return err
	}
	for _, i := range batch {
		i.ruleID = in.rules[ruleKey{i.group.tool, i.result.RuleID}].id
		if err := i.encode(in.commit); err != nil {
			return err
		}
		old := stored[storedKey{i.fingerprint, i.group.category}]
		if old == nil {
			fresh = append(fresh, in.create(i, decisions[i.fingerprint]))
			in.counts[outcome{i.result.Product, "created"}]++
			continue
		}
		in.seen[old.ID] = struct{}{}
		what, event := in.compare(i, old)
		in.counts[outcome{i.result.Product, what}]++
		lacksPath := old.FilePath == nil && i.result.Path != "" // stored before there was the column: no news, but written
		if what != "unchanged" || lacksPath {
			changed = append(changed, change{i, old, what})
		}
		if event != nil {
			events = append(events, event)
		}
	}
	updates, err := in.updates(ctx, changed)
	if err != nil {
		return err
	}
	return in.write(ctx, fresh, updates, events)
}

// change is a stored finding about which a scan brings news.
type change struct {
	*incoming
	old  *ent.Finding
	what string
}

// updates makes the rows of changed findings. What did not come from scans stays in their content, which is read with one
// query for all of them.
func (in *ingest) updates(ctx context.Context, changed []change) ([]*ent.FindingCreate, error) {
	if len(changed) == 0 {
		return nil, nil
	}
	ids, byID := make([]int64, len(changed)), make(map[int64]change, len(changed))
	for n, c := range changed {
		ids[n], byID[c.old.ID] = c.old.ID, c
	}
	rows, err := in.tx.Finding.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(finding.FieldID), ids)) }).
		Select(finding.FieldID, finding.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if err := byID[row.ID].keep(row.Content); err != nil {
			return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
	}
	updates := make([]*ent.FindingCreate, len(changed))
	for n, c := range changed {
		updates[n] = in.update(c.incoming, c.old, c.what)
	}
	return updates, nil
}

// keep takes over what others than scans have added to the stored content. It is no part of the hash.
func (i *incoming) keep(stored []byte) error {
	old := &storev1.FindingContent{}
	if err := proto.Unmarshal(stored, old); err != nil {
		return err
	}
	verdict.Keep(old, i.content)
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(i.content)
	i.encoded = encoded
	return err
}

func (in *ingest) write(ctx context.Context, fresh, changed []*ent.FindingCreate, events []*ent.FindingEventCreate) error {
	if len(fresh) > 0 {
		if err := in.tx.Finding.CreateBulk(fresh...).Exec(ctx); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		err := in.tx.Finding.CreateBulk(changed...).OnConflictColumns(finding.FieldDeploymentID, finding.FieldProjectID,
			finding.FieldFingerprint, finding.FieldRef, finding.FieldAnalysisCategory).
			Update(func(u *ent.FindingUpsert) {
				u.UpdateState().UpdateStatus().UpdateSeverity().UpdateRuleID().UpdateRelevantSince().UpdateStateUpdatedAt().
					UpdateContentHash().UpdateContent().UpdatePackage().UpdateAdvisory().UpdateFilePath()
			}).Exec(ctx)
		if err != nil {
			return err
		}
	}
	if len(events) > 0 {
		return in.tx.FindingEvent.CreateBulk(events...).Exec(ctx)
	}
	return nil
}

// compare says what a scan means for a stored finding, and gives the event if its state changes.
func (in *ingest) compare(i *incoming, old *ent.Finding) (what string, event *ent.FindingEventCreate) {
	state := i.state()
	switch {
	case !lifecycle.Seen(old.State):
		return "reopened", in.event(old, "reopened", state, "seen again by "+i.group.tool)
	case old.State != state && state == lifecycle.Muted:
		return "updated", in.event(old, "muted", state, i.result.SuppressionReason)
	case old.State != state:
		return "updated", in.event(old, "unmuted", state, "no longer suppressed in the code")
	case old.ContentHash != i.contentHash:
		return "updated", in.event(old, "updated", state, "")
	}
	return "unchanged", nil
}

func (in *ingest) event(old *ent.Finding, kind, state, reason string) *ent.FindingEventCreate {
	return in.tx.FindingEvent.Create().SetDeploymentID(in.deploymentID).SetFindingID(old.ID).SetKind(kind).
		SetFromStatus(old.Status).SetToStatus(lifecycle.Status(state, old.TriageState)).SetReason(reason).
		SetActorKind("scan").SetActorID(in.scan.ID).SetScanID(in.scan.ID).SetAt(in.now)
}

// create makes a finding; a decision that people took about the same finding on another ref comes with it.
func (in *ingest) create(i *incoming, decided *ent.Finding) *ent.FindingCreate {
	row := in.row(i).SetState(i.state()).SetFirstSeenScanID(in.scan.ID).SetCreatedAt(in.now).SetRelevantSince(in.now).SetStateUpdatedAt(in.now)
	if decided == nil {
		return row.SetStatus(lifecycle.Status(i.state(), lifecycle.Untriaged))
	}
	return row.SetTriageState(decided.TriageState).SetStatus(lifecycle.Status(i.state(), decided.TriageState)).
		SetNillableTriageReason(decided.TriageReason).SetNillableTriageComment(decided.TriageComment).SetNillableTriagedAt(decided.TriagedAt)
}

// update makes the row of a stored finding as this scan leaves it. It is written as an upsert: one statement for many.
func (in *ingest) update(i *incoming, old *ent.Finding, what string) *ent.FindingCreate {
	row := in.row(i).SetState(i.state()).SetStatus(lifecycle.Status(i.state(), old.TriageState)).
		SetFirstSeenScanID(old.FirstSeenScanID).SetCreatedAt(old.CreatedAt).SetRelevantSince(old.RelevantSince).SetStateUpdatedAt(old.StateUpdatedAt)
	if old.State != i.state() {
		row.SetStateUpdatedAt(in.now)
	}
	if what == "reopened" {
		row.SetRelevantSince(in.now)
	}
	return row
}

// row sets what a scan knows about a finding.
func (in *ingest) row(i *incoming) *ent.FindingCreate {
	row := in.tx.Finding.Create().SetDeploymentID(in.deploymentID).SetProjectID(in.project.ID).SetRuleID(i.ruleID).SetRef(in.ref).
		SetTool(i.group.tool).SetAnalysisCategory(i.group.category).SetFingerprint(i.fingerprint).SetIssueType(i.result.Product).
		SetSeverity(i.result.Severity).SetContentHash(i.contentHash).SetContent(i.encoded)
	if i.result.Path != "" {
		row.SetFilePath(i.result.Path)
	}
	switch i.result.Product {
	case sca:
		row.SetExposure("unknown").SetTransitivity(i.content.GetFoundDependency().GetTransitivity()).SetEpssProbability("none")
		if name := i.content.GetFoundDependency().GetPackage(); name != "" {
			row.SetPackage(name)
		}
		if id := i.content.GetVulnerabilityIdentifier(); id != "" {
			row.SetAdvisory(strings.ToUpper(id))
		}
	case secrets:
		row.SetValidationState("no_validator")
		if i.result.HistoricalCommit != "" {
			row.SetHistorical(true)
		}
	}
	return row
}
