package identity

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Source is code and a scanner's report about it.
type Source struct {
	Name   string
	Tree   *Tree
	Report *Report
	// Scan runs the scanner on edited code; nil: the report is carried along the lines.
	Scan func(context.Context, *Tree) (*Report, error)
	// Lists is true for a tool that always reports the analyzed files.
	Lists bool
	// Protocol is true if results use the scanner protocol instead of reports.
	Protocol bool
	// variant adds to the reports; nil: nothing.
	variant variant
	// bare is true for a tool whose results have nothing but a constant message and a line.
	bare bool
	// ahead is true for hashes that cover the next lines: a copy that follows may have the hash of its original.
	ahead bool
}

// Step is a scan and its truth.
type Step struct {
	Tree   *Tree
	Report *Report
	// Truth of each result of the report before the edit.
	Truth []Truth
	// Skipped are the files that the scan failed on.
	Skipped map[string]bool
	// Scanned is true if the scanner ran on the edited code.
	Scanned bool
}

// Plan is an edit of a source: the first upload, and the uploads after it.
type Plan struct {
	Source *Source
	Edit   Edit
	Before *Report
	After  []Step
}

// NewPlan performs an edit. Equal seeds give equal plans.
func NewPlan(ctx context.Context, source *Source, edit Edit, random *rand.Rand) (*Plan, error) {
	before := source.Report.with(slices.Clone(source.Report.Results))
	for i := range before.Results {
		before.Results[i].origin = i + 1
	}
	if edit.lists || source.Lists {
		before.Analysed = source.Tree.Paths()
	}
	p := &Plan{Source: source, Edit: edit, Before: before}
	w := &work{random: random, tree: source.Tree.Clone(), before: before, wholeFolders: source.Scan != nil}
	step, err := p.step(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", source.Name, edit.Name, err)
	}
	for i := range step.Truth {
		step.Truth[i].Touched = step.Truth[i].Touched || edit.all
	}
	p.After = []Step{step}
	if edit.back {
		p.After = append(p.After, p.restored(step))
	}
	p.dress()
	return p, nil
}

// step returns the scan of the edited code.
func (p *Plan) step(ctx context.Context, w *work) (Step, error) {
	step := Step{Tree: w.tree, Report: p.Before.with(slices.Clone(p.Before.Results))}
	if p.Edit.code != nil {
		p.Edit.code(w)
		lines, err := NewLineMap(w.tree)
		if err != nil {
			return step, err
		}
		if err := p.scan(ctx, w, lines, &step); err != nil {
			return step, err
		}
		if !p.Edit.adjacent && !p.Source.ahead {
			for i := range step.Truth {
				step.Truth[i].Ambiguous = nil
			}
		}
	}
	if p.Before.Analysed != nil {
		step.Report.Analysed = w.tree.Paths()
	}
	if p.Edit.say != nil {
		p.Edit.say(w, step.Report)
	}
	if step.Truth == nil {
		step.Truth = follow(p.Before, step.Report)
	}
	if p.Edit.unseen != nil {
		step.skip(p.Edit.unseen(w))
	}
	if p.Edit.image {
		p.Before.Image, step.Report.Image = "registry.test:5000/acme/web:1.0", "registry.test:5000/acme/db:1.0"
		step.lose(func(int) bool { return true })
	}
	if p.Edit.half {
		step.Report.Failed = true
		n := len(step.Report.Results) / 2
		step.lose(func(i int) bool { return i >= n })
	}
	return step, nil
}

// scan returns the report of the edited code.
func (p *Plan) scan(ctx context.Context, w *work, lines *LineMap, step *Step) error {
	if p.Source.Scan != nil {
		report, err := p.Source.Scan(ctx, w.tree)
		if err == nil {
			step.Report, step.Scanned = report, true
			step.Truth = locate(p.Before, report, lines)
			return nil
		}
		if !errors.Is(err, errBroken) {
			return err
		}
	}
	step.Report = carried(p.Before, p.Source.Tree, w.tree, lines, w.words)
	step.Truth = follow(p.Before, step.Report)
	return nil
}

// skip removes files from the scan.
func (s *Step) skip(files map[string]bool) {
	s.Skipped = files
	s.Report.Analysed = slices.DeleteFunc(slices.Clone(s.Report.Analysed), func(file string) bool { return files[file] })
	s.lose(func(i int) bool { return files[s.Report.Results[i].File] })
}

// lose removes results from the report; their problems are still in the code.
func (s *Step) lose(gone func(i int) bool) {
	var kept []Result
	moved := make([]int, len(s.Report.Results)) // new index, -1: lost
	for i, result := range s.Report.Results {
		moved[i] = -1
		if !gone(i) {
			moved[i] = len(kept)
			kept = append(kept, result)
		}
	}
	for i, t := range s.Truth {
		if t.State != Here {
			continue
		}
		if moved[t.Result] < 0 {
			s.Truth[i] = Truth{State: Unseen, Touched: true}
		} else {
			s.Truth[i].Result = moved[t.Result]
		}
	}
	s.Report.Results = kept
}

// restored returns a scan of the code before the edit. What the edit touched still counts as touched.
func (p *Plan) restored(after Step) Step {
	truth := make([]Truth, len(after.Truth))
	for i := range truth {
		truth[i] = Truth{State: Here, Result: i, Touched: after.Truth[i].Touched}
	}
	return Step{Tree: p.Source.Tree, Report: p.Before, Truth: truth}
}
