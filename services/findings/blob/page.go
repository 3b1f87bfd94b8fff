package blob

import (
	"unsafe"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// blockSize is how much memory a page allocates at a time, in bytes.
const blockSize = 32 << 10

// Page decodes the contents of one page of a list. Their texts share a few blocks of memory. A block is freed when none
// of its texts is in use. The zero value is ready to use.
type Page struct{ free []byte }

// Decode is like the package's Decode. content has to be empty, except for inner messages, which are filled. stored may
// be reused afterwards.
func (p *Page) Decode(stored []byte, content *storev1.FindingContent) error {
	kept := p.allocate(len(stored))
	copy(kept, stored)
	if err := content.UnmarshalVTUnsafe(kept); err != nil {
		return err
	}
	return unpack(content, func(packed []byte) string {
		text := appendUnpacked(p.allocate(unpackedSize(packed))[:0], packed)
		return unsafe.String(unsafe.SliceData(text), len(text))
	})
}

// allocate returns memory from the current block.
func (p *Page) allocate(size int) []byte {
	if size > len(p.free) {
		p.free = make([]byte, max(size, blockSize))
	}
	allocated := p.free[:size:size]
	p.free = p.free[size:]
	return allocated
}
