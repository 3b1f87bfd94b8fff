package audit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/audithead"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/hook"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// How a chain was created.
const (
	// OriginCreated is a chain as old as its deployment. No entry was ever written outside it.
	OriginCreated = "created"
	// OriginAdopted is the chain of a deployment that existed before origins, or that an operator accepted later.
	OriginAdopted = "adopted"
)

// Origin records since when a deployment has a chain. It is stored with the head and protected by a MAC.
type Origin struct {
	// Since is when the origin was written, in microseconds since 1970.
	Since int64  `json:"since"`
	How   string `json:"how"`
	// Unchained is the number of entries that existed outside the chain, UnchainedLast the highest id of them, and
	// UnchainedHash their keyed hash. They are empty for OriginCreated.
	Unchained     int64  `json:"unchained,omitempty"`
	UnchainedLast int64  `json:"unchained_last,omitempty"`
	UnchainedHash []byte `json:"unchained_hash,omitempty"`
	// IDs is true if the head has a seal of the entries' ids, as soon as there is an entry.
	IDs bool `json:"ids,omitempty"`
}

// errOrigin means that the origin was not written with the key.
var errOrigin = errors.New("the origin was edited")

func (t *Trail) sealOrigin(deploymentID int64, o Origin) ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return append(t.originMAC(deploymentID, text), text...), nil
}

func (t *Trail) originMAC(deploymentID int64, text []byte) []byte {
	d := t.newDigest(originPurpose)
	d.number(deploymentID)
	d.bytes(text)
	return d.Sum(nil)
}

// originOf returns the origin of a head, or nil.
func (t *Trail) originOf(head *ent.AuditHead) (*Origin, error) {
	if head == nil || len(head.Origin) == 0 {
		return nil, nil
	}
	if len(head.Origin) < sha256.Size {
		return nil, errOrigin
	}
	mac, text := head.Origin[:sha256.Size], head.Origin[sha256.Size:]
	if !hmac.Equal(mac, t.originMAC(head.DeploymentID, text)) {
		return nil, errOrigin
	}
	out := &Origin{}
	return out, json.Unmarshal(text, out)
}

// onDeployment is a hook that creates the chain of each new deployment in the same transaction. A deployment
// without a chain was not created by a server, or has lost its chain.
func (t *Trail) onDeployment(next ent.Mutator) ent.Mutator {
	return hook.DeploymentFunc(func(ctx context.Context, m *ent.DeploymentMutation) (ent.Value, error) {
		made, err := next.Mutate(ctx, m)
		if err != nil || !m.Op().Is(ent.OpCreate) {
			return made, err
		}
		row, ok := made.(*ent.Deployment)
		if !ok {
			return nil, fmt.Errorf("audit trail of a new deployment: got %T", made)
		}
		tx, err := m.Tx()
		if err != nil {
			return nil, fmt.Errorf("audit trail of a new deployment: %w", err)
		}
		if err := t.begin(tenant.NewContext(ctx, row.ID), tx, row.ID, Origin{Since: store.Now(), How: OriginCreated}); err != nil {
			return nil, fmt.Errorf("audit trail of a new deployment: %w", err)
		}
		return made, nil
	})
}

// begin stores the head of an empty chain. The head is sealed, so that it can be reset only with a copy of it. An
// existing head was not created by a server. It stays, and Verify reports it.
func (t *Trail) begin(ctx context.Context, tx *ent.Tx, deploymentID int64, o Origin) error {
	o.IDs = true
	sealed, err := t.sealOrigin(deploymentID, o)
	if err != nil {
		return err
	}
	return tx.AuditHead.Create().SetDeploymentID(deploymentID).SetSeal(t.seal(deploymentID, 0, nil)).SetOrigin(sealed).
		OnConflictColumns(audithead.FieldDeploymentID).Ignore().Exec(ctx)
}

// adopt gives an origin to every deployment without one, and returns their ids. A deployment with a broken chain gets
// none, so that Verify keeps reporting it.
func (t *Trail) adopt(ctx context.Context, tx *ent.Tx) (adopted []int64, err error) {
	all, err := tx.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range all {
		done, err := t.adoptOne(tenant.NewContext(ctx, id), tx, id)
		if err != nil {
			return nil, fmt.Errorf("audit trail of deployment %d: %w", id, err)
		}
		if done {
			adopted = append(adopted, id)
		}
	}
	return adopted, nil
}

func (t *Trail) adoptOne(ctx context.Context, tx *ent.Tx, id int64) (bool, error) {
	head, err := tx.AuditHead.Query().Only(ctx)
	absent := ent.IsNotFound(err)
	if err != nil && !absent {
		return false, err
	}
	if !absent && (len(head.Origin) > 0 || !t.sealed(head)) {
		return false, nil
	}
	if absent {
		if cut, err := tx.AuditEntry.Query().Where(chained).Exist(ctx); err != nil || cut {
			return false, err
		}
	}
	o := Origin{Since: store.Now(), How: OriginAdopted}
	if err := t.countUnchained(ctx, tx.AuditEntry, &o); err != nil {
		return false, err
	}
	if absent {
		return true, t.begin(ctx, tx, id, o)
	}
	sealed, err := t.sealOrigin(id, o)
	if err != nil {
		return false, err
	}
	return true, tx.AuditHead.Update().Where(audithead.ID(head.ID)).SetOrigin(sealed).Exec(ctx)
}

// unchained selects the entries from before the chain. They have no hash.
func unchained(s *entsql.Selector) {
	s.Where(entsql.P(func(b *entsql.Builder) {
		b.Ident(s.C(auditentry.FieldSequence)).WriteString(" <= 0 AND ").Ident(s.C(auditentry.FieldHash)).WriteString(" IS NULL")
	}))
}

// countUnchained sets the origin's fields about entries from before the chain.
func (t *Trail) countUnchained(ctx context.Context, from *ent.AuditEntryClient, o *Origin) error {
	d := t.newDigest(unchainedPurpose)
	for {
		rows, err := storedEntries(ctx, from.Query().Where(unchained, auditentry.IDGT(o.UnchainedLast)).Order(ent.Asc(auditentry.FieldID)).Limit(verifyPage))
		if err != nil {
			return err
		}
		for _, r := range rows {
			for _, n := range []int64{r.ID, r.Sequence, r.ActorID, r.UserID, r.At} {
				d.number(n)
			}
			for _, text := range []string{r.ActorKind, r.ActorName, r.Method, r.Code, r.Request, r.RequestID, r.Remote} {
				d.bytes([]byte(text))
			}
			d.bytes(r.Changes)
			o.Unchained, o.UnchainedLast = o.Unchained+1, r.ID
		}
		if len(rows) < verifyPage {
			break
		}
	}
	if o.Unchained > 0 {
		o.UnchainedHash = d.Sum(nil)
	}
	return nil
}
