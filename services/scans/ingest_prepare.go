package scans

import (
	"context"
	"errors"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rule"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/traffic"
)

// reading is how the results of a scan are read.
type reading struct {
	results source
	// commit is what the findings name.
	commit string
	// readAhead: reading the results needs no database, and may go on beside what is done with them.
	readAhead bool
	// calls go before reading and storing.
	calls *traffic.Calls
	// spool holds results that are too many for the memory.
	spool spool.Space
	// formerNames are the present names of rules by tool and former name, as the report declares them.
	formerNames map[string]map[string]string
}

// preparation is a report that was read: its evidence to match, and its results as they will be stored, put aside. That is up to two
// thirds of what there is to do, and whoever holds the only writer or a project meanwhile makes others wait for nothing: see
// prepare. Whoever has one releases it.
type preparation struct {
	reading
	work   *traffic.Work
	names  *ruleNames
	groups map[analysis]*group
	// knownRules are the ids of rules with which contents were hashed; 0: the rule was not stored then.
	knownRules map[ruleKey]int64
	journal    *journal
	// covered says in words what is known of what each analysis looked at.
	covered map[analysis]string
	memory  memory
	batch   []*incoming
	hasher  identity.Hasher
	// encoding is used again and again.
	encoding []byte
}

// prepare reads results. It changes nothing, and asks db only for the names and the ids of rules: should those be others once the
// results are stored, storeResults notices.
func prepare(ctx context.Context, db *ent.Client, r reading) (*preparation, error) {
	p := &preparation{reading: r}
	done := false
	defer func() {
		if !done { // also when the source panics
			p.release()
		}
	}()
	if err := p.read(ctx, db, newRuleNames(db, r.formerNames)); err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	done = true
	return p, nil
}

// read reads the results with names that the caller knows, anew if it has done so before.
func (p *preparation) read(ctx context.Context, db *ent.Client, names *ruleNames) error {
	p.release()
	*p = preparation{
		reading: p.reading, work: p.calls.Beside(), names: names, groups: map[analysis]*group{}, knownRules: map[ruleKey]int64{},
		journal: newJournal(p.spool), covered: map[analysis]string{},
	}
	each := p.results.each
	if p.readAhead {
		each = aheadOf(p.calls, p.work, each)
	}
	err := each(ctx, func(i *incoming) error {
		p.work.Yield(ctx)
		if err := p.present(ctx, i); err != nil {
			return err
		}
		i.of = p.groupOf(i.group)
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
func (p *preparation) cover(ctx context.Context) error {
	coverages, err := p.results.coverages()
	if err != nil {
		return err
	}
	for key, covered := range coverages {
		if err := p.presentRules(ctx, key.tool, covered); err != nil {
			return err
		}
		p.groupOf(key).coverage, p.covered[key] = covered, covered.words()
	}
	return nil
}

// release lets go of all that is held, on disk and in memory. It may be called again.
func (p *preparation) release() {
	for _, g := range p.groups {
		g.traces.close()
	}
	if p.journal != nil {
		p.journal.close()
	}
	p.groups, p.batch, p.knownRules = nil, nil, nil
	p.memory.release()
}

func (p *preparation) groupOf(key analysis) *group {
	g := p.groups[key]
	if g == nil {
		g = &group{
			analysis: key, coverage: unknownCoverage(), rules: map[uint64]string{}, late: map[int64]bool{}, rungs: map[int]string{},
			considered: map[int][]*storev1.FindingMatchCandidate{}, named: map[int]*foreignJoin{}, taken: map[string]bool{},
			traces: newTraces(p.spool), names: identity.NewAssigner(),
		}
		p.groups[key] = g
	}
	return g
}

// putAside makes of the results of the batch what their findings will be, and keeps their traces.
func (p *preparation) putAside(ctx context.Context, db *ent.Client) error {
	if len(p.batch) == 0 {
		return nil
	}
	if err := p.readRules(ctx, db); err != nil {
		return err
	}
	for _, i := range p.batch {
		p.work.Yield(ctx)
		g := i.of
		i.ruleID = p.knownRules[ruleKey{i.group.tool, i.ruleName}]
		text := identityText(i.ruleName, i.content)
		t := trace{Evidence: p.hasher.EvidenceOf(text), product: productNumber(i.product), muted: i.suppressed}
		if _, known := g.rules[t.Rule]; !known {
			g.rules[t.Rule] = i.ruleName
		}
		i.path = i.content.GetLocation().GetFilePath()
		i.identify(g.names.Assign(i.group.tool, text))
		var err error
		if p.encoding, err = i.encode(p.encoding[:0], p.commit); err != nil {
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

// readRules looks up which rules of the batch are stored. The others get their ids when the results are stored: no finding can be
// equal to one of theirs, whatever its content is hashed with until then.
func (p *preparation) readRules(ctx context.Context, db *ent.Client) error {
	var unknown []ruleKey
	for _, i := range p.batch {
		key := ruleKey{i.group.tool, i.ruleName}
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
func (p *preparation) spillError() error {
	failed := p.journal.spill.failed
	for _, g := range p.groups {
		failed = errors.Join(failed, g.traces.spill.failed)
	}
	return failed
}
