package page

import (
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

func digest(t testing.TB, list, filter string) Digest {
	d, err := DigestOf(list, wrapperspb.String(filter))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCursorRoundTrip(t *testing.T) {
	d := digest(t, "scans", "main")
	rapid.Check(t, func(t *rapid.T) {
		want := Key{rapid.Int64().Draw(t, "order"), rapid.Int64().Draw(t, "id")}
		got, ok, err := Decode(d, Encode(d, want))
		if err != nil || !ok || got != want {
			t.Fatalf("got %v %v %v, want %v", got, ok, err, want)
		}
		word := rapid.String().Draw(t, "word")
		of, got, ok, err := DecodeWord(d, EncodeWord(d, word, want))
		if err != nil || !ok || got != want || of != word {
			t.Fatalf("got %q %v %v %v, want %q %v", of, got, ok, err, word, want)
		}
		if _, _, err := Decode(d, EncodeWord(d, word, want)); !apierr.Is(err, errorsv1.Reason_REASON_INVALID_CURSOR) {
			t.Fatalf("the cursor of another order: got %v, want INVALID_CURSOR", err)
		}
	})
}

func TestCursorBelongsToItsList(t *testing.T) {
	cursor := Encode(digest(t, "scans", "main"), Key{1, 2})
	for name, other := range map[string]Digest{"filter": digest(t, "scans", "dev"), "list": digest(t, "secrets", "main")} {
		if _, _, err := Decode(other, cursor); !apierr.Is(err, errorsv1.Reason_REASON_INVALID_CURSOR) {
			t.Errorf("cursor of another %s: got %v, want INVALID_CURSOR", name, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	d := digest(f, "scans", "")
	f.Add(Encode(d, Key{1, 2}))
	f.Add("")
	f.Add("AQ==")
	f.Fuzz(func(t *testing.T, cursor string) {
		key, ok, err := Decode(d, cursor)
		if err == nil && ok && Encode(d, key) != cursor {
			t.Fatalf("%q was accepted, but is spelled %q", cursor, Encode(d, key))
		}
	})
}
