package ingest

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/verdict"
)

// sift counts the outcomes of results that were joined to findings, and returns the changes to write with the stored
// contents of their findings.
func (w *writer) sift(ctx context.Context, compared []change) (changed []change, before map[int64]*storev1.FindingContent, err error) {
	var written []change
	for _, c := range compared {
		if !c.written() {
			w.Counts[Outcome{Product: c.Product, What: c.what}]++
			continue
		}
		if err := c.load(); err != nil {
			return nil, nil, err
		}
		written = append(written, c)
	}
	if before, err = w.contents(ctx, idsOf(written)); err != nil {
		return nil, nil, err
	}
	for _, c := range written {
		if c.event == "updated" {
			same, err := c.reordered(before[c.old.ID])
			if err != nil {
				return nil, nil, err
			}
			if same {
				c.what, c.event = "unchanged", ""
			}
		}
		w.Counts[Outcome{Product: c.Product, What: c.what}]++
		if !c.written() {
			continue
		}
		changed = append(changed, c)
		if err := w.noteDecision(c.Result, c.old, c.event); err != nil {
			return nil, nil, err
		}
	}
	return changed, before, nil
}

// reordered reports whether a result differs from its finding only in ids that the tool does not give. They number equal
// results in the order of the report, which means nothing.
func (c change) reordered(stored *storev1.FindingContent) (bool, error) {
	old := c.storedResult(stored)
	if !c.ownID {
		old.Content.MatchBasedId = c.Content.GetMatchBasedId()
	}
	if !c.ownSyntax {
		old.Content.SyntacticId = c.Content.GetSyntacticId()
	}
	_, err := old.encode(nil, c.Content.GetCommit(), c.Content.GetCommittedAt())
	return old.contentHash == c.contentHash, err
}

// storedResult is the result that a stored finding came from, as far as content hashes cover it.
func (c change) storedResult(stored *storev1.FindingContent) *Result {
	row := c.old
	old := &Result{
		Product: row.IssueType, Severity: row.Severity, ruleID: row.RuleID, Exposure: derefOrEmpty(row.Exposure),
		ValidationState: derefOrEmpty(row.ValidationState), Malicious: row.Malicious != nil && *row.Malicious,
		Content: proto.CloneOf(stored),
	}
	if c.PolicyMode != "" { // otherwise the stored mode stays
		old.PolicyMode = derefOrEmpty(row.PolicyMode)
	}
	verdict.Keep(&storev1.FindingContent{}, old.Content)
	old.Content.CommittedAt = 0
	return old
}

// split separates the results that were joined to stored findings, compared with them, from new ones.
func split(batch []*Result, stored map[int64]*ent.Finding) (compared []change, fresh []*Result) {
	for _, i := range batch {
		if old := stored[i.knownID()]; old != nil {
			compared = append(compared, i.compare(old))
		} else {
			fresh = append(fresh, i)
		}
	}
	return compared, fresh
}
