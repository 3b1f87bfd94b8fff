package blob

import (
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protowire"
)

// A text that begins with hexadecimal digits is packed as the number of their bytes (one byte), the bytes, and the rest
// of the text. A text with fewer digits than leastDigits is not packed.
const (
	leastDigits = 16
	mostDigits  = 2 * 255
)

// hexDigits returns the number of lower-case hexadecimal digits at the beginning of a text. It is even, and at most
// mostDigits.
func hexDigits(text []byte) (n int) {
	for n < min(len(text), mostDigits) && (text[n] >= '0' && text[n] <= '9' || text[n] >= 'a' && text[n] <= 'f') {
		n++
	}
	return n &^ 1
}

// appendPacked appends the value of a packed field, preceded by its length.
func appendPacked(b, text []byte, digits int) []byte {
	b = protowire.AppendVarint(b, uint64(1+digits/2+len(text)-digits))
	b = append(b, byte(digits/2))
	start := len(b)
	b = append(b, text[:digits/2]...) // makes room
	_, _ = hex.Decode(b[start:], text[:digits])
	return append(b, text[digits:]...)
}

func valid(packed []byte) bool { return len(packed) > 0 && len(packed) > int(packed[0]) }

// unpackedSize is the length of the text in a valid packed field.
func unpackedSize(packed []byte) int { return len(packed) - 1 + int(packed[0]) }

func appendUnpacked(b, packed []byte) []byte {
	end := 1 + int(packed[0])
	return append(hex.AppendEncode(b, packed[1:end]), packed[end:]...)
}
