package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/traffic"
)

// Input is how the results of a scan are read.
type Input struct {
	Results Source
	// Commit is what the findings name.
	Commit string
	// Calls go before reading and storing.
	Calls *traffic.Calls
	// Spool holds results that are too many for the memory.
	Spool spool.Space
	// FormerNames are the present names of rules by tool and former name, as the report declares them.
	FormerNames map[string]map[string]string
}

// Reading is a report that was read: its evidence to match, and its results as they will be stored, put aside. That is
// up to two thirds of what there is to do, and whoever holds the only writer or a project meanwhile makes others wait
// for nothing: see Read. Whoever has one releases it.
type Reading struct {
	Input
	work   *traffic.Work
	names  *ruleNames
	groups map[Analysis]*group
	// knownRules are the ids of rules with which contents were hashed; 0: the rule was not stored then.
	knownRules map[ruleKey]int64
	journal    *journal
	// covered says in words what is known of what each analysis looked at.
	covered map[Analysis]string
	memory  memory
	batch   []*Result
	hasher  identity.Hasher
	// encoding is used again and again.
	encoding []byte
}

// Read reads results. It changes nothing, and asks db only for the names and the ids of rules: should those be others
// once the results are stored, Store notices.
func Read(ctx context.Context, db *ent.Client, r Input) (*Reading, error) {
	p := &Reading{Input: r}
	done := false
	defer func() {
		if !done { // also when the source panics
			p.Release()
		}
	}()
	if err := p.read(ctx, db, newRuleNames(db, r.FormerNames)); err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	done = true
	return p, nil
}

// read reads the results with names that the caller knows, anew if it has done so before.
func (p *Reading) read(ctx context.Context, db *ent.Client, names *ruleNames) error {
	p.Release()
	*p = Reading{
		Input: p.Input, work: p.Calls.Beside(), names: names, groups: map[Analysis]*group{}, knownRules: map[ruleKey]int64{},
		journal: newJournal(p.Spool), covered: map[Analysis]string{},
	}
	err := p.Results.Each(ctx, func(i *Result) error {
		p.work.Yield(ctx)
		if err := p.present(ctx, i); err != nil {
			return err
		}
		i.of = p.groupOf(i.Group)
		p.memory.add()
		if p.batch = append(p.batch, i); len(p.batch) < batchSize {
			return nil
		}
		return p.putAside(ctx, db)
	})
	if err != nil {
		return err
	}
	if err := p.putAside(ctx, db); err != nil {
		return err
	}
	p.journal.spill.seal()
	for _, g := range p.groups {
		g.traces.done()
		g.places, g.names = placesOf(g.traces), nil
	}
	return errors.Join(p.spillError(), p.cover(ctx))
}

// cover asks what the scan looked at.
func (p *Reading) cover(ctx context.Context) error {
	coverages, err := p.Results.Coverages()
	if err != nil {
		return err
	}
	for key, covered := range coverages {
		if err := p.presentRules(ctx, key.Tool, covered); err != nil {
			return err
		}
		p.groupOf(key).coverage, p.covered[key] = covered, covered.words()
	}
	return nil
}

// Release lets go of all that is held, on disk and in memory. It may be called again.
func (p *Reading) Release() {
	for _, g := range p.groups {
		g.traces.close()
	}
	if p.journal != nil {
		p.journal.close()
	}
	p.groups, p.batch, p.knownRules = nil, nil, nil
	p.memory.release()
}

func (p *Reading) groupOf(key Analysis) *group {
	g := p.groups[key]
	if g == nil {
		g = &group{
			Analysis: key, coverage: unknownCoverage(), rules: map[uint64]string{}, traces: newTraces(p.Spool), names: identity.NewAssigner(),
		}
		p.groups[key] = g
	}
	return g
}

// inOrder are the groups in one order.
func (p *Reading) inOrder() []*group {
	return slices.SortedFunc(maps.Values(p.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Category, b.Category))
	})
}

// putAside makes of the results of the batch what their findings will be, and keeps their traces.
func (p *Reading) putAside(ctx context.Context, db *ent.Client) error {
	if len(p.batch) == 0 {
		return nil
	}
	if err := p.readRules(ctx, db); err != nil {
		return err
	}
	for _, i := range p.batch {
		p.work.Yield(ctx)
		g := i.of
		i.ruleID = p.knownRules[ruleKey{i.Group.Tool, i.ruleName}]
		text := identityText(i.ruleName, i.Content)
		t := trace{Evidence: p.hasher.EvidenceOf(text), product: productNumber(i.Product), muted: i.Suppressed}
		if _, known := g.rules[t.Rule]; !known {
			g.rules[t.Rule] = i.ruleName
		}
		i.path = i.Content.GetLocation().GetFilePath()
		i.identify(g.names.Assign(i.Group.Tool, text))
		var err error
		if p.encoding, err = i.encode(p.encoding[:0], p.Commit); err != nil {
			return err
		}
		t.contentHash, t.hasPath = i.contentHash, i.path != ""
		g.found[t.product] = true
		g.traces.add(t)
		p.journal.add(i)
	}
	clear(p.batch) // so that nothing of the results stays
	p.batch = p.batch[:0]
	if len(p.journal.rules) > maxRules {
		return errManyRules
	}
	return p.spillError()
}

// readRules looks up which rules of the batch are stored. The others get their ids when the results are stored: no
// finding can be equal to one of theirs, whatever its content is hashed with until then.
func (p *Reading) readRules(ctx context.Context, db *ent.Client) error {
	var unknown []ruleKey
	for _, i := range p.batch {
		key := ruleKey{i.Group.Tool, i.ruleName}
		if _, known := p.knownRules[key]; !known {
			p.knownRules[key] = 0
			unknown = append(unknown, key)
		}
	}
	rows, err := findRules(ctx, db, unknown, rule.FieldID, rule.FieldTool, rule.FieldName)
	if err != nil {
		return err
	}
	for _, row := range rows {
		p.knownRules[ruleKey{row.Tool, row.Name}] = row.ID
	}
	return nil
}

// spillError is why what was put aside could not be read or written.
func (p *Reading) spillError() error {
	failed := p.journal.spill.failed
	for _, g := range p.groups {
		failed = errors.Join(failed, g.traces.spill.failed)
	}
	return failed
}
