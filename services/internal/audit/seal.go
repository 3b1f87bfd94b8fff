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

// The purposes of the key. They are part of what is hashed, so that no hash of one kind is good for another.
const (
	entryPurpose = "palisade audit entry 1"
	headPurpose  = "palisade audit head 1"
	// originPurpose is for what says since when there is a chain, unchainedPurpose for the entries before it.
	originPurpose    = "palisade audit origin 1"
	unchainedPurpose = "palisade audit unchained 1"
	// anchorPurpose is for what is kept outside of the database.
	anchorPurpose = "palisade audit anchor 1"
)

// digest hashes a list of values without ambiguity: numbers have 8 bytes, everything else its length before it.
type digest struct{ hash.Hash }

func (t *Trail) newDigest(purpose string) digest {
	d := digest{hmac.New(sha256.New, t.key)}
	d.bytes([]byte(purpose))
	return d
}

func (d digest) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	_, _ = d.Write(b[:]) // a hash takes everything
}

func (d digest) bytes(b []byte) {
	d.number(int64(len(b)))
	_, _ = d.Write(b)
}

// hash is the keyed hash of everything in the entry but its id, which only the database knows, and the hash itself.
func (t *Trail) hash(e *ent.AuditEntry) ([]byte, error) {
	var changes []byte
	if len(e.Changes) > 0 {
		var err error
		// Exactly the text that is stored: ent writes it the same way, and JSON that was read from there stays as it is.
		if changes, err = json.Marshal(e.Changes); err != nil {
			return nil, fmt.Errorf("changes of audit entry %d: %w", e.Sequence, err)
		}
	}
	d := t.newDigest(entryPurpose)
	for _, n := range []int64{e.DeploymentID, e.Sequence, e.ActorID, e.UserID, e.At} {
		d.number(n)
	}
	for _, text := range []string{e.ActorKind, e.ActorName, e.Method, e.Code, e.Request, e.RequestID, e.Remote} {
		d.bytes([]byte(text))
	}
	d.bytes(changes)
	d.bytes(e.PreviousHash)
	return d.Sum(nil), nil
}

// seal proves that a head was written by who has the key.
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

// genuine reports whether an entry with a place in the chain is as it was written. It says nothing about the others.
func (t *Trail) genuine(e *ent.AuditEntry) bool {
	want, err := t.hash(e)
	return err == nil && e.Sequence > 0 && hmac.Equal(want, e.Hash)
}
