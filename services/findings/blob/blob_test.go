package blob_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
)

// hashes draws texts as scanners give them, as nobody gives them, and texts that begin like a hash.
func hashes() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`([0-9a-f]{2}){0,70}(_[0-9]{1,3})?`), rapid.StringMatching(`[0-9a-f]{500,530}`),
		rapid.StringMatching(`[0-9a-fA-F]{10,20}[g-z]?`), rapid.String())
}

func drawContent(t *rapid.T) *storev1.FindingContent {
	hash := hashes()
	return &storev1.FindingContent{
		Message: rapid.String().Draw(t, "message"), IsBlocking: rapid.Bool().Draw(t, "blocking"), Metadata: rapid.SliceOf(rapid.Byte()).Draw(t, "metadata"),
		SyntacticId: hash.Draw(t, "syntactic id"), MatchBasedId: hash.Draw(t, "match-based id"), Commit: hash.Draw(t, "commit"),
		PatternHash: hash.Draw(t, "pattern hash"), CodeHash: hash.Draw(t, "code hash"),
	}
}

// TestEncode: what is stored is never larger than the content, and is read as it was, also when it was stored as it is.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := drawContent(t)
		plain, err := proto.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := blob.Encode(content)
		if err != nil || len(stored) > len(plain) {
			t.Fatalf("%d bytes are stored as %d (%v)", len(plain), len(stored), err)
		}
		for _, encoded := range [][]byte{stored, plain} {
			if got, err := blob.Decode(encoded); err != nil || !proto.Equal(got, content) {
				t.Fatalf("got %v, want %v (%v)", got, content, err)
			}
		}
	})
}

func TestEncodedSize(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 8)
	stored, err := blob.Encode(&storev1.FindingContent{MatchBasedId: id + "_12"})
	if err != nil || len(stored) != 2+1+1+64+3 { // number, length, number of bytes, bytes, rest
		t.Errorf("%q is stored in %d bytes (%v)", id+"_12", len(stored), err)
	}
}

// TestDecodeBroken: a packed text that is cut off is an error, not another text.
func TestDecodeBroken(t *testing.T) {
	for _, packed := range [][]byte{{1}, {200, 1, 2}} {
		encoded, err := proto.Marshal(&storev1.FindingContent{PackedCommit: packed})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := blob.Decode(encoded); err == nil {
			t.Errorf("%v is read as %v", packed, got)
		}
	}
}

// TestStamp: the stamped content is the content with the last facts, whatever they are and however often it is stamped.
func TestStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := drawContent(t)
		encoded, err := proto.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		number := rapid.Int64()
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			content.Facts = &storev1.FindingFacts{
				ProjectId: number.Draw(t, "project"), RuleId: number.Draw(t, "rule"), FirstSeenScanId: number.Draw(t, "scan"),
				CreatedAt: number.Draw(t, "at"), Ref: rapid.String().Draw(t, "ref"), Severity: rapid.String().Draw(t, "severity"),
			}
			encoded = blob.Stamp(encoded, content.GetFacts())
		}
		parsed := blob.Facts{Ref: rapid.SampledFrom([]string{"", "refs/heads/main", content.GetFacts().GetRef()}).Draw(t, "ref before"), Severity: "low", RuleID: 7}
		want := blob.Facts{
			ProjectID: content.GetFacts().GetProjectId(), RuleID: content.GetFacts().GetRuleId(), FirstSeenScanID: content.GetFacts().GetFirstSeenScanId(),
			CreatedAt: content.GetFacts().GetCreatedAt(), Ref: content.GetFacts().GetRef(), Severity: content.GetFacts().GetSeverity(),
		}
		if ok := blob.ParseFacts(encoded, &parsed); ok != (want.ProjectID != 0) || parsed != want {
			t.Fatalf("parsed %v, want %v", parsed, want)
		}
		if got, err := blob.Decode(encoded); err != nil || !proto.Equal(got, content) {
			t.Fatalf("got %v, want %v (%v)", got, content, err)
		}
	})
}
