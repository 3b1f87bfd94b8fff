// Package blob writes and reads the column in which a finding keeps what is neither filtered nor sorted by: an encoded
// FindingContent with its hashes packed, and with columns of the finding that lists then read together with the rest, since a
// column of its own costs a list more than its bytes do.
package blob

import (
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Encode returns a content as it is stored.
func Encode(content *storev1.FindingContent) ([]byte, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(content)
	if err != nil {
		return nil, err
	}
	return pack(make([]byte, 0, len(encoded)), encoded, 0), nil
}

// Decode reads a stored content, of this version or of one that packed nothing. Where a text is there both packed and as it is, which nobody
// writes, the packed one counts.
func Decode(stored []byte) (*storev1.FindingContent, error) {
	content := &storev1.FindingContent{}
	if err := proto.Unmarshal(stored, content); err != nil {
		return nil, err
	}
	for _, of := range []struct {
		packed *[]byte
		text   *string
	}{
		{&content.PackedSyntacticId, &content.SyntacticId},
		{&content.PackedMatchBasedId, &content.MatchBasedId},
		{&content.PackedCommit, &content.Commit},
		{&content.PackedPatternHash, &content.PatternHash},
		{&content.PackedCodeHash, &content.CodeHash},
	} {
		if *of.packed == nil {
			continue
		}
		if !valid(*of.packed) {
			return nil, errPacked
		}
		*of.text, *of.packed = string(appendUnpacked(nil, *of.packed)), nil
	}
	return content, nil
}

var errPacked = errors.New("a packed text is shorter than it says")

// texts are the numbers of the texts of FindingContent that are packed: syntactic_id, match_based_id, commit, pattern_hash, code_hash.
// The fields that hold them follow each other in this order.
var texts = [...]protowire.Number{4, 5, 9, 25, 26}

const firstPacked protowire.Number = 34 // packed_syntactic_id

// TextOf returns the number of the text that a field of FindingContent holds packed; ok is false for all other fields.
func TextOf(number protowire.Number) (text protowire.Number, ok bool) {
	if number < firstPacked || int(number-firstPacked) >= len(texts) {
		return 0, false
	}
	return texts[number-firstPacked], true
}

// pack appends an encoded FindingContent with its hashes packed and without one field.
func pack(b, content []byte, without protowire.Number) []byte {
	for len(content) > 0 {
		number, wireType, n := protowire.ConsumeTag(content)
		size := 0
		if n > 0 {
			size = protowire.ConsumeFieldValue(number, wireType, content[n:])
		}
		if n < 0 || size < 0 {
			break // not a message: readers say so
		}
		field, value := content[:n+size], content[n:n+size]
		content = content[n+size:]
		if number == without {
			continue
		}
		if i := slices.Index(texts[:], number); i >= 0 && wireType == protowire.BytesType {
			text, _ := protowire.ConsumeBytes(value)
			if digits := hexDigits(text); digits >= leastDigits {
				b = appendPacked(protowire.AppendTag(b, firstPacked+protowire.Number(i), wireType), text, digits)
				continue
			}
		}
		b = append(b, field...)
	}
	return append(b, content...)
}
