package ingest

import (
	"encoding/binary"

	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/spool"
)

// trace is what matching needs of a result.
type trace struct {
	identity.Evidence
	contentHash int64
	product     byte // index of products
	muted       bool
	ignored     bool // by a policy
	hasPath     bool
}

// products are the products of results; a trace has the index. Other products have the last index.
var products = [...]string{vocabulary.SAST, vocabulary.SCA, vocabulary.Secrets, vocabulary.AISAST, ""}

func productNumber(product string) byte {
	for n, known := range products {
		if known == product {
			return byte(n)
		}
	}
	return byte(len(products) - 1)
}

const (
	traceSize = traceHashes*8 + 5*4 + 2
	// traceHashes is the number of 64-bit words of a trace.
	traceHashes = 15
	// tracesInPart is the number of traces in a part.
	tracesInPart = partSize / traceSize
	// maxTraces is how many bytes of traces stay in memory: about 75,000 results.
	maxTraces = 8 << 20
)

// traces has the traces of a group's results, in their order.
type traces struct {
	spill *spill
	size  int

	buffer []byte // for parts that are in the file
	loaded []byte
	part   int // the loaded part
}

func newTraces(space spool.Space) *traces {
	return &traces{spill: newSpill(space, maxTraces), part: -1}
}

func (l *traces) add(t trace) {
	l.spill.open = t.append(l.spill.open)
	if l.size++; l.size%tracesInPart == 0 {
		l.spill.seal()
	}
}

// done seals the last part, after all traces have been added.
func (l *traces) done() { l.spill.seal() }

// at returns trace n. It loads a whole part, so that reading the following traces is cheap.
func (l *traces) at(n int) (t trace) {
	if part := n / tracesInPart; part != l.part {
		l.part, l.loaded = part, l.spill.part(part, &l.buffer)
	}
	t.decode(l.loaded[n%tracesInPart*traceSize:])
	return t
}

// find returns trace n without loading its part, for random access.
func (l *traces) find(n int) (t trace) {
	if n/tracesInPart == l.part {
		return l.at(n)
	}
	var encoded [traceSize]byte
	l.spill.at(n/tracesInPart, n%tracesInPart*traceSize, encoded[:])
	t.decode(encoded[:])
	return t
}

func (l *traces) close() {
	l.spill.close()
	l.loaded, l.buffer, l.part = nil, nil, -1
}

func (t *trace) append(b []byte) []byte {
	for _, hash := range [...]uint64{
		t.Rule, t.Path, t.MatchBased, t.ToolFingerprint, t.Pattern, t.Code, t.Snippet, t.Shape, t.Message, uint64(t.contentHash),
		t.Logical, t.Prints[0], t.Prints[1], t.Prints[2], t.Prints[3],
	} {
		b = binary.LittleEndian.AppendUint64(b, hash)
	}
	for _, word := range [...]uint32{uint32(t.Line), uint32(t.Column), t.Base, t.Parent, t.Dir} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	flags := byte(0)
	for n, set := range [...]bool{t.Specific, t.muted, t.hasPath, t.Resource, t.ignored} {
		if set {
			flags |= 1 << n
		}
	}
	return append(b, t.product, flags)
}

func (t *trace) decode(b []byte) {
	_ = b[traceSize-1]
	long := func(n int) uint64 { return binary.LittleEndian.Uint64(b[8*n:]) }
	word := func(n int) uint32 { return binary.LittleEndian.Uint32(b[traceHashes*8+4*n:]) }
	flags := b[traceSize-1]
	*t = trace{
		Evidence: identity.Evidence{
			Rule: long(0), Path: long(1), MatchBased: long(2), ToolFingerprint: long(3), Pattern: long(4), Code: long(5),
			Snippet: long(6), Shape: long(7), Message: long(8), Logical: long(10), Resource: flags&8 != 0, Line: int32(word(0)), Column: int32(word(1)),
			Base: word(2), Parent: word(3), Dir: word(4), Specific: flags&1 != 0,
			Prints: [...]uint64{long(11), long(12), long(13), long(14)},
		},
		contentHash: int64(long(9)), product: b[traceSize-2], muted: flags&2 != 0, hasPath: flags&4 != 0, ignored: flags&16 != 0,
	}
}
