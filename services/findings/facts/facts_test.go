package facts_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/facts"
)

// TestStamp: the stamped content is the content with the last facts, whatever they are and however often it is stamped.
func TestStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := &storev1.FindingContent{
			Message: rapid.String().Draw(t, "message"), IsBlocking: rapid.Bool().Draw(t, "blocking"), Metadata: rapid.SliceOf(rapid.Byte()).Draw(t, "metadata"),
		}
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
			encoded = facts.Stamp(encoded, content.GetFacts())
		}
		got := &storev1.FindingContent{}
		if err := proto.Unmarshal(encoded, got); err != nil || !proto.Equal(got, content) {
			t.Fatalf("got %v, want %v (%v)", got, content, err)
		}
	})
}
