package scans

import (
	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/scans/sarif"
)

// addContext stores flows, related locations and fixes, and the suppression.
func addContext(content *storev1.FindingContent, r *sarif.Result) {
	if r.Suppressed {
		content.Suppression = &findingsv1.FindingSuppression{
			Kind: r.SuppressionKind, Justification: r.SuppressionReason, Author: r.SuppressionAuthor, Reason: r.TriageReason,
		}
	}
	if len(r.Flows) == 0 && len(r.Related) == 0 && len(r.Fixes) == 0 {
		return
	}
	out := &findingsv1.FindingContext{}
	for _, flow := range r.Flows {
		out.CodeFlows = append(out.CodeFlows, codeFlow(flow))
	}
	for _, place := range r.Related {
		out.RelatedLocations = append(out.RelatedLocations, relatedLocation(place))
	}
	for _, fix := range r.Fixes {
		proposed := &findingsv1.ProposedFix{Description: fix.Description}
		for _, c := range fix.Changes {
			proposed.Changes = append(proposed.Changes, &findingsv1.ProposedChange{
				Path: c.Path, Line: int32(c.Line), Column: int32(c.Column), EndLine: int32(c.EndLine), EndColumn: int32(c.EndColumn),
				InsertedText: c.Inserted,
			})
		}
		out.Fixes = append(out.Fixes, proposed)
	}
	// Deterministic, because the content hash of the finding covers it. The texts are valid UTF-8, so it never fails.
	content.Context, _ = proto.MarshalOptions{Deterministic: true}.Marshal(out)
}

func codeFlow(flow sarif.Flow) *findingsv1.CodeFlow {
	out := &findingsv1.CodeFlow{Message: flow.Message}
	for _, thread := range flow.Threads {
		steps := make([]*findingsv1.FlowStep, len(thread.Steps))
		for i, step := range thread.Steps {
			steps[i] = &findingsv1.FlowStep{
				Location: relatedLocation(step.RelatedLocation), Snippet: step.Snippet, Kinds: step.Kinds,
				NestingLevel: int32(step.Nesting), Importance: step.Importance,
			}
		}
		out.ThreadFlows = append(out.ThreadFlows, &findingsv1.ThreadFlow{Id: thread.ID, Message: thread.Message, Steps: steps})
	}
	return out
}

func relatedLocation(place sarif.RelatedLocation) *findingsv1.RelatedLocation {
	return &findingsv1.RelatedLocation{
		Path: place.Path, Line: int32(place.Line), Column: int32(place.Column), EndLine: int32(place.EndLine), EndColumn: int32(place.EndColumn),
		Message: place.Message, LogicalLocation: place.Logical,
	}
}
