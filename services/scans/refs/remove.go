package refs

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
)

// removeBatch is how many findings one transaction removes.
const removeBatch = 5000

// remove removes the open findings of a ref that which selects, or all of them if it is nil, in short transactions. It
// stops if a scan of the ref began since the ref was read.
func (t *Tidier) remove(ctx context.Context, r openRef, which predicate.Finding, why ingest.Removal) error {
	total := 0
	for {
		n := 0
		err := t.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			n, err = t.removeSome(ctx, tx, r, which, why)
			return err
		})
		if err != nil {
			return err
		}
		total += n
		if n == 0 {
			break
		}
	}
	if total > 0 {
		t.log.InfoContext(ctx, "findings of a ref were removed", "project", r.project.Name, "ref", r.ref, "findings", total, "reason", why.Reason)
	}
	return nil
}

func (t *Tidier) removeSome(ctx context.Context, tx *ent.Tx, r openRef, which predicate.Finding, why ingest.Removal) (int, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	if err := lockProject(ctx, t.store, tx, r.project.ID); err != nil {
		if ent.IsNotFound(err) {
			return 0, nil // deleted concurrently, with its findings
		}
		return 0, err
	}
	again, err := tx.Scan.Query().Where(scan.ProjectID(r.project.ID), scan.Ref(r.ref), scan.IDGT(r.lastScan)).Exist(ctx)
	if err != nil || again {
		return 0, err
	}
	query := tx.Finding.Query().Where(finding.ProjectID(r.project.ID), finding.Ref(r.ref), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted))
	if which != nil {
		query.Where(which)
	}
	ids, err := query.Order(ent.Asc(finding.FieldID)).Limit(removeBatch).IDs(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if which == nil { // nothing stays open there
		if err := supersedeHolds(ctx, tx, r, why.ActorKind); err != nil {
			return 0, err
		}
	}
	return ingest.Remove(ctx, t.store, tx, deploymentID, ids, why)
}

// supersedeHolds ends the closes that are held on a ref.
func supersedeHolds(ctx context.Context, tx *ent.Tx, r openRef, actorKind string) error {
	return tx.HeldClose.Update().Where(heldclose.ProjectID(r.project.ID), heldclose.Ref(r.ref), heldclose.Active(true), heldclose.State(ingest.HoldPending)).
		SetState(ingest.HoldSuperseded).SetActive(false).SetActorKind(actorKind).SetDecidedAt(store.Now()).Exec(ctx)
}

// lockProject locks the row on PostgreSQL until the end of the transaction. SQLite has only one writer.
func lockProject(ctx context.Context, st *store.Store, tx *ent.Tx, id int64) error {
	query := tx.Project.Query().Where(project.ID(id))
	if st.Postgres() {
		query.ForUpdate()
	}
	_, err := query.OnlyID(ctx)
	return err
}
