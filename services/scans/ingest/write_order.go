package ingest

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
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
		if c.renumbered, err = w.isRenumbered(ctx, c, before[c.old.ID]); err != nil {
			return nil, nil, err
		}
		sameID := before[c.old.ID].GetSyntacticId() == c.Content.GetSyntacticId() // the stored hash can be of another order
		if (c.renumbered || sameID) && c.event == "updated" {
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

// reordered reports whether a result differs from its finding only in ids that the tool does not give. They number
// equal results in the order of the report, which means nothing.
func (c change) reordered(stored *storev1.FindingContent) (bool, error) {
	old := c.storedResult(stored)
	old.Content.SyntacticId = c.Content.GetSyntacticId()
	if !c.ownID {
		old.Content.MatchBasedId = c.Content.GetMatchBasedId()
	}
	_, err := old.encode(nil, c.Content.GetCommit(), c.Content.GetCommittedAt())
	return old.contentHash == c.contentHash, err
}

// maxEqual is how many results with equal code are compared with their findings.
const maxEqual = 10_000

// equalResults are the results of a group, by rule, path and code.
type equalResults struct {
	results map[codeKey][]int
	same    map[codeKey]bool // whether their findings have the same syntactic ids
}

type codeKey struct{ rule, path, snippet uint64 }

func codeOf(t trace) codeKey { return codeKey{t.Rule, t.Path, t.Snippet} }

// equalIn returns the results of a group by code.
func (w *writer) equalIn(g *group) *equalResults {
	equal := w.equal[g]
	if equal == nil {
		equal = &equalResults{results: map[codeKey][]int{}, same: map[codeKey]bool{}}
		for n := range g.traces.size {
			key := codeOf(g.traces.at(n))
			equal.results[key] = append(equal.results[key], n)
		}
		w.equal[g] = equal
	}
	return equal
}

// isRenumbered reports whether the number in the syntactic id of a result differs from the one of its finding, although
// the report has as many results with this code as there are findings: then only their order is another one.
func (w *writer) isRenumbered(ctx context.Context, c change, stored *storev1.FindingContent) (bool, error) {
	text := identityText(c.ruleName, c.Content)
	if c.ownSyntax || stored.GetSyntacticId() == c.Content.GetSyntacticId() || !identity.SameCode(text, identityText(c.ruleName, stored)) {
		return false, nil
	}
	equal, key := w.equalIn(c.of), codeOf(c.of.traces.at(c.result))
	same, known := equal.same[key]
	if known {
		return same, nil
	}
	var ids []int64
	for _, n := range equal.results[key] {
		ids = append(ids, c.matches.joined[n])
	}
	if len(ids) > maxEqual || slices.Contains(ids, 0) {
		equal.same[key] = false
		return false, nil
	}
	expected := map[string]bool{}
	for n := range ids {
		expected[identity.SyntacticID(text, n)] = true
	}
	for part := range slices.Chunk(ids, batchSize) {
		contents, err := w.contents(ctx, part)
		if err != nil {
			return false, err
		}
		for _, content := range contents {
			delete(expected, content.GetSyntacticId())
		}
	}
	equal.same[key] = len(expected) == 0
	return equal.same[key], nil
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
