package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

const (
	// fillProjects, each on two refs, are the projects that fill the store.
	fillProjects = 20
	// fillResults is how many new findings each of the uploads that fill the store brings. So a page of one severity
	// holds findings of several projects, as it does where many projects are scanned every night.
	fillResults = 100
)

var fillRefs = []string{"main", "release"}

// fillTools are the scanners of the uploads, in turns; what they find are code, dependencies and secrets.
var fillTools = []string{
	"benchscan", "benchscan", "benchscan", "osv-scanner", "benchscan", "benchscan", "benchscan", "benchscan", "benchscan", "gitleaks",
}

// fillUpload is one of the uploads that fill the store: project by project, ref by ref, and again from the start. Each
// has a category of its own, so that none closes what another one found.
type fillUpload struct {
	project, ref, category string
	report                 []byte
}

func makeFillUpload(n int) (u fillUpload, err error) {
	pair := n / len(fillRefs) // the refs of a project have the same findings
	u.project = fmt.Sprintf("bench/project-%02d", pair%fillProjects)
	u.ref = fillRefs[n%len(fillRefs)]
	u.category = fmt.Sprintf("night-%04d", pair/fillProjects)
	// Each round over the projects shifts the tools, so that each project has findings of all.
	tool := fillTools[(pair+pair/fillProjects)%len(fillTools)]
	u.report, err = makeReportOf(tool, uint64(pair), fillResults)
	return u, err
}

// fill uploads findings until the store has so many.
func (b *bench) fill(ctx context.Context, findings int) error {
	missing := (findings - b.stored + fillResults - 1) / fillResults
	first := b.uploads
	return makeUploads(ctx, first, max(0, missing), func(ctx context.Context, u fillUpload) error {
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

// makeUploads makes so many uploads from the one with the number first on, and the next ones while one is sent.
func makeUploads(ctx context.Context, first, count int, send func(context.Context, fillUpload) error) error {
	made := make(chan fillUpload, 8)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(made)
		for n := range count {
			u, err := makeFillUpload(first + n)
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

// create uploads a report of so many new findings to the deployment that is measured.
func (b *bench) create(ctx context.Context, project, ref, category string, report []byte, results int) error {
	if err := b.client.create(ctx, project, ref, category, report, results); err != nil {
		return err
	}
	b.stored += results
	return nil
}

// decorate gives a part of the findings what triage, policies and people add later, so that lists by it have something
// to find and to skip.
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
