package feed

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/secret"
)

func snapshots() *rapid.Generator[snapshot] {
	return rapid.Custom(func(t *rapid.T) snapshot {
		s := snapshot{next: rapid.Int64Range(0, 1<<50).Draw(t, "next")}
		if n := rapid.IntRange(0, 5).Draw(t, "open"); s.next > 100 {
			for i := range n {
				s.open = append(s.open, s.next-int64(10-i))
			}
		}
		return s
	})
}

func TestTokenRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := token{
			deploymentID: rapid.Int64().Draw(t, "deployment"), issued: time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "issued"), 0),
			system: rapid.Uint64().Draw(t, "system"),
			at: position{
				id: rapid.Int64().Draw(t, "id"), seen: snapshots().Draw(t, "seen"), target: snapshots().Draw(t, "target"),
				tx: rapid.Int64().Draw(t, "tx"), txEvent: rapid.Int64().Draw(t, "event"),
			},
		}
		got, err := openToken(testKeys(), seal(t, want), want.deploymentID)
		if err != nil || !got.issued.Equal(want.issued) || got.system != want.system || !got.at.equal(want.at) {
			t.Fatalf("got %+v %v, want %+v", got, err, want)
		}
	})
}

// seal returns the text of a token.
func seal(t interface{ Fatal(...any) }, of token) string {
	text, err := of.seal(testKeys())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A token of another deployment, a token of another server, and a token with any changed byte, is refused.
func TestTokenIsChecked(t *testing.T) {
	valid := seal(t, token{deploymentID: 7, at: position{seen: snapshot{next: 90, open: []int64{81, 85}}}})
	other, err := secret.Open(filepath.Join(t.TempDir(), "key"), true)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, keys *secret.Keyring, text string, deploymentID int64) {
		t.Helper()
		_, err := openToken(keys, text, deploymentID)
		if !apierr.Is(err, errorsv1.Reason_REASON_INVALID_CURSOR) || !strings.Contains(fmt.Sprint(err), "resume_token of the last message") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("of another deployment", testKeys(), valid, 8)
	refused("of another server", other, valid, 7)
	data, err := base64.RawURLEncoding.DecodeString(valid)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] ^= 0x11
		refused(fmt.Sprintf("byte %d changed", i), testKeys(), base64.RawURLEncoding.EncodeToString(data), 7)
		data[i] ^= 0x11
	}
}

// A token does not tell how many events all deployments have: not in its bytes, and not by its length.
func TestTokenHidesItsNumbers(t *testing.T) {
	few, many := seal(t, token{deploymentID: 7, at: position{id: 5}}), seal(t, token{deploymentID: 7, at: position{id: 0x0102030405060708}})
	if len(few) != len(many) {
		t.Errorf("%d characters for few events, %d for many", len(few), len(many))
	}
	data, err := base64.RawURLEncoding.DecodeString(many)
	if err != nil {
		t.Fatal(err)
	}
	if number := binary.AppendVarint(nil, 0x0102030405060708); bytes.Contains(data, number) {
		t.Errorf("%x contains the number", data)
	}
}

func FuzzToken(f *testing.F) {
	f.Add(seal(f, token{deploymentID: 7, issued: time.Unix(1e9, 0), at: position{id: 5}}))
	f.Add("")
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := openToken(testKeys(), text, 7); err == nil && got.deploymentID != 7 {
			t.Fatalf("%q was accepted as %v", text, got)
		}
	})
}
