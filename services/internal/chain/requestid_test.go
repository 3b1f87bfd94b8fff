package chain

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"018f-aB_.": true, strings.Repeat("x", maxRequestID): true,
		"": false, "a\nb": false, "a b": false, "\xff": false, "ä": false, strings.Repeat("x", maxRequestID+1): false,
	} {
		if validID(id) != want {
			t.Errorf("%q passes: %v", id, !want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[!-~]{1,8}`)).Draw(t, "id")
		if validID(id) && (id == "" || strings.ContainsAny(id, " \r\n\t\"'\\/<>{}:;,") || !utf8.ValidString(id)) {
			t.Errorf("%q passes", id)
		}
	})
}
