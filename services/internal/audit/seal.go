package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"

	"github.com/palisade/palisade/ent"
)

// The purposes of the key. Each is part of the hashed data, so that a hash for one purpose is invalid for others.
const (
	entryPurpose = "palisade audit entry 1"
	headPurpose  = "palisade audit head 1"
	// originPurpose is for origins, unchainedPurpose for the entries from before the chain.
	originPurpose    = "palisade audit origin 1"
	unchainedPurpose = "palisade audit unchained 1"
	// idsPurpose is for the ids of entries and heads; see idSeal.
	idsPurpose = "palisade audit ids 1"
	// journalPurpose is for pending entries in a file.
	journalPurpose = "palisade audit journal 1"
	// anchorPurpose is for anchors outside the database.
	anchorPurpose = "palisade audit anchor 1"
)

// digest hashes a list of values unambiguously: numbers have 8 bytes, and other values follow their length.
type digest struct{ hash.Hash }

func (t *Trail) newDigest(purpose string) digest {
	d := digest{hmac.New(sha256.New, t.key)}
	d.bytes([]byte(purpose))
	return d
}

func (d digest) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	_, _ = d.Write(b[:]) // a hash never fails
}

func (d digest) bytes(b []byte) {
	d.number(int64(len(b)))
	_, _ = d.Write(b)
}

// hash returns the keyed hash of all fields except the id, which idSeal covers, and the hash itself.
func (t *Trail) hash(e *ent.AuditEntry) ([]byte, error) {
	var changes []byte
	if len(e.Changes) > 0 {
		var err error
		if changes, err = json.Marshal(e.Changes); err != nil { // ent marshals the stored text the same way
			return nil, fmt.Errorf("changes of audit entry %d: %w", e.Sequence, err)
		}
	}
	return t.hashStored(e, changes), nil
}

// hashStored is hash for an entry whose changes are the text in the database. Text that means the same, for example
// with other spaces or an unknown key, has another hash.
func (t *Trail) hashStored(e *ent.AuditEntry, changes []byte) []byte {
	d := t.newDigest(entryPurpose)
	for _, n := range []int64{e.DeploymentID, e.Sequence, e.ActorID, e.UserID, e.At} {
		d.number(n)
	}
	for _, text := range []string{e.ActorKind, e.ActorName, e.Method, e.Code, e.Request, e.RequestID, e.Remote} {
		d.bytes([]byte(text))
	}
	d.bytes(changes)
	d.bytes(e.PreviousHash)
	return d.Sum(nil)
}

// seal returns the MAC of a head.
func (t *Trail) seal(deploymentID, sequence int64, hash []byte) []byte {
	d := t.newDigest(headPurpose)
	d.number(deploymentID)
	d.number(sequence)
	d.bytes(hash)
	return d.Sum(nil)
}

func (t *Trail) sealed(head *ent.AuditHead) bool {
	return len(head.Seal) > 0 && hmac.Equal(head.Seal, t.seal(head.DeploymentID, head.Sequence, head.Hash))
}

// genuine reports whether an entry of the chain is unchanged. It does not check other entries.
func (t *Trail) genuine(e *ent.AuditEntry) bool {
	want, err := t.hash(e)
	return err == nil && e.Sequence > 0 && hmac.Equal(want, e.Hash)
}
