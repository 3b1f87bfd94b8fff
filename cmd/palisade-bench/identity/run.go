package identity

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// Outcome is a row of the table.
type Outcome struct {
	Edit    Edit
	Source  string
	Scanned bool // the scanner ran on the edited code
	Counts  Counts
	// Faults describes each faulty problem.
	Faults []string
}

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// project returns the project of a plan; each plan has its own.
func (p *Plan) project() string {
	return "identity/" + strings.Trim(notPlain.ReplaceAllString(strings.ToLower(p.Source.Name+"-"+p.Edit.Name), "-"), "-")
}

// Run uploads the scans of a plan, triages half of the findings before the edit, and counts.
func (p *Plan) Run(ctx context.Context, server *Server, random *rand.Rand) (Outcome, error) {
	o := Outcome{Edit: p.Edit, Source: p.Source.Name, Scanned: p.After[0].Scanned}
	problems, of, err := p.begin(ctx, server, random)
	if err != nil {
		return o, fmt.Errorf("%s, %s: %w", p.Source.Name, p.Edit.Name, err)
	}
	for i, step := range p.After {
		if err := server.scan(ctx, p.project(), p.Source, step, i+2); err != nil {
			return o, fmt.Errorf("%s, %s, scan %d: %w", p.Source.Name, p.Edit.Name, i+2, err)
		}
		listed, err := server.List(ctx, p.project())
		if err != nil {
			return o, err
		}
		truth := make([]Truth, len(of))
		for n, result := range of {
			truth[n] = step.Truth[result]
		}
		counts, faults := Count(problems, truth, step.Report, listed)
		for _, f := range faults {
			o.Faults = append(o.Faults, p.describe(f, of[f.Problem], truth[f.Problem], step))
		}
		if i > 0 {
			counts.Findings = 0 // already counted
		}
		o.Counts.Add(counts)
		closed(problems, listed)
	}
	return o, nil
}

// describe formats a fault of a result in the report before the edit.
func (p *Plan) describe(f Fault, result int, truth Truth, step Step) string {
	place := func(r Result) string { return fmt.Sprintf("%s:%d:%d", r.File, r.Line, r.Column) }
	old := p.Before.Results[result]
	text := fmt.Sprintf("%s: %s at %s, %q", f.What, old.Rule, place(old), cmp.Or(old.Snippet, old.Message))
	switch truth.State {
	case Here:
		text += ", is at " + place(step.Report.Results[truth.Result])
	case Gone:
		text += ", is gone"
	case Unseen:
		text += ", was not looked at"
	}
	if f.Result >= 0 {
		text += "; its finding is at " + place(step.Report.Results[f.Result])
	}
	return text
}

// scan uploads the report of a step. n counts the scans of the project.
func (s *Server) scan(ctx context.Context, project string, source *Source, step Step, n int) error {
	if source.Protocol {
		return s.protocolScan(ctx, project, step, n)
	}
	return s.Upload(ctx, project, step.Report)
}

// begin creates the findings and triages half of them. It returns them and the indexes of their results.
func (p *Plan) begin(ctx context.Context, server *Server, random *rand.Rand) (problems []Problem, of []int, err error) {
	first := Step{Tree: p.Source.Tree, Report: p.Before}
	if err := server.scan(ctx, p.project(), p.Source, first, 1); err != nil {
		return nil, nil, err
	}
	listed, err := server.List(ctx, p.project())
	if err != nil {
		return nil, nil, err
	}
	open := map[int64]bool{}
	for _, f := range listed {
		open[f.ID] = f.Status == "open"
	}
	for i, id := range MatchFindings(p.Before, listed) {
		if !open[id] {
			continue // suppressed in the code, or not a problem for the server
		}
		problem := Problem{Finding: id}
		if random.IntN(2) == 0 {
			at := p.Before.Results[i]
			problem.Decision = &Decision{
				Status: []string{"ignored", "reviewing", "fixing"}[random.IntN(3)],
				Note:   fmt.Sprintf("no. %d: looked at %s, line %d, column %d", i, at.File, at.Line, at.Column),
			}
			if err := server.Decide(ctx, id, *problem.Decision); err != nil {
				return nil, nil, err
			}
		}
		problems, of = append(problems, problem), append(of, i)
	}
	if len(problems) < len(p.Before.Results)*9/10 {
		return nil, nil, fmt.Errorf("%d results became only %d open findings", len(p.Before.Results), len(problems))
	}
	return problems, of, nil
}

// closed records which findings are closed now.
func closed(problems []Problem, listed []Finding) {
	open := map[int64]bool{}
	for _, f := range listed {
		open[f.ID] = f.Status != statusFixed
	}
	for i := range problems {
		problems[i].Closed = !open[problems[i].Finding]
	}
}
