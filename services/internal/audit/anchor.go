package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// maxAnchorLine limits a line of an anchor file, in bytes.
const maxAnchorLine = 64 << 10

// Anchor is a known entry: the end of a chain at an earlier time, stored elsewhere.
type Anchor struct {
	Sequence int64
	Hash     []byte
}

// ExportedAnchor is the end of a chain in the format for storage outside the database.
type ExportedAnchor struct {
	Deployment   string    `json:"deployment"` // slug, for people
	DeploymentID int64     `json:"deployment_id"`
	Sequence     int64     `json:"sequence"` // 0: no entries yet
	Hash         string    `json:"hash"`     // in hexadecimal; empty without entries
	At           time.Time `json:"at"`
	MAC          string    `json:"mac"` // in hexadecimal; covers everything except the slug
}

// Line returns the anchor as a line of NDJSON.
func (a ExportedAnchor) Line() []byte {
	text, err := json.Marshal(a)
	if err != nil {
		panic("audit: anchor: " + err.Error()) // it has only texts and numbers, and a clock's year has four digits
	}
	return append(text, '\n')
}

// Known returns the anchor for Verify.
func (a ExportedAnchor) Known() (Anchor, error) {
	hash, err := hex.DecodeString(a.Hash)
	if err != nil || a.Sequence < 0 || a.Sequence > 0 && len(hash) != 32 || a.DeploymentID <= 0 {
		return Anchor{}, errors.New("is not an anchor: want deployment_id, sequence, and a hash of 64 hexadecimal digits")
	}
	return Anchor{Sequence: a.Sequence, Hash: hash}, nil
}

// ErrHead means that a chain's end cannot be exported, because its head is not as the server wrote it.
var ErrHead = errors.New("the head of the audit trail was edited or removed outside of Palisade: run palisade audit verify")

// Anchor returns the current end of a deployment's chain. It does not verify the chain; see Verify.
func (t *Trail) Anchor(ctx context.Context, deploymentID int64, slug string) (ExportedAnchor, error) {
	head, err := t.store.Reader.AuditHead.Query().Only(tenant.NewContext(ctx, deploymentID))
	if ent.IsNotFound(err) {
		return ExportedAnchor{}, ErrHead
	}
	if err != nil {
		return ExportedAnchor{}, err
	}
	if o, err := t.originOf(head); !t.sealed(head) || err != nil || t.marked && o == nil {
		return ExportedAnchor{}, ErrHead
	}
	out := ExportedAnchor{
		Deployment: slug, DeploymentID: deploymentID, Sequence: head.Sequence, Hash: hex.EncodeToString(head.Hash), At: store.Time(store.Now()),
	}
	out.MAC = hex.EncodeToString(t.anchorMAC(out))
	return out, nil
}

// Genuine reports whether an anchor was signed with this trail's key.
func (t *Trail) Genuine(a ExportedAnchor) bool {
	mac, err := hex.DecodeString(a.MAC)
	return err == nil && hmac.Equal(mac, t.anchorMAC(a))
}

func (t *Trail) anchorMAC(a ExportedAnchor) []byte {
	d := t.newDigest(anchorPurpose)
	d.number(a.DeploymentID)
	d.number(a.Sequence)
	d.bytes([]byte(a.Hash))
	d.number(a.At.UnixMicro())
	return d.Sum(nil)
}

// Holds reports whether the anchor's entry still exists. It checks only that entry.
func (t *Trail) Holds(ctx context.Context, deploymentID int64, known Anchor) (bool, error) {
	if known.Sequence == 0 {
		return true, nil
	}
	row, err := t.store.Reader.AuditEntry.Query().Where(chained, auditentry.Sequence(known.Sequence)).Select(auditentry.FieldHash).
		Only(tenant.NewContext(ctx, deploymentID))
	if ent.IsNotFound(err) {
		return false, nil
	}
	return err == nil && bytes.Equal(row.Hash, known.Hash), err
}

// ParseAnchors reads exported anchors, one per line. It ignores empty lines, and text before the object, which
// syslog daemons add.
func ParseAnchors(r io.Reader, each func(line int, a ExportedAnchor) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAnchorLine)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		if at := bytes.IndexByte(text, '{'); at > 0 {
			text = text[at:]
		}
		var a ExportedAnchor
		err := json.Unmarshal(text, &a)
		if err == nil {
			_, err = a.Known()
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := each(n, a); err != nil {
			return err
		}
	}
	return lines.Err()
}
