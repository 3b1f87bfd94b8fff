package blob

import (
	"unsafe"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// blockSize is how much memory a page asks for at a time, in bytes.
const blockSize = 32 << 10

// Page reads the contents of one page of a list. Their texts lie in a few blocks of memory, which are collected when
// none of them is used any more. The zero value is ready.
type Page struct{ free []byte }

// Decode is the package's Decode into a content that is empty but for inner messages to be filled, from bytes that the
// caller uses again.
func (p *Page) Decode(stored []byte, content *storev1.FindingContent) error {
	kept := p.room(len(stored))
	copy(kept, stored)
	if err := content.UnmarshalVTUnsafe(kept); err != nil {
		return err
	}
	return unpack(content, func(packed []byte) string {
		text := appendUnpacked(p.room(unpackedSize(packed))[:0], packed)
		return unsafe.String(unsafe.SliceData(text), len(text))
	})
}

// room returns memory that nobody else gets.
func (p *Page) room(size int) []byte {
	if size > len(p.free) {
		p.free = make([]byte, max(size, blockSize))
	}
	room := p.free[:size:size]
	p.free = p.free[size:]
	return room
}
