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

// maxAnchorLine bounds a line of a file of anchors, in bytes.
const maxAnchorLine = 64 << 10

// Anchor is an entry that is known from elsewhere: the end of a chain at an earlier time.
type Anchor struct {
	Sequence int64
	Hash     []byte
}

// ExportedAnchor is the end of a chain in the form that is kept outside of the database.
type ExportedAnchor struct {
	Deployment   string    `json:"deployment"` // slug, for people
	DeploymentID int64     `json:"deployment_id"`
	Sequence     int64     `json:"sequence"` // 0: no entries yet
	Hash         string    `json:"hash"`     // hexadecimal; empty without entries
	At           time.Time `json:"at"`
	MAC          string    `json:"mac"` // hexadecimal; of everything but the slug
}

// Line is the anchor as a line of NDJSON.
func (a ExportedAnchor) Line() []byte {
	text, err := json.Marshal(a)
	if err != nil {
		panic("audit: anchor: " + err.Error()) // texts and numbers only; the year of a clock has four digits
	}
	return append(text, '\n')
}

// Known is what a verification compares with.
func (a ExportedAnchor) Known() (Anchor, error) {
	hash, err := hex.DecodeString(a.Hash)
	if err != nil || a.Sequence < 0 || a.Sequence > 0 && len(hash) != 32 || a.DeploymentID <= 0 {
		return Anchor{}, errors.New("is no anchor: want deployment_id, sequence, and a hash of 64 hexadecimal digits")
	}
	return Anchor{Sequence: a.Sequence, Hash: hash}, nil
}

// ErrHead says that the end of a chain cannot be exported: it is not as the server wrote it.
var ErrHead = errors.New("the head of the audit trail was edited or removed outside of Palisade: run palisade audit verify")

// Anchor returns the present end of the chain of a deployment. The whole chain is not walked: see Verify.
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

// Genuine reports whether an anchor was made with the key of this trail.
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

// Holds reports whether an entry that is known is still there. It looks at that entry only.
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

// ParseAnchors reads exported anchors, one a line. What stands before the object, as syslog daemons write it, is left
// out; so are empty lines.
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
