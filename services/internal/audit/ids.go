package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/audithead"
	"github.com/palisade/palisade/ent/tenant"
)

// idSeal covers the ids of a chain's entries, which only the database knows before an entry is stored. The hash of an
// entry and the seal of a head cannot: servers of the previous version check these, too. It grows with each entry: its
// MAC is over the MAC before it.
type idSeal struct {
	covers int64 // number of the last entry that it covers; 0 for none
	mac    []byte
}

// readIDSeal reads the column. ok is false for anything that no server wrote.
func readIDSeal(column []byte) (s idSeal, ok bool) {
	if len(column) == 0 {
		return s, true
	}
	if len(column) != 8+sha256.Size {
		return s, false
	}
	return idSeal{covers: int64(binary.BigEndian.Uint64(column)), mac: column[8:]}, true
}

func (s idSeal) column() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(s.covers)), s.mac...)
}

// coverID returns the seal that covers one more entry.
func (t *Trail) coverID(s idSeal, deploymentID, headID, sequence, id int64) idSeal {
	d := t.newDigest(idsPurpose)
	for _, n := range []int64{deploymentID, headID, sequence, id} {
		d.number(n)
	}
	d.bytes(s.mac)
	return idSeal{covers: sequence, mac: d.Sum(nil)}
}

// idsUntil returns the seal of the ids up to the head. It covers entries that servers of the previous version have
// written. ok is false when the seal was removed or edited: it then stays as it is, and Verify reports it.
func (t *Trail) idsUntil(ctx context.Context, tx *ent.Tx, head *ent.AuditHead) (s idSeal, ok bool, err error) {
	if s, ok = readIDSeal(head.Ids); !ok || s.covers >= head.Sequence {
		return s, ok, nil
	}
	if len(head.Ids) == 0 {
		if o, err := t.originOf(head); err != nil || o != nil && o.IDs {
			return s, false, nil //nolint:nilerr // Verify reports an edited origin
		}
	}
	for s.covers < head.Sequence {
		rows, err := tx.AuditEntry.Query().Where(chained, auditentry.SequenceGT(s.covers), auditentry.SequenceLTE(head.Sequence)).
			Order(ent.Asc(auditentry.FieldSequence)).Limit(verifyPage).Select(auditentry.FieldID, auditentry.FieldSequence).All(ctx)
		if err != nil {
			return s, false, err
		}
		if len(rows) == 0 {
			return s, true, nil // the end was cut off, which the head shows
		}
		for _, row := range rows {
			s = t.coverID(s, head.DeploymentID, head.ID, row.Sequence, row.ID)
		}
	}
	return s, true, nil
}

// sealIDs covers the ids of the entries that servers of the previous version have written, and notes in the origin of
// each chain that it has such a seal. From then on, Verify reports a missing one.
func (t *Trail) sealIDs(ctx context.Context) error {
	heads, err := t.store.Reader.AuditHead.Query().All(tenant.System(ctx))
	if err != nil {
		return err
	}
	for _, head := range heads {
		s, ok := readIDSeal(head.Ids)
		o, err := t.originOf(head)
		if !ok || err != nil || o == nil || o.IDs && (len(head.Ids) == 0 || s.covers >= head.Sequence) {
			continue // complete, or something that Verify reports
		}
		err = t.store.Write(tenant.NewContext(ctx, head.DeploymentID), t.sealIDsOf)
		if err != nil {
			return err
		}
	}
	return nil
}

// sealIDsOf is sealIDs for the chain of the context's deployment.
func (t *Trail) sealIDsOf(ctx context.Context, tx *ent.Tx) error {
	head, err := t.lockHead(ctx, tx)
	if err != nil {
		return err
	}
	o, err := t.originOf(head)
	if err != nil || o == nil {
		return nil //nolint:nilerr // Verify reports it
	}
	s, ok, err := t.idsUntil(ctx, tx, head)
	if err != nil || !ok {
		return err
	}
	o.IDs = true
	origin, err := t.sealOrigin(head.DeploymentID, *o)
	if err != nil {
		return err
	}
	update := tx.AuditHead.Update().Where(audithead.ID(head.ID)).SetOrigin(origin)
	if s.covers > 0 {
		update.SetIds(s.column())
	}
	return update.Exec(ctx)
}

// idCheck compares the ids of a chain with the seal of its head while Verify walks through the chain.
type idCheck struct {
	trail *Trail
	head  *ent.AuditHead
	own   idSeal // of the entries so far
	found []byte // the MAC of own where the seal of the head ends; nil if the walk has not met that entry
}

// of begins with a head, or goes on with a newer one.
func (c *idCheck) of(head *ent.AuditHead) {
	c.head, c.found = head, nil
	c.note()
}

// add covers one more entry.
func (c *idCheck) add(e *ent.AuditEntry) {
	if c.head != nil {
		c.own = c.trail.coverID(c.own, e.DeploymentID, c.head.ID, e.Sequence, e.ID)
		c.note()
	}
}

func (c *idCheck) note() {
	if c.head == nil {
		return
	}
	if s, ok := readIDSeal(c.head.Ids); ok && s.covers == c.own.covers {
		c.found = c.own.mac
	}
}

// problem describes what is wrong with the ids of a chain that is otherwise intact up to last; empty for nothing.
// unsealed is the number of entries at the end that the seal does not cover yet.
func (c *idCheck) problem(last int64) (text string, unsealed int64) {
	if c.head == nil {
		return "", 0
	}
	s, ok := readIDSeal(c.head.Ids)
	o, err := c.trail.originOf(c.head)
	switch {
	case !ok:
		return "the seal of the entries' ids was edited", 0
	case len(c.head.Ids) == 0 && (err != nil || o == nil || !o.IDs || c.head.Sequence == 0):
		return "", 0 // of the version before there were such seals, or there is no entry yet
	case len(c.head.Ids) == 0:
		return "the seal of the entries' ids was removed", 0
	case s.covers > last:
		return "the seal of the entries' ids was edited: it covers entries that are missing", 0
	case c.found == nil:
		return "", last - s.covers // entries were appended during the check
	case !bytes.Equal(c.found, s.mac):
		return "the id of an entry or of the head was edited, or the seal of the ids", 0
	default:
		return "", last - s.covers
	}
}
