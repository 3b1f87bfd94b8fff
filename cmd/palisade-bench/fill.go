package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

const (
	// fillProjects is the number of projects in the store, each on two refs.
	fillProjects = 20
	// fillResults is the number of new findings per upload that fills the store. A page of one severity then has
	// findings of several projects, as with nightly scans of many projects.
	fillResults = 100
)

var fillRefs = []string{"main", "release"}

// fillTools are the scanners of the uploads, in turns. Their findings are code, dependencies and secrets.
var fillTools = []string{
	"benchscan", "benchscan", "benchscan", "osv-scanner", "benchscan", "benchscan", "benchscan", "benchscan", "benchscan", "gitleaks",
}

// fillUpload is an upload that fills the store: project by project, ref by ref, and again from the start. Each has its
// own category, so that none closes findings of another.
type fillUpload struct {
	project, ref, category string
	report                 []byte
}

func makeFillUpload(n, results int) (u fillUpload, err error) {
	pair := n / len(fillRefs) // the refs of a project have the same findings
	u.project = fmt.Sprintf("bench/project-%02d", pair%fillProjects)
	u.ref = fillRefs[n%len(fillRefs)]
	u.category = fmt.Sprintf("night-%04d", pair/fillProjects)
	// Each pass over the projects shifts the tools, so that each project has findings of all tools.
	tool := fillTools[(pair+pair/fillProjects)%len(fillTools)]
	u.report, err = makeReportOf(tool, uint64(pair), results)
	return u, err
}

// fill uploads findings until the store has the given number.
func (b *bench) fill(ctx context.Context, findings int) error {
	missing := (findings - b.stored + fillResults - 1) / fillResults
	first := b.uploads
	return makeUploads(ctx, first, max(0, missing), fillResults, func(ctx context.Context, u fillUpload) error {
		if (b.uploads-first)%500 == 0 {
			b.progress("fill: %d of %d findings", b.stored, findings)
		}
		if err := b.create(ctx, u.project, u.ref, u.category, u.report, fillResults); err != nil {
			return err
		}
		b.uploads++
		return nil
	})
}

// makeUploads sends count uploads of that many results, numbered from first, and generates the next ones while one is
// sent.
func makeUploads(ctx context.Context, first, count, results int, send func(context.Context, fillUpload) error) error {
	made := make(chan fillUpload, 8)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(made)
		for n := range count {
			u, err := makeFillUpload(first+n, results)
			if err != nil {
				return err
			}
			select {
			case made <- u:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	group.Go(func() error {
		for u := range made {
			if err := send(ctx, u); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// create uploads a report of the given number of new findings to the measured deployment.
func (b *bench) create(ctx context.Context, project, ref, category string, report []byte, results int) error {
	if err := b.client.create(ctx, project, ref, category, report, results); err != nil {
		return err
	}
	b.stored += results
	return nil
}

// decorate adds what triage, policies and people would change later to a part of the findings, so that lists filtered
// by it have rows to find and to skip.
func (b *bench) decorate(ctx context.Context) error {
	b.progress("fill: policies, verdicts, tags, fixes")
	for _, change := range []string{
		"policy_mode = 'rule-board-block' WHERE id % 20 = 1",
		"policy_mode = 'rule-board-pr-comments' WHERE id % 20 = 2",
		"autotriage_verdict = 'true_positive' WHERE id % 20 = 3",
		"autotriage_verdict = 'false_positive' WHERE id % 20 = 4",
		"component_tag = 'payments' WHERE id % 50 = 5",
		"component_tag = 'user data' WHERE id % 50 = 6",
		"click_to_fix_state = 'open' WHERE id % 100 = 7",
		"exposure = 'reachable', transitivity = 'direct', package = 'lodash' WHERE issue_type = 'sca' AND id % 4 = 0",
		"exposure = 'unreachable', transitivity = 'transitive', package = 'left-pad' WHERE issue_type = 'sca' AND id % 4 = 1",
	} {
		if _, err := b.db.ExecContext(ctx, "UPDATE findings SET "+change); err != nil {
			return fmt.Errorf("decorate: %s: %w", change, err)
		}
	}
	return b.db.settle(ctx)
}
