package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// part is a group of measurements that can be run alone.
type part struct {
	name, title string
	measure     func(b *bench, ctx context.Context) ([]row, error)
}

// Names of parts that are referenced.
const (
	partGrowth     = "growth"
	partReports    = "reports"
	partHostile    = "hostile"
	partNeighbours = "neighbours"
	partSkewed     = "skewed"
)

// allParts returns the parts in execution order: first parts that only read, then parts that change findings, then
// parts that add many. Growth has no function: it is measured while the store is filled.
func allParts() []part {
	return []part{
		{partGrowth, "Growth with the size of the store", nil},
		{"size", "Start and size", (*bench).measureSize},
		{"pages", "A page of findings", (*bench).measurePages},
		{"deep", "Deep pages", (*bench).measureDeep},
		{"filters", "Lists and filters", (*bench).measureFilters},
		{"issues", "Issues in any order, numbers and groups", (*bench).measureIssues},
		{"dependencies", "Lists of dependencies", (*bench).measureDependencies},
		{"issue", "One issue", (*bench).measureIssue},
		{"uploads", "Report uploads", (*bench).measureUploads},
		{"triage", "Triage", (*bench).measureTriage},
		{"feed", "Change feed", (*bench).measureFeed},
		{"import", "Large imports", (*bench).measureImport},
		{partSkewed, "Random filters", (*bench).measureSkewed},
		{partReports, "Reports", (*bench).measureReports},
		{partHostile, "Hostile messages", (*bench).measureHostile},
		{partNeighbours, "Fairness among tenants", (*bench).measureNeighbours},
	}
}

func partNames() []string {
	var names []string
	for _, p := range allParts() {
		names = append(names, p.name)
	}
	return names
}

// wants reports whether a part is selected.
func (o options) wants(name string) bool { return len(o.only) == 0 || slices.Contains(o.only, name) }

// checkOnly rejects unknown parts.
func (o options) checkOnly() error {
	for _, name := range o.only {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("--only: got %q, want some of %s", name, strings.Join(partNames(), ","))
		}
	}
	return nil
}

// measure fills the store and runs the selected parts. A part that fails does not discard the results of the others.
func (b *bench) measure(ctx context.Context) (sections []section, err error) {
	ownStore := func(name string) bool {
		return slices.Contains([]string{partSkewed, partReports, partHostile, partNeighbours}, name)
	}
	if len(b.only) == 0 || slices.ContainsFunc(b.only, func(name string) bool { return !ownStore(name) }) {
		grown, err := b.grow(ctx)
		if err != nil {
			return nil, err
		}
		if len(grown) > 0 {
			sections = append(sections, section{title: allParts()[0].title, rows: grown})
		}
	}
	for _, p := range allParts() {
		if p.measure == nil || !b.wants(p.name) {
			continue
		}
		b.progress("%s", strings.ToLower(p.title))
		rows, failed := p.measure(b, ctx)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.name, failed))
			b.progress("%s: %v", p.name, failed)
			rows = nil
		}
		if ctx.Err() != nil || b.server == nil { // a failed part may have left it stopped
			break
		}
		if len(rows) > 0 {
			sections = append(sections, section{title: p.title, rows: rows})
		}
	}
	return sections, err
}
