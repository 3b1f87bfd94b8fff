package clone

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pack writes a pack of objects: kind (3 blob, 6 delta to an earlier one) and content.
func pack(t testing.TB, announced uint32, objects ...func(*bytes.Buffer)) *os.File {
	t.Helper()
	var out bytes.Buffer
	out.WriteString("PACK")
	_ = binary.Write(&out, binary.BigEndian, []uint32{2, announced})
	for _, o := range objects {
		o(&out)
	}
	out.Write(make([]byte, 20))
	name := filepath.Join(t.TempDir(), "pack")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func entry(kind byte, size uint64, between []byte, content []byte) func(*bytes.Buffer) {
	return func(out *bytes.Buffer) {
		first := kind<<4 | byte(size&15)
		for rest := size >> 4; rest > 0; rest >>= 7 {
			out.WriteByte(first | 0x80)
			first = byte(rest & 0x7f)
		}
		out.WriteByte(first)
		out.Write(between)
		w := zlib.NewWriter(out)
		_, _ = w.Write(content)
		_ = w.Close()
	}
}

func difference(from, to uint64) func(*bytes.Buffer) {
	content := binary.AppendUvarint(binary.AppendUvarint(nil, from), to)
	return entry(6, uint64(len(content)), []byte{12}, content)
}

func TestInspect(t *testing.T) {
	limits := Limits{Object: 1 << 20, Inflated: 3 << 20}
	small, zeros := entry(3, 5, nil, []byte("hello")), make([]byte, 1<<20)
	for name, c := range map[string]struct {
		file *os.File
		want string
	}{
		"small":                {pack(t, 2, small, difference(5, 1<<20)), ""},
		"one large":            {pack(t, 1, entry(3, 1<<20+1, nil, append(zeros, 0))), "more than 1 MiB, which"},
		"more than it says":    {pack(t, 1, entry(3, 5, nil, zeros)), "exceeds"},
		"difference to a huge": {pack(t, 2, small, difference(5, 10<<30)), "more than 1 MiB, which"},
		"number without end":   {pack(t, 2, small, entry(6, 20, []byte{12}, bytes.Repeat([]byte{0xff}, 20))), "more than 1 MiB, which"},
		"many":                 {pack(t, 4, entry(3, 1<<20, nil, zeros), entry(3, 1<<20, nil, zeros), entry(3, 1<<20, nil, zeros), small), "more than 3 MiB"},
		"too many":             {pack(t, 1<<31, small), "at most"},
		"fewer than it says":   {pack(t, 9, small), ""},
	} {
		err := inspect(c.file, limits)
		if name == "fewer than it says" {
			if err == nil {
				t.Errorf("%s: accepted", name)
			}
			continue
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		var own *Error
		if errors.As(err, &own) && !own.Permanent {
			t.Errorf("%s: would be tried again", name)
		}
	}
}
