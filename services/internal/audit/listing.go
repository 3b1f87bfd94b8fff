package audit

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
)

// Listed returns the entries that the server wrote, and the number of others, which were edited, moved or added in
// the database. It does not detect missing or reordered entries; see Verify.
func (t *Trail) Listed(ctx context.Context, deploymentID int64, rows []*ent.AuditEntry) (kept []*ent.AuditEntry, withheld int, err error) {
	var before *Origin
	asked := false
	for _, row := range rows {
		good := t.genuine(row)
		if row.Sequence <= 0 {
			if !asked {
				asked = true
				if before, err = t.readOrigin(tenant.NewContext(ctx, deploymentID)); err != nil {
					return nil, 0, err
				}
			}
			good = before != nil && before.Unchained > 0 && row.ID <= before.UnchainedLast && len(row.Hash) == 0
		}
		if !good || row.DeploymentID != deploymentID {
			withheld++
			continue
		}
		kept = append(kept, row)
	}
	return kept, withheld, nil
}

// readOrigin returns the origin, or nil if it is missing or was not written by a server. A store without origins
// has not been opened by a server of this version; all entries outside its chains are shown, as before.
func (t *Trail) readOrigin(ctx context.Context) (*Origin, error) {
	if !t.marked {
		return &Origin{Unchained: 1, UnchainedLast: 1<<63 - 1}, nil
	}
	head, err := t.store.Reader.AuditHead.Query().Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := t.originOf(head)
	if err != nil {
		return nil, nil //nolint:nilerr // an edited origin vouches for nothing
	}
	return o, nil
}
