package blob

import (
	"slices"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// blockSize is how much memory a page allocates at a time, in bytes.
const blockSize = 32 << 10

// Page decodes the contents of one page of a list. Their texts share a few blocks of memory. A block is freed when none
// of its texts is in use. The zero value is ready to use.
type Page struct{ free []byte }

// Decode is like the package's Decode, but it leaves out the large fields that no list shows. content has to be empty,
// except for inner messages, which are filled. stored may be reused afterwards.
func (p *Page) Decode(stored []byte, content *storev1.FindingContent) error {
	var kept []byte
	if len(stored) < large {
		kept = append(p.allocate(len(stored))[:0], stored...)
	} else {
		kept = slices.Clip(appendShown(nil, stored))
	}
	if err := content.UnmarshalVTUnsafe(kept); err != nil {
		return err
	}
	return unpack(content, func(packed []byte) string {
		text := appendUnpacked(p.allocate(unpackedSize(packed))[:0], packed)
		return unsafe.String(unsafe.SliceData(text), len(text))
	})
}

// large is the size of contents from which it is worth looking for fields that lists do not show.
const large = 4 << 10

// hidden are the numbers of these fields: dataflow_trace, metadata, context.
var hidden = [...]protowire.Number{28, 29, 40}

// appendShown appends the fields that lists show.
func appendShown(b, stored []byte) []byte {
	for len(stored) > 0 {
		number, _, n := protowire.ConsumeField(stored)
		if n < 0 {
			break // not a message: the decoder returns the error
		}
		if !slices.Contains(hidden[:], number) {
			b = append(b, stored[:n]...)
		}
		stored = stored[n:]
	}
	return append(b, stored...)
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
