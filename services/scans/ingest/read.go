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
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/traffic"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// Input is what Read needs.
type Input struct {
	Results Source
	// Commit is stored in the findings, and its time, if it is known.
	Commit     string
	CommitTime *int64
	// Calls has the in-flight requests, which take precedence over reading and storing.
	Calls *traffic.Calls
	// Spool is disk space for results that do not fit into memory.
	Spool spool.Space
	// FormerNames maps former rule names to current ones, by tool, as the report declares them.
	FormerNames map[string]map[string]string
	// Ignores has the paths that policies ignore. If they have changed when the results are stored, the report is read
	// again.
	Ignores *pathignore.Matcher
}

// Reading is a report that was read: evidence for matching, and results in their stored form, spooled. Creating it is
// up to two thirds of the work of an import, and takes no lock: see Read. The caller has to release it.
type Reading struct {
	Input
	work   *traffic.Work
	names  *ruleNames
	groups map[Analysis]*group
	// knownRules has the rule ids that went into content hashes; 0 for rules that were not stored at that time.
	knownRules map[ruleKey]int64
	journal    *journal
	// covered describes the coverage of each analysis as text.
	covered map[Analysis]string
	memory  gcTuner
	batch   []*Result
	hasher  identity.Hasher
	// encoding is a buffer that is reused.
	encoding []byte
}

// Read reads results. It changes nothing, and reads only names and ids of rules from db. If they have changed when the
// results are stored, Store notices.
func Read(ctx context.Context, db *ent.Client, r Input) (*Reading, error) {
	p := &Reading{Input: r}
	done := false
	defer func() {
		if !done { // also if the source panics
			p.Release()
		}
	}()
	if err := p.read(ctx, db, newRuleNames(db, r.FormerNames)); err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	done = true
	return p, nil
}

// read reads the results under the given rule names. It starts again if it has been called before.
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
		return p.prepareBatch(ctx, db)
	})
	if err != nil {
		return err
	}
	if err := p.prepareBatch(ctx, db); err != nil {
		return err
	}
	p.journal.spill.seal()
	for _, g := range p.groups {
		g.traces.done()
		g.byLocation, g.names = indexByLocation(g.traces), nil
	}
	return errors.Join(p.spillError(), p.cover(ctx))
}

// cover reads the coverage from the source.
func (p *Reading) cover(ctx context.Context) error {
	coverages, err := p.Results.Coverages()
	if err != nil {
		return err
	}
	for key, covered := range coverages {
		if err := p.presentRules(ctx, key.Tool, covered); err != nil {
			return err
		}
		p.groupOf(key).coverage, p.covered[key] = covered, covered.summary()
	}
	return nil
}

// Release frees everything on disk and in memory. It may be called more than once.
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

// inOrder returns the groups in a fixed order.
func (p *Reading) inOrder() []*group {
	return slices.SortedFunc(maps.Values(p.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Category, b.Category))
	})
}

// prepareBatch encodes the results of the batch as future findings, and stores their traces.
func (p *Reading) prepareBatch(ctx context.Context, db *ent.Client) error {
	if len(p.batch) == 0 {
		return nil
	}
	if err := p.readRules(ctx, db); err != nil {
		return err
	}
	var committedAt int64
	if p.CommitTime != nil {
		committedAt = *p.CommitTime
	}
	for _, i := range p.batch {
		p.work.Yield(ctx)
		g := i.of
		i.ruleID = p.knownRules[ruleKey{i.Group.Tool, i.ruleName}]
		text := identityText(i.ruleName, i.Content)
		i.path = i.Content.GetLocation().GetFilePath()
		if !i.Suppressed {
			_, i.ignored = p.Ignores.Match(i.Product, i.path)
		}
		t := trace{Evidence: p.hasher.EvidenceOf(text), product: productNumber(i.Product), muted: i.state() == lifecycle.Muted, ignored: i.ignored}
		if _, known := g.rules[t.Rule]; !known {
			g.rules[t.Rule] = i.ruleName
		}
		i.identify(g.names.Assign(i.Group.Tool, text))
		var err error
		if p.encoding, err = i.encode(p.encoding[:0], p.Commit, committedAt); err != nil {
			return err
		}
		t.contentHash, t.hasPath = i.contentHash, i.path != ""
		g.found[t.product] = true
		g.traces.add(t)
		p.journal.add(i)
	}
	clear(p.batch) // drops the references to the results
	p.batch = p.batch[:0]
	if len(p.journal.rules) > maxRules {
		return errManyRules
	}
	return p.spillError()
}

// readRules looks up which rules of the batch are stored. Other rules get their ids when the results are stored. No
// stored finding can equal a result of such a rule, so the provisional id in its hash does no harm.
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

// spillError returns the error of spooling, if any.
func (p *Reading) spillError() error {
	failed := p.journal.spill.failed
	for _, g := range p.groups {
		failed = errors.Join(failed, g.traces.spill.failed)
	}
	return failed
}
