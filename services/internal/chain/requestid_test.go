package chain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzSaneID(f *testing.F) {
	f.Add("018f-aB_.")
	f.Add("a\nb")
	f.Fuzz(func(t *testing.T, id string) {
		if !saneID(id) {
			return
		}
		if id == "" || len(id) > maxRequestID || strings.ContainsAny(id, " \r\n\t\"'\\/<>{}:;,") || !utf8.ValidString(id) {
			t.Errorf("%q passes", id)
		}
	})
}
