package identity_test

import (
	"testing"

	"github.com/palisade/palisade/services/findings/identity"
)

func FuzzDecode(f *testing.F) {
	f.Add(identity.EvidenceOf(at("a", "f.go", 3, md5)).Encode())
	f.Add([]byte{identity.Version, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, _, err := identity.Decode(b)
		if err != nil {
			return
		}
		if back, _, err := identity.Decode(e.Encode()); err != nil || back != e {
			t.Fatalf("%+v became %+v: %v", e, back, err)
		}
	})
}

func FuzzMatch(f *testing.F) {
	f.Add([]byte("abcabcabc"), []byte("abdabcabd"), uint8(3))
	f.Add([]byte{1, 1, 255, 1, 1, 0, 1, 1, 7}, []byte{1, 1, 7, 1, 1, 255}, uint8(0))
	f.Fuzz(func(t *testing.T, before, after []byte, skipped uint8) {
		make := func(b []byte) (all []identity.Evidence) {
			for ; len(b) >= 3 && len(all) < 2000; b = b[3:] {
				all = append(all, identity.Evidence{
					Rule: uint64(b[0]&3) + 1, Path: uint64(b[0]>>2&7) + 1, Base: uint32(b[0] >> 5), Snippet: uint64(b[1] & 15), Shape: uint64(b[1]&3) + 1,
					Message: uint64(b[1] >> 4), Line: int32(b[2]), Specific: b[1]&16 != 0,
				})
			}
			return all
		}
		var known []identity.Known
		for i, e := range make(before) {
			known = append(known, identity.Known{Evidence: e, ID: int64(i), Open: e.Message != 3})
		}
		o := identity.Options{Skipped: map[uint64]bool{uint64(skipped & 7): true}, Moved: map[uint64]uint64{1: 2, 2: 3}}
		joins := identity.Match(known, make(after), o)
		checkOneToOne(t, known, joins)
	})
}
