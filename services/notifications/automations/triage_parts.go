package automations

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/store"
)

// triagedAtOnce is the maximum number of findings that are triaged in one transaction. A new policy may match hundreds
// of thousands, and SQLite has one writer: uploads must not wait for minutes.
const triagedAtOnce = 5000

// triageLater makes triageInParts triage all that an aborted run has left.
func (c *candidate) triageLater(later bool) {
	for _, p := range c.parts {
		p.later = later && p.kind == actTriage
	}
}

// triageInParts triages the findings of the actions that have too many for one transaction. Each part is a triage
// change of its own. It may be aborted anywhere: what is triaged is not triaged again.
func (g *engine) triageInParts(ctx context.Context, e *event, c *candidate) error {
	for _, p := range c.parts {
		if !p.later {
			continue
		}
		for ids := range slices.Chunk(p.ids, triagedAtOnce) {
			piece := &part{kind: p.kind, config: p.config, word: p.word, selection: &selection{ids: ids}}
			err := g.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
				if current, err := c.log.current(ctx, g.store, tx); err != nil || !current {
					return err
				}
				a := &actor{engine: g, tx: tx, event: e, candidate: c}
				return a.triagePiece(ctx, piece)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *actor) triagePiece(ctx context.Context, p *part) error {
	if a.candidate.policy != nil {
		locked, err := triage.LockProjects(ctx, a.store, a.tx, store.WithIDs[predicate.Finding](p.ids))
		if err != nil {
			return err
		}
		if err := a.renewPart(ctx, p, locked); err != nil {
			return err
		}
	}
	done, err := a.triage(ctx, p)
	if err != nil || !done.acted || a.candidate.policy == nil {
		return err
	}
	return a.remember(ctx, p)
}
