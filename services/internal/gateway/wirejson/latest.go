package wirejson

import (
	"bytes"
	"hash/maphash"
)

// Messages inside of a page repeat: the findings of a rule all hold it, and the next page mostly the same rules. Those of
// a middle size are kept as they were written, and looked up by their bytes, which costs a tenth of writing them.
const (
	minKept = 128
	maxKept = 4 << 10
	places  = 512
)

// latest are messages that were written lately, each in the place that its hash gives it.
type latest [places]keptMessage

type keptMessage struct {
	plan       *plan
	wire, json []byte
}

var seed = maphash.MakeSeed()

// place is that of a message. Its ends and its length tell most messages apart; where they do not, one takes the other's place.
func place(wire []byte) uint64 {
	const end = 32 // minKept is twice that at least
	head, tail := maphash.Bytes(seed, wire[:end]), maphash.Bytes(seed, wire[len(wire)-end:])
	return (head ^ tail*31 ^ uint64(len(wire))) % places
}

// kept writes a message, or copies what was written of equal bytes before.
func (w *writer) kept(b []byte, p *plan, wire []byte) ([]byte, error) {
	k := &w.latest[place(wire)]
	if k.plan == p && bytes.Equal(k.wire, wire) {
		return append(b, k.json...), nil
	}
	start := len(b)
	b, err := w.message(b, p, wire)
	if err != nil {
		return nil, err
	}
	k.plan, k.wire, k.json = p, append(k.wire[:0], wire...), append(k.json[:0], b[start:]...)
	return b, nil
}
