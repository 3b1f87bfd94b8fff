package supplychain

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/advisory"
	"github.com/palisade/palisade/ent/advisorypackage"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/matching"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// packagesAtOnce is the number of rows per insert: SQLite allows 32,766 values in a statement.
const packagesAtOnce = 1000

// clockSkew is how far in the future predictions may be. Newer ones never replace predictions from a far future.
const clockSkew = 24 * time.Hour

// ImportAdvisories stores a batch of advisories, exploit predictions or known exploits in one transaction. It is
// idempotent.
func (s *MalwareFirewall) ImportAdvisories(ctx context.Context, r *supplychainv1.ImportAdvisoriesRequest) (*supplychainv1.ImportAdvisoriesResponse, error) {
	predictions, catalogue := r.GetExploitPredictions(), r.GetKnownExploits()
	switch given := len(r.GetAdvisories()) > 0; {
	case predictions != nil && catalogue == nil && !given:
		if at := predictions.GetScoredAt().AsTime(); at.After(time.Now().Add(clockSkew)) {
			return nil, apierr.InvalidArgument("exploitPredictions.scoredAt",
				"exploitPredictions.scoredAt must be at most a day ahead, got %s", at.Format(time.RFC3339))
		}
		return s.importExploits(ctx, predicted(predictions))
	case catalogue != nil && predictions == nil && !given:
		return s.importExploits(ctx, listedIn(catalogue))
	case !given || predictions != nil || catalogue != nil:
		return nil, apierr.InvalidArgument("advisories", "one of advisories, exploitPredictions and knownExploits is required")
	}
	response := &supplychainv1.ImportAdvisoriesResponse{}
	newest := readDocuments(r, response)
	ids := make([]string, 0, len(newest))
	for id := range newest {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	skipped := response.GetSkipped()
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		response = &supplychainv1.ImportAdvisoriesResponse{Skipped: skipped}
		if s.store.Postgres() { // serialize imports, so that a concurrent import finds the rows that this one creates
			if _, err := tx.Deployment.Query().ForUpdate().OnlyID(ctx); err != nil {
				return err
			}
		}
		rows, err := tx.Advisory.Query().Where(store.OneOf(advisory.FieldOsvID, ids)).All(ctx)
		if err != nil {
			return err
		}
		stored := make(map[string]*ent.Advisory, len(rows))
		for _, row := range rows {
			stored[row.OsvID] = row
		}
		return s.put(ctx, tx, ids, newest, stored, response)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// readDocuments parses the batch. Of documents with the same id, the last modified one counts.
func readDocuments(r *supplychainv1.ImportAdvisoriesRequest, response *supplychainv1.ImportAdvisoriesResponse) map[string]*osv.Advisory {
	newest := map[string]*osv.Advisory{}
	for i, given := range r.GetAdvisories() {
		skip := func(reason string) {
			id := given.GetFields()["id"].GetStringValue()
			response.Skipped = append(response.Skipped, &supplychainv1.SkippedAdvisory{Index: int32(i), Id: id, Reason: reason})
		}
		parsed, err := parseDocument(given)
		switch {
		case err != nil:
			skip(err.Error())
		case r.GetMaliciousOnly() && !parsed.Malicious:
			skip("it calls no package malicious")
		case newest[parsed.ID] != nil && !newest[parsed.ID].Modified.Before(parsed.Modified):
			skip("the batch has the same id in this state or a later one")
		default:
			newest[parsed.ID] = parsed
		}
	}
	return newest
}

func parseDocument(given *structpb.Struct) (*osv.Advisory, error) {
	raw, err := protojson.Marshal(given)
	if err != nil {
		return nil, err
	}
	return osv.Parse(raw)
}

// put writes new and newer advisories. The number of statements is small for any batch; each changed advisory takes one
// more.
func (s *MalwareFirewall) put(ctx context.Context, tx *ent.Tx, ids []string, newest map[string]*osv.Advisory, stored map[string]*ent.Advisory, response *supplychainv1.ImportAdvisoriesResponse) error {
	deploymentID, _ := tenant.FromContext(ctx)
	var creates []*ent.AdvisoryCreate
	var created []*osv.Advisory
	var changed []int64
	rowIDs := map[string]int64{}
	for _, id := range ids {
		parsed, old := newest[id], stored[id]
		modified := store.Micros(parsed.Modified)
		details, err := proto.Marshal(parsed.Details)
		if err != nil {
			return err
		}
		switch {
		case old == nil:
			creates = append(creates, assignAdvisory(tx.Advisory.Create().SetDeploymentID(deploymentID).SetOsvID(id), parsed, details))
			created = append(created, parsed)
		case old.ModifiedAt > modified, old.ModifiedAt == modified && old.Details != nil:
			response.Unchanged++
			delete(newest, id)
		default:
			response.Updated++
			changed, rowIDs[id] = append(changed, old.ID), old.ID
			if err := updateAdvisory(old.Update(), parsed, details).Exec(ctx); err != nil {
				return err
			}
			audit.Change(ctx, "advisory", id, convertAdvisory(old), shownAdvisory(parsed))
		}
	}
	if len(changed) > 0 {
		if _, err := tx.AdvisoryPackage.Delete().Where(store.OneOf(advisorypackage.FieldAdvisoryID, changed)).Exec(ctx); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(creates, store.RowsAtOnce) {
		rows, err := tx.Advisory.CreateBulk(part...).Save(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			rowIDs[row.OsvID] = row.ID
			audit.Change(ctx, "advisory", row.OsvID, nil, shownAdvisory(created[response.GetCreated()]))
			response.Created++
		}
	}
	if err := putPackages(ctx, tx, deploymentID, newest, rowIDs); err != nil || len(rowIDs) == 0 {
		return err
	}
	return s.putChanges(ctx, tx, deploymentID, slices.Sorted(maps.Values(rowIDs)))
}

// putChanges lets the stored dependencies be compared with new and changed advisories.
func (s *MalwareFirewall) putChanges(ctx context.Context, tx *ent.Tx, deploymentID int64, advisories []int64) error {
	rows := make([]*ent.AdvisoryChangeCreate, len(advisories))
	for i, id := range advisories {
		rows[i] = tx.AdvisoryChange.Create().SetDeploymentID(deploymentID).SetAdvisoryID(id)
	}
	for part := range slices.Chunk(rows, store.RowsAtOnce) {
		if err := tx.AdvisoryChange.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return s.jobs.Enqueue(ctx, matching.Compare{DeploymentID: deploymentID}, nil)
}

func assignAdvisory(create *ent.AdvisoryCreate, parsed *osv.Advisory, details []byte) *ent.AdvisoryCreate {
	create.SetDetails(details).SetTitle(parsed.Title).SetMalicious(parsed.Malicious).SetModifiedAt(store.Micros(parsed.Modified))
	if !parsed.Withdrawn.IsZero() {
		create.SetWithdrawnAt(store.Micros(parsed.Withdrawn))
	}
	return create
}

func updateAdvisory(update *ent.AdvisoryUpdateOne, parsed *osv.Advisory, details []byte) *ent.AdvisoryUpdateOne {
	update.SetDetails(details).SetTitle(parsed.Title).SetMalicious(parsed.Malicious).SetModifiedAt(store.Micros(parsed.Modified)).ClearWithdrawnAt()
	if !parsed.Withdrawn.IsZero() {
		update.SetWithdrawnAt(store.Micros(parsed.Withdrawn))
	}
	return update
}

// shownAdvisory is the audit form: without packages, because there may be hundreds.
func shownAdvisory(parsed *osv.Advisory) *supplychainv1.Advisory {
	out := &supplychainv1.Advisory{
		Id: parsed.ID, Title: parsed.Title, Malicious: parsed.Malicious, ModifiedAt: timestamppb.New(parsed.Modified),
	}
	if !parsed.Withdrawn.IsZero() {
		out.WithdrawnAt = timestamppb.New(parsed.Withdrawn)
	}
	return out
}

func putPackages(ctx context.Context, tx *ent.Tx, deploymentID int64, newest map[string]*osv.Advisory, rowIDs map[string]int64) error {
	var rows []*ent.AdvisoryPackageCreate
	for id, parsed := range newest {
		for _, p := range parsed.Packages {
			affected, err := proto.Marshal(p.Affected)
			if err != nil {
				return err
			}
			rows = append(rows, tx.AdvisoryPackage.Create().SetDeploymentID(deploymentID).SetAdvisoryID(rowIDs[id]).
				SetEcosystem(p.Ecosystem).SetPackage(p.Name).SetAffected(affected))
		}
	}
	for part := range slices.Chunk(rows, packagesAtOnce) {
		if err := tx.AdvisoryPackage.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
