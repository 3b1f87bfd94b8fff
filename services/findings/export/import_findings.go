package export

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/user"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
)

// identity is what no two findings of a project share.
type identity struct {
	projectID                  int64
	fingerprint, ref, category string
}

// findings stores findings that do not exist yet, with their events and matches.
func (i *importer) findings(ctx context.Context, tx *ent.Tx, records []numbered) error {
	if len(records) == 0 {
		return nil
	}
	found := make([]*storev1.ExportedFinding, len(records))
	for n, record := range records {
		i.line, found[n] = record.line, record.GetFinding()
		if err := i.refers(found[n]); err != nil {
			return err
		}
	}
	known, err := i.known(ctx, tx, found)
	if err != nil {
		return err
	}
	if err := i.readActors(ctx, tx, found); err != nil {
		return err
	}
	var creates []*ent.FindingCreate
	var fresh []*storev1.ExportedFinding
	for n, r := range found {
		i.line = records[n].line
		of := identity{i.projects[r.GetProject()].ID, r.GetFingerprint(), r.GetRef(), r.GetAnalysisCategory()}
		if known[of] {
			i.done.Existing++
			continue
		}
		known[of] = true
		create, err := i.create(tx, r)
		if err != nil {
			return err
		}
		creates, fresh = append(creates, create), append(fresh, r)
	}
	for start := 0; start < len(creates); start += store.RowsAtOnce {
		end := min(start+store.RowsAtOnce, len(creates))
		part := creates[start:end]
		rows, err := tx.Finding.CreateBulk(part...).Save(ctx)
		if err != nil {
			return fmt.Errorf("create findings: %w", err)
		}
		if err := i.histories(ctx, tx, rows, fresh[start:end]); err != nil {
			return err
		}
		i.done.Findings += int64(len(rows))
	}
	return nil
}

// known are the identities that exist. It locks the projects, so that no scan adds findings before the end of the
// transaction. SQLite has only one writer.
func (i *importer) known(ctx context.Context, tx *ent.Tx, records []*storev1.ExportedFinding) (map[identity]bool, error) {
	prints := map[int64][]string{}
	for _, r := range records {
		id := i.projects[r.GetProject()].ID
		prints[id] = append(prints[id], r.GetFingerprint())
	}
	ids := make([]int64, 0, len(prints))
	for id := range prints {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if i.store.Postgres() {
		if _, err := tx.Project.Query().Where(store.WithIDs[predicate.Project](ids)).Order(ent.Asc(project.FieldID)).ForUpdate().IDs(ctx); err != nil {
			return nil, fmt.Errorf("lock projects: %w", err)
		}
	}
	known := map[identity]bool{}
	for _, id := range ids {
		rows, err := tx.Finding.Query().Where(finding.ProjectID(id), store.OneOf(finding.FieldFingerprint, prints[id])).
			Select(finding.FieldID, finding.FieldFingerprint, finding.FieldRef, finding.FieldAnalysisCategory).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("look up findings: %w", err)
		}
		for _, row := range rows {
			known[identity{id, row.Fingerprint, row.Ref, row.AnalysisCategory}] = true
		}
	}
	return known, nil
}

// refers checks that the file has what a finding names.
func (i *importer) refers(r *storev1.ExportedFinding) error {
	if i.projects[r.GetProject()] == nil {
		return invalidf("project: the file does not have it: %s", apierr.Quote(r.GetProject()))
	}
	if _, ok := i.rules[ruleName{r.GetRuleTool(), r.GetRule()}]; !ok {
		return invalidf("rule: the file does not have its rule %s of %s", apierr.Quote(r.GetRule()), apierr.Quote(r.GetRuleTool()))
	}
	scans := []int64{r.GetFirstSeenScan()}
	for _, m := range r.GetMatches() {
		scans = append(scans, m.GetScan())
	}
	if r.GetLastSeenScan() != 0 {
		scans = append(scans, r.GetLastSeenScan())
	}
	for _, e := range r.GetEvents() {
		if e.GetScan() != 0 {
			scans = append(scans, e.GetScan())
		}
	}
	for _, number := range scans {
		if i.scans[number] == 0 {
			return invalidf("the file does not have its scan %d", number)
		}
	}
	return nil
}

// asResult is a finding as a scan would report it.
func asResult(r *storev1.ExportedFinding) *ingest.Result {
	return &ingest.Result{
		Product: r.GetIssueType(), Severity: r.GetSeverity(), Content: r.GetContent(), Exposure: r.GetExposure(),
		ValidationState: r.GetValidationState(), PolicyMode: r.GetPolicyMode(), Malicious: r.GetMalicious(),
	}
}

func (i *importer) create(tx *ent.Tx, r *storev1.ExportedFinding) (*ent.FindingCreate, error) {
	ruleID := i.rules[ruleName{r.GetRuleTool(), r.GetRule()}]
	hash, err := ingest.ContentHash(asResult(r), ruleID)
	if err != nil {
		return nil, err
	}
	content, err := blob.Encode(r.GetContent())
	if err != nil {
		return nil, err
	}
	create := tx.Finding.Create().SetDeploymentID(i.deploymentID).SetProjectID(i.projects[r.GetProject()].ID).
		SetRuleID(ruleID).SetFirstSeenScanID(i.scans[r.GetFirstSeenScan()]).SetRef(r.GetRef()).
		SetTool(r.GetTool()).SetAnalysisCategory(r.GetAnalysisCategory()).SetFingerprint(r.GetFingerprint()).SetNillableMatchKey(r.MatchKey).
		SetIssueType(r.GetIssueType()).SetSeverity(r.GetSeverity()).SetState(r.GetState()).SetTriageState(r.GetTriageState()).SetStatus(r.GetStatus()).
		SetNillableTriageReason(r.TriageReason).SetNillableTriageComment(r.TriageComment).SetNillablePolicyMode(r.PolicyMode).
		SetNillableAutotriageVerdict(r.AutotriageVerdict).SetNillableComponentTag(r.ComponentTag).SetNillableExposure(r.Exposure).
		SetNillableTransitivity(r.Transitivity).SetNillablePackage(r.Package).SetNillableAdvisory(r.Advisory).SetNillableFilePath(r.FilePath).
		SetNillableIgnoredByPattern(r.IgnoredByPattern).
		SetNillableEpssProbability(r.EpssProbability).SetNillableMalicious(r.Malicious).SetNillableClickToFixState(r.ClickToFixState).
		SetNillableValidationState(r.ValidationState).SetNillableHistorical(r.Historical).SetCreatedAt(micros(r.GetCreatedAt())).
		SetRelevantSince(micros(r.GetRelevantSince())).SetStateUpdatedAt(micros(r.GetStateUpdatedAt())).
		SetNillableTriagedAt(optionalMicros(r.GetTriagedAt())).SetContentHash(hash).SetContent(content)
	if r.Evidence != nil {
		create.SetEvidence(r.GetEvidence())
	}
	if id := i.scans[r.GetLastSeenScan()]; id != 0 {
		create.SetLastSeenScanID(id)
	}
	return create, nil
}

// histories stores the events, matches and exception requests of new findings.
func (i *importer) histories(ctx context.Context, tx *ent.Tx, rows []*ent.Finding, records []*storev1.ExportedFinding) error {
	var events []*ent.FindingEventCreate
	var matches []*ent.FindingMatchCreate
	var requests []*ent.ExceptionRequestCreate
	for n, r := range records {
		if r.GetMergedInto() != nil {
			i.merged[rows[n].ID] = r.GetMergedInto()
		}
		for _, e := range r.GetEvents() {
			events = append(events, i.event(tx, rows[n].ID, e))
		}
		for _, m := range r.GetMatches() {
			content, err := proto.Marshal(m.GetContent())
			if err != nil {
				return err
			}
			matches = append(matches, tx.FindingMatch.Create().SetDeploymentID(i.deploymentID).SetFindingID(rows[n].ID).SetScanID(i.scans[m.GetScan()]).
				SetRung(m.GetRung()).SetContent(content).SetAt(micros(m.GetAt())))
		}
		for _, request := range r.GetExceptionRequests() {
			requests = append(requests, i.request(tx, rows[n], request))
		}
	}
	for part := range slices.Chunk(events, store.RowsAtOnce) {
		if err := tx.FindingEvent.CreateBulk(part...).Exec(ctx); err != nil {
			return fmt.Errorf("create events: %w", err)
		}
	}
	for part := range slices.Chunk(matches, store.RowsAtOnce) {
		if err := tx.FindingMatch.CreateBulk(part...).Exec(ctx); err != nil {
			return fmt.Errorf("create matches: %w", err)
		}
	}
	for part := range slices.Chunk(requests, store.RowsAtOnce) {
		if err := tx.ExceptionRequest.CreateBulk(part...).Exec(ctx); err != nil {
			return fmt.Errorf("create exception requests: %w", err)
		}
	}
	return nil
}

// event keeps the name of an actor who is not here.
func (i *importer) event(tx *ent.Tx, findingID int64, e *storev1.ExportedEvent) *ent.FindingEventCreate {
	create := tx.FindingEvent.Create().SetDeploymentID(i.deploymentID).SetFindingID(findingID).SetKind(e.GetKind()).SetFromStatus(e.GetFromStatus()).
		SetToStatus(e.GetToStatus()).SetReason(e.GetReason()).SetNote(e.GetNote()).SetActorKind(e.GetActorKind()).SetAt(micros(e.GetAt()))
	id := i.actors[actorName{e.GetActorKind(), e.GetActor()}]
	if id == 0 {
		create.SetActorName(e.GetActor())
	}
	if scanID := i.scans[e.GetScan()]; scanID != 0 {
		create.SetScanID(scanID)
		if e.GetActorKind() == "scan" {
			id = scanID
		}
	}
	return create.SetActorID(id)
}

// readActors finds users of this deployment by their address, and tokens by their name.
func (i *importer) readActors(ctx context.Context, tx *ent.Tx, records []*storev1.ExportedFinding) error {
	fresh := map[string][]string{}
	see := func(kind, name string) {
		who := actorName{kind, name}
		if _, seen := i.actors[who]; !seen && name != "" && (kind == "user" || kind == "token") {
			i.actors[who] = 0
			fresh[kind] = append(fresh[kind], name)
		}
	}
	for _, r := range records {
		for _, e := range r.GetEvents() {
			see(e.GetActorKind(), e.GetActor())
		}
		for _, request := range r.GetExceptionRequests() {
			see(request.GetRequesterKind(), request.GetRequester())
			see("user", request.GetRequesterCreator())
			see(request.GetReviewerKind(), request.GetReviewer())
		}
	}
	if list := fresh["user"]; len(list) > 0 {
		rows, err := tx.User.Query().Where(store.OneOf(user.FieldEmail, list)).Select(user.FieldID, user.FieldEmail).All(tenant.System(ctx))
		if err != nil {
			return fmt.Errorf("look up users: %w", err)
		}
		ids, emails := make([]int64, len(rows)), map[int64]string{}
		for n, u := range rows {
			ids[n], emails[u.ID] = u.ID, u.Email
		}
		members, err := tx.Membership.Query().Where(store.OneOf(membership.FieldUserID, ids)).Select(membership.FieldUserID).All(ctx)
		if err != nil {
			return fmt.Errorf("look up members: %w", err)
		}
		for _, m := range members {
			i.actors[actorName{"user", emails[m.UserID]}] = m.UserID
		}
	}
	if list := fresh["token"]; len(list) > 0 {
		rows, err := tx.Token.Query().Where(store.OneOf(token.FieldName, list)).Order(ent.Desc(token.FieldID)).Select(token.FieldID, token.FieldName).All(ctx)
		if err != nil {
			return fmt.Errorf("look up tokens: %w", err)
		}
		for _, t := range rows {
			i.actors[actorName{"token", t.Name}] = t.ID // the oldest of a name
		}
	}
	return nil
}

// merge points merged findings at the ones that they were merged into.
func (i *importer) merge(ctx context.Context, tx *ent.Tx) error {
	for id, into := range i.merged {
		row, err := tx.Finding.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("read a merged finding: %w", err)
		}
		target, err := tx.Finding.Query().Where(finding.ProjectID(row.ProjectID), finding.Fingerprint(into.GetFingerprint()), finding.Ref(into.GetRef()),
			finding.AnalysisCategory(into.GetAnalysisCategory())).OnlyID(ctx)
		if ent.IsNotFound(err) {
			continue // the filter of the export left it out
		}
		if err != nil {
			return fmt.Errorf("find what a finding was merged into: %w", err)
		}
		if err := tx.Finding.UpdateOneID(id).SetMergedInto(target).Exec(ctx); err != nil {
			return fmt.Errorf("merge a finding: %w", err)
		}
	}
	return nil
}
