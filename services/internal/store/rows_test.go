package store

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestNextPacked reads what a database packs, and refuses what none does.
func TestNextPacked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		value := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 1, 300), rapid.Just([]byte{}), rapid.SampledFrom([][]byte{[]byte("5:"), []byte(":"), []byte("-")}))
		rows := rapid.SliceOfN(rapid.SliceOfN(value, columns, columns), 0, 5).Draw(t, "rows")
		var packed []byte
		for _, row := range rows {
			for _, v := range row {
				if v == nil {
					packed = append(packed, ':')
					continue
				}
				packed = append(fmt.Appendf(packed, "%d:", len(v)), v...)
			}
		}
		got, rest := make([][]byte, columns), packed
		for _, row := range rows {
			var err error
			if rest, err = NextPacked(rest, got); err != nil {
				t.Fatal(err)
			}
			for i, v := range row {
				if !bytes.Equal(v, got[i]) || (v == nil) != (got[i] == nil) {
					t.Fatalf("got %q, want %q", got[i], v)
				}
			}
		}
		if len(rest) != 0 {
			t.Fatalf("%d bytes are left", len(rest))
		}
	})
}

func FuzzNextPacked(f *testing.F) {
	f.Add([]byte("1:a:3:b:c:"), 2)
	f.Add([]byte("99999999999999999999:a"), 1)
	f.Add([]byte("-1:"), 1)
	f.Fuzz(func(t *testing.T, rows []byte, columns int) {
		values := make([][]byte, max(1, columns%10))
		for rest, err := rows, error(nil); len(rest) > 0 && err == nil; {
			before := len(rest)
			if rest, err = NextPacked(rest, values); err == nil && len(rest) >= before {
				t.Fatal("it does not end")
			}
		}
	})
}
