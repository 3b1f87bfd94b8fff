// Package page encodes the cursors of keyset lists. They are opaque, and bound to the list and the filter that they
// were issued for.
package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/internal/apierr"
)

// Key is the position in a list that is ordered by a number (mostly a time in microseconds) and by id.
type Key struct{ Order, ID int64 }

const (
	version     = 1
	wordVersion = 2 // a word follows the key
	digestSize  = 8
	cursorSize  = 1 + digestSize + 16
)

// Digest identifies a list: its name and the filter, which is the request with its cursor and page size cleared.
type Digest [digestSize]byte

// DigestOf computes the digest of a list.
func DigestOf(list string, filter proto.Message) (Digest, error) {
	canonical, err := proto.MarshalOptions{Deterministic: true}.Marshal(filter)
	if err != nil {
		return Digest{}, err
	}
	sum := sha256.Sum256(append([]byte(list+"\x00"), canonical...))
	return Digest(sum[:digestSize]), nil
}

// Encode returns the cursor of the page after key.
func Encode(list Digest, key Key) string { return encode(version, list, key, "") }

// EncodeWord returns the cursor of the page after a key in a list that is ordered by a word first.
func EncodeWord(list Digest, word string, key Key) string {
	return encode(wordVersion, list, key, word)
}

func encode(version byte, list Digest, key Key, word string) string {
	b := make([]byte, 0, cursorSize+len(word))
	b = append(b, version)
	b = append(b, list[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(key.Order))
	b = binary.BigEndian.AppendUint64(b, uint64(key.ID))
	return base64.RawURLEncoding.EncodeToString(append(b, word...))
}

// Decode reads a cursor. ok is false for "", the first page. Anything except a cursor that Encode returned for the same
// list is an INVALID_CURSOR error.
func Decode(list Digest, cursor string) (key Key, ok bool, err error) {
	word, key, ok, err := decode(version, list, cursor)
	if word != "" {
		return Key{}, false, apierr.InvalidCursor("cursor")
	}
	return key, ok, err
}

// DecodeWord reads a cursor of EncodeWord, like Decode.
func DecodeWord(list Digest, cursor string) (word string, key Key, ok bool, err error) {
	return decode(wordVersion, list, cursor)
}

func decode(version byte, list Digest, cursor string) (word string, key Key, ok bool, err error) {
	if cursor == "" {
		return "", Key{}, false, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < cursorSize || b[0] != version || !bytes.Equal(b[1:1+digestSize], list[:]) {
		return "", Key{}, false, apierr.InvalidCursor("cursor")
	}
	return string(b[cursorSize:]), Key{
		Order: int64(binary.BigEndian.Uint64(b[1+digestSize:])),
		ID:    int64(binary.BigEndian.Uint64(b[9+digestSize:])),
	}, true, nil
}
