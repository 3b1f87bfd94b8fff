package feed

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/secret"
)

const (
	tokenVersion = 2
	// tokenBlock is the multiple of bytes that sealed tokens have, so that their length does not tell their numbers.
	tokenBlock = 64
	// maxOpen limits the open transactions in a token. PostgreSQL has at most a few thousand connections.
	maxOpen = 10_000
)

// token is what a resume token contains. It is sealed with the key of the server: its numbers tell how much all
// deployments write, and nobody but the server can make one.
type token struct {
	deploymentID int64
	issued       time.Time // to the second
	system       uint64    // identifies the PostgreSQL cluster, which assigns the transaction numbers; 0 when unknown
	at           position
}

// tokenPurpose binds a token to its deployment.
func tokenPurpose(deploymentID int64) []byte {
	return fmt.Appendf(nil, "resume token of the change feed %d", deploymentID)
}

func (t token) seal(keys *secret.Keyring) (string, error) {
	b := []byte{tokenVersion}
	b = binary.AppendVarint(b, t.issued.Unix())
	b = binary.BigEndian.AppendUint64(b, t.system)
	b = binary.AppendVarint(b, t.at.id)
	b = appendSnapshot(b, t.at.seen)
	b = appendSnapshot(b, t.at.target)
	b = binary.AppendVarint(b, t.at.tx)
	b = binary.AppendVarint(b, t.at.txEvent)
	b = append(b, make([]byte, (tokenBlock-len(b)%tokenBlock)%tokenBlock)...)
	sealed, err := keys.Seal(b, tokenPurpose(t.deploymentID))
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// appendSnapshot writes the open transactions as differences, which are small.
func appendSnapshot(b []byte, s snapshot) []byte {
	b = binary.AppendVarint(b, s.next)
	b = binary.AppendVarint(b, int64(len(s.open)))
	last := s.next
	for _, tx := range s.open {
		b = binary.AppendVarint(b, tx-last)
		last = tx
	}
	return b
}

// openToken reads a token of the deployment. Anything else is an INVALID_CURSOR error.
func openToken(keys *secret.Keyring, text string, deploymentID int64) (token, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return token{}, apierr.InvalidResumeToken("since")
	}
	plain, err := keys.Unseal(sealed, tokenPurpose(deploymentID))
	if err != nil || len(plain) == 0 || plain[0] != tokenVersion {
		return token{}, apierr.InvalidResumeToken("since")
	}
	r := bytes.NewReader(plain[1:])
	t := token{deploymentID: deploymentID}
	var system [8]byte
	issued, err := binary.ReadVarint(r)
	t.issued = time.Unix(issued, 0)
	_, short := io.ReadFull(r, system[:])
	t.system = binary.BigEndian.Uint64(system[:])
	err = errors.Join(err, short)
	for _, read := range []func() error{
		readInt(r, &t.at.id), readSnapshot(r, &t.at.seen), readSnapshot(r, &t.at.target), readInt(r, &t.at.tx), readInt(r, &t.at.txEvent),
	} {
		if err == nil {
			err = read()
		}
	}
	if err != nil {
		return token{}, apierr.InvalidResumeToken("since")
	}
	return t, nil
}

func readInt(r *bytes.Reader, into *int64) func() error {
	return func() (err error) {
		*into, err = binary.ReadVarint(r)
		return err
	}
}

var errSnapshot = errors.New("not a snapshot")

func readSnapshot(r *bytes.Reader, into *snapshot) func() error {
	return func() error {
		next, err := binary.ReadVarint(r)
		if err != nil {
			return err
		}
		count, err := binary.ReadVarint(r)
		if err != nil || count < 0 || count > maxOpen {
			return errors.Join(err, errSnapshot)
		}
		into.next = next
		last := next
		for range count {
			difference, err := binary.ReadVarint(r)
			if err != nil {
				return err
			}
			last += difference
			into.open = append(into.open, last)
		}
		return nil
	}
}

// expired is the error for a token that the feed cannot continue from.
func expired(why string) error {
	return apierr.New(codes.OutOfRange, errorsv1.Reason_REASON_RESUME_TOKEN_EXPIRED,
		"the resume token cannot be continued: "+why+"; start without a token, and export the findings for what happened before")
}
