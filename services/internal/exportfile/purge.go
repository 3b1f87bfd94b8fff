package exportfile

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/export"
	"github.com/palisade/palisade/ent/exportchunk"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// chunksAtOnce is how many chunks one transaction deletes: other writes wait for it.
	chunksAtOnce = 100
	// exportsAtOnce is how many expired exports one query reads.
	exportsAtOnce = 100
)

// Purge deletes the expired exports of all deployments.
func Purge(ctx context.Context, st *store.Store) error {
	for {
		expired, err := st.Reader.Export.Query().Where(export.ExpiresAtLT(store.Now())).Order(ent.Asc(export.FieldExpiresAt)).
			Limit(exportsAtOnce).Select(export.FieldID, export.FieldDeploymentID).All(tenant.System(ctx))
		if err != nil {
			return fmt.Errorf("read expired exports: %w", err)
		}
		for _, row := range expired {
			inside := tenant.NewContext(ctx, row.DeploymentID)
			if err := deleteChunks(inside, st, row.ID); err != nil {
				return err
			}
			err := st.Write(inside, func(ctx context.Context, tx *ent.Tx) error {
				_, err := tx.Export.Delete().Where(export.ID(row.ID)).Exec(ctx)
				return err
			})
			if err != nil {
				return fmt.Errorf("delete export %d: %w", row.ID, err)
			}
		}
		if len(expired) < exportsAtOnce {
			return nil
		}
	}
}

// deleteChunks deletes chunks of an export, a few at a time.
func deleteChunks(ctx context.Context, st *store.Store, exportID int64, which ...predicate.ExportChunk) error {
	for {
		var n int
		err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			ids, err := tx.ExportChunk.Query().Where(exportchunk.ExportID(exportID)).Where(which...).Limit(chunksAtOnce).IDs(ctx)
			if n = len(ids); err != nil || n == 0 {
				return err
			}
			_, err = tx.ExportChunk.Delete().Where(exportchunk.ExportID(exportID), store.WithIDs[predicate.ExportChunk](ids)).Exec(tenant.ByKey(ctx))
			return err
		})
		if err != nil {
			return fmt.Errorf("delete chunks of export %d: %w", exportID, err)
		}
		if n < chunksAtOnce {
			return nil
		}
	}
}
