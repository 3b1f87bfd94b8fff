package identity

import "encoding/binary"

// occurrences counts how often evidence was seen before. Nearly all evidence is seen once, which takes eight bytes plus
// the slack of tables that grow one by one. If the SHA-256 of two pieces starts with the same 64 bits, they are counted
// together, and one of them gets another fingerprint than it would have.
type occurrences struct {
	tables [1 << tableBits]occurrenceTable
	more   map[uint64]int // of hashes that were seen more than once
}

// tableBits is the number of top bits of the hash that choose the table.
const tableBits = 6

// occurrenceTable is an open-addressing hash set. 0 marks an empty slot.
type occurrenceTable struct {
	slots []uint64
	size  int
}

// count returns how often the key was counted before.
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

// add inserts the hash and reports whether it was absent.
func (t *occurrenceTable) add(hash uint64) bool {
	if 4*(t.size+1) > 3*len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		switch t.slots[at] {
		case hash:
			return false
		case 0:
			t.slots[at] = hash
			t.size++
			return true
		}
	}
}

func (t *occurrenceTable) grow() {
	old := t.slots
	t.slots = make([]uint64, max(8, 2*len(old)))
	mask := uint64(len(t.slots) - 1)
	for _, hash := range old {
		if hash == 0 {
			continue
		}
		at := hash & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = hash
	}
}
