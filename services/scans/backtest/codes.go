package backtest

import (
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/blocking"
)

// codesAtOnce is the number of findings whose contents are read at once.
const codesAtOnce = 1000

// codes are the codes of findings by id, as far as they are needed.
type codes map[int64]blocking.Code

// wanted adds the findings whose codes decide whether a decision covers a finding, and whether a diff scan's finding is
// new.
func (p *replayed) wanted(wanted map[int64]bool, steps []step) {
	for group := range p.identities() {
		if hasDecision(group, steps) {
			want(wanted, group)
		}
		for _, f := range group {
			if f.ref.hasDiff && p.outcomes[f.kind].dependsOnBase {
				want(wanted, group)
				want(wanted, p.byKey[f.key])
			}
		}
	}
}

func want(wanted map[int64]bool, findings []*findingOf) {
	for _, f := range findings {
		wanted[f.id] = true
	}
}

// readCodes reads the codes of findings.
func readCodes(ctx context.Context, db *ent.Client, wanted map[int64]bool) (codes, error) {
	read := make(codes, len(wanted))
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(wanted)), codesAtOnce) {
		rows, err := db.Finding.Query().Modify(store.FoundByIDs(ids)).Select(finding.FieldID, finding.FieldContent).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			content, err := blob.Decode(row.Content)
			if err != nil {
				return nil, err
			}
			read[row.ID] = blocking.CodeOf(content)
		}
	}
	return read, nil
}

// hasDecision reports whether a person ever ignored one of the findings.
func hasDecision(group []*findingOf, steps []step) bool {
	return slices.ContainsFunc(group, func(f *findingOf) bool {
		return slices.ContainsFunc(steps[f.first:f.end], func(s step) bool { return s.triage == ignored })
	})
}
