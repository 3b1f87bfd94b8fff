package triage

import (
	"context"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/triagechange"
	"github.com/palisade/palisade/services/internal/store"
)

// expiredAtOnce is the number of rows that one transaction deletes.
const expiredAtOnce = 5000

// Expire deletes the changes of all deployments that are older than the retention. They cannot be undone any more; the
// history of the findings stays.
func Expire(ctx context.Context, st *store.Store, retention time.Duration) error {
	ctx = tenant.System(ctx)
	before := store.Micros(time.Now().Add(-retention))
	for {
		expired, err := st.Reader.TriageChange.Query().Where(triagechange.AtLT(before)).Order(ent.Asc(triagechange.FieldID)).
			Limit(expiredAtOnce).Select(triagechange.FieldID, triagechange.FieldDeploymentID).All(ctx)
		if err != nil || len(expired) == 0 {
			return err
		}
		for _, change := range expired {
			if err := expire(ctx, st, change); err != nil {
				return err
			}
		}
	}
}

// expire deletes a change, its findings first. The transactions are short, so that other writers wait for milliseconds.
func expire(ctx context.Context, st *store.Store, change *ent.TriageChange) error {
	for deleted := int64(expiredAtOnce); deleted == expiredAtOnce; {
		err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			deleted, err = exec(ctx, st, tx, "DELETE FROM triage_change_findings WHERE id IN (SELECT id FROM triage_change_findings WHERE deployment_id = ",
				arg{change.DeploymentID}, " AND change_id = ", arg{change.ID}, " LIMIT ", arg{expiredAtOnce}, ")")
			if err != nil || deleted == expiredAtOnce {
				return err
			}
			return tx.TriageChange.DeleteOneID(change.ID).Exec(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
