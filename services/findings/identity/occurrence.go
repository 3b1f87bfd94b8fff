package identity

import "encoding/binary"

// occurrences counts how often evidence was met before. Nearly all of it is met once: that takes eight bytes and some
// room, in tables that grow one by one. Two different pieces that begin with the same 64 bits of their SHA-256 would be
// counted together, which gives one of them another name than it could have.
type occurrences struct {
	tables [1 << tableBits]occurrenceTable
	more   map[uint64]int // of what was met more than once
}

// tableBits choose the table by the top bits of the hash.
const tableBits = 6

// occurrenceTable is an open-addressed set of hashes; 0 is an empty place.
type occurrenceTable struct {
	places []uint64
	size   int
}

// count is how often the key was counted before.
func (o *occurrences) count(key [16]byte) int {
	hash := max(binary.BigEndian.Uint64(key[:]), 1)
	if o.tables[hash>>(64-tableBits)].add(hash) {
		return 0
	}
	if o.more == nil {
		o.more = map[uint64]int{}
	}
	o.more[hash]++
	return o.more[hash]
}

// add reports whether the hash was not there.
func (t *occurrenceTable) add(hash uint64) bool {
	if 4*(t.size+1) > 3*len(t.places) {
		t.grow()
	}
	mask := uint64(len(t.places) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		switch t.places[at] {
		case hash:
			return false
		case 0:
			t.places[at] = hash
			t.size++
			return true
		}
	}
}

func (t *occurrenceTable) grow() {
	old := t.places
	t.places = make([]uint64, max(8, 2*len(old)))
	mask := uint64(len(t.places) - 1)
	for _, hash := range old {
		if hash == 0 {
			continue
		}
		at := hash & mask
		for t.places[at] != 0 {
			at = (at + 1) & mask
		}
		t.places[at] = hash
	}
}
