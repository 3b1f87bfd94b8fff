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
		parsed := facts.Facts{Ref: rapid.SampledFrom([]string{"", "refs/heads/main", content.GetFacts().GetRef()}).Draw(t, "ref before"), Severity: "low", RuleID: 7}
		want := facts.Facts{
			ProjectID: content.GetFacts().GetProjectId(), RuleID: content.GetFacts().GetRuleId(), FirstSeenScanID: content.GetFacts().GetFirstSeenScanId(),
			CreatedAt: content.GetFacts().GetCreatedAt(), Ref: content.GetFacts().GetRef(), Severity: content.GetFacts().GetSeverity(),
		}
		if ok := facts.Parse(encoded, &parsed); ok != (want.ProjectID != 0) || parsed != want {
			t.Fatalf("parsed %v, want %v", parsed, want)
		}
		got := &storev1.FindingContent{}
		if err := proto.Unmarshal(encoded, got); err != nil || !proto.Equal(got, content) {
			t.Fatalf("got %v, want %v (%v)", got, content, err)
		}
	})
}
