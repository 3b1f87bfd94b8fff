package scans

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// A spooled report is at its end when its format is detected. Each format sees the first bytes, and gets the file
// rewound.
func TestFormatOf(t *testing.T) {
	defer func(before []format) { formats = before }(formats)
	report := strings.Repeat("x", 2*headSize)
	var seen []byte
	other := format{recognises: func(head []byte) bool { seen = head; return bytes.HasPrefix(head, []byte("x")) }}
	formats = []format{other, sarifFormat}
	file := strings.NewReader(report)
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	got, err := formatOf(file)
	if err != nil || got.open != nil || string(seen) != report[:headSize] {
		t.Errorf("SARIF is chosen: %t, %d bytes seen, %v", got.open != nil, len(seen), err)
	}
	if file.Len() != len(report) {
		t.Errorf("%d bytes are left to read, want %d", file.Len(), len(report))
	}
}
