package server

import (
	"slices"
	"strings"
	"testing"
)

func TestUnchangedMappings(t *testing.T) {
	const smaps = `00400000-00403000 r--p 00000000 fe:00 81 /opt/my palisade
Size:                 12 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me 
00403000-03672000 r-xp 00003000 fe:00 81 /opt/my palisade
Anonymous:             4 kB
Swap:                  0 kB
03672000-0731c000 r--p 03272000 fe:00 81 /opt/my palisade
Anonymous:             0 kB
Swap:                  8 kB
0731c000-075ac000 rw-p 06f1c000 fe:00 81 /opt/my palisade
Anonymous:             0 kB
Swap:                  0 kB
075ac000-09790000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 82 /usr/lib/not-palisade
Anonymous:             0 kB
7fffffffe000-7ffffffff000 r-xp 00000000 fe:00 81 /opt/my palisade
Anonymous:             0 kB
Swap:                  0 kB
`
	want := []mapping{{0x400000, 0x403000}, {0x7fffffffe000, 0x7ffffffff000}}
	if got := unchangedMappings(strings.NewReader(smaps), "/opt/my palisade"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x: not what can be written or has a page of its own", got, want)
	}
	if got := unchangedMappings(strings.NewReader(smaps), "/opt/palisade"); len(got) != 0 {
		t.Errorf("got %x for another file", got)
	}
}

func TestTheProgramRunsOnAfterItWasDropped(t *testing.T) {
	for range 3 {
		if err := dropProgram(); err != nil {
			t.Fatal(err)
		}
	}
}
