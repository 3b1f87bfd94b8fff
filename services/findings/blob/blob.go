// Package blob encodes and decodes the column for everything in a finding that is neither filtered nor sorted by: an
// encoded FindingContent with packed hashes.
package blob

import (
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Encode returns the stored form of a content.
func Encode(content *storev1.FindingContent) ([]byte, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(content)
	if err != nil {
		return nil, err
	}
	return Pack(encoded), nil
}

// Decode reads a stored content, of this version or of one that packed nothing. No version writes a text both packed
// and unpacked; if both are present, the packed text is used.
func Decode(stored []byte) (*storev1.FindingContent, error) {
	content := &storev1.FindingContent{}
	if err := proto.Unmarshal(stored, content); err != nil {
		return nil, err
	}
	return content, unpack(content, func(packed []byte) string { return string(appendUnpacked(nil, packed)) })
}

// unpack sets the packed texts.
func unpack(content *storev1.FindingContent, text func(packed []byte) string) error {
	for _, of := range [...]struct {
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
			return errPacked
		}
		*of.text, *of.packed = text(*of.packed), nil
	}
	return nil
}

var errPacked = errors.New("a packed text is shorter than it says")

// texts are the field numbers of the packed texts of FindingContent: syntactic_id, match_based_id, commit,
// pattern_hash, code_hash. The fields for the packed form are consecutive and in this order.
var texts = [...]protowire.Number{4, 5, 9, 25, 26}

const firstPacked protowire.Number = 34 // packed_syntactic_id

// retired is the number of a field that earlier versions wrote and this version ignores.
const retired protowire.Number = 33

// Pack returns the stored form of an encoded FindingContent.
func Pack(content []byte) []byte {
	b := make([]byte, 0, len(content))
	for len(content) > 0 {
		number, wireType, n := protowire.ConsumeTag(content)
		size := 0
		if n > 0 {
			size = protowire.ConsumeFieldValue(number, wireType, content[n:])
		}
		if n < 0 || size < 0 {
			break // not a message: readers return the error
		}
		field, value := content[:n+size], content[n:n+size]
		content = content[n+size:]
		if number == retired {
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

// Lockfile returns where a dependency is declared: the lockfile and the line, 0 if the line is unknown. A finding
// without a use in the code, from a report that names no lockfile, is at the lockfile itself.
func Lockfile(content *storev1.FindingContent) (path string, line int32) {
	if content.GetLockfile() == "" && content.GetUsage() == nil {
		return content.GetLocation().GetFilePath(), content.GetLocation().GetLine()
	}
	return content.GetLockfile(), content.GetLockfileLine()
}
