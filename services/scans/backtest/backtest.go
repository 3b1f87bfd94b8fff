// Package backtest replays the history of scans with remediation policies: what would they have done? It evaluates
// stored findings, with their states and decisions at the end of each scan, by the rules of the gate of scans (packages
// blocking and remediation).
package backtest

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/remediation"
)

// Bounds of a replay: they limit its memory to about half a gigabyte.
const (
	maxFindings = 2_000_000
	maxScans    = 500_000
)

// Input is what to replay.
type Input struct {
	// Policies are the active policies.
	Policies []remediation.Policy
	// Projects are the ids of the projects; empty means all that the caller sees.
	Projects []int64
	// From and To are the period in which scans ended, in microseconds since 1970.
	From, To int64
}

// Project is a replayed project.
type Project struct {
	ID      int64
	Name    string
	tags    []string
	primary string
	// Scans is the number of its scans in the period.
	Scans int
}

// Hit is a finding in a scan to which policies apply.
type Hit struct {
	Project *Project
	// Scan is the id of the scan, ScanNumber its number in the project, from 0, and EndedAt when it ended.
	Scan       int64
	ScanNumber int
	EndedAt    int64
	Ref        string
	// Finding and Rule are ids.
	Finding, Rule int64
	// Policies are the positions of the policies that apply.
	Policies []int
}

// Summary says what was replayed, and how far the stored history allowed it.
type Summary struct {
	// Scans are the replayed scans, Findings the findings that they reported.
	Scans, Findings int
	// Uncovered is the number of scans whose tools and files are no longer stored.
	Uncovered int
	// RuleNames are the names of the rules, by id.
	RuleNames map[int64]string
}

// Replay yields what the policies apply to: project by project, and finding by finding within a project. A hit is valid
// until yield returns. ended is called after each project.
func Replay(ctx context.Context, db *ent.Client, in Input, yield func(*Hit), ended func(*Project)) (*Summary, error) {
	h := newHistory(db, in)
	for _, step := range []struct {
		what string
		read func(context.Context) error
	}{
		{"projects", h.readProjects}, {"scans", h.readScans}, {"coverage of scans", h.readCoverages}, {"scans of compared commits", h.readCompared},
		{"findings", h.readFindings}, {"rules", h.readRules},
	} {
		if err := step.read(ctx); err != nil {
			return nil, fmt.Errorf("read %s: %w", step.what, err)
		}
	}
	out := &Summary{RuleNames: map[int64]string{}}
	for id, of := range h.rules {
		out.RuleNames[id] = of.Name
	}
	var waiting []*replayed
	wanted := map[int64]bool{}
	projects := h.inOrder()
	for i, p := range projects {
		p.prepare(h)
		p.wanted(wanted, h.steps)
		if waiting = append(waiting, p); len(wanted) < codesAtOnce && i < len(projects)-1 {
			continue
		}
		read, err := readCodes(ctx, db, wanted)
		if err != nil {
			return nil, fmt.Errorf("read the code of findings: %w", err)
		}
		for _, of := range waiting {
			of.codes = read
			if err := of.replay(ctx, h, out, yield); err != nil {
				return nil, err
			}
			ended(&of.Project)
		}
		waiting = nil
		clear(wanted)
	}
	return out, nil
}

// errTooMuch refuses a history that does not fit into memory.
func errTooMuch(what string, limit int) error {
	return apierr.FailedPrecondition("the period has more than %d %s: name projects, or fewer days", limit, what)
}
