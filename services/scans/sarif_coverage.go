package scans

import (
	"maps"
	"slices"
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/sarif"
)

// Coverages combines what the runs of each analysis declare about rules and files. If one run does not declare it, it
// is unknown for the analysis.
func (s *sarifSource) Coverages() (map[ingest.Analysis]*ingest.Coverage, error) {
	all := map[ingest.Analysis]*ingest.Coverage{}
	for key, runs := range s.groups() {
		c := &ingest.Coverage{ScanCoverage: &storev1.ScanCoverage{RulesKnown: true, FilesKnown: true, Hashes: map[string]string{}}}
		var versions []string
		for _, run := range runs {
			addRun(c, run, &s.seen[run.Index])
			c.FailedRules = append(c.FailedRules, s.failedRules[run.Index]...)
			c.Products = slices.AppendSeq(append(c.Products, run.Products...), maps.Keys(s.seen[run.Index].products))
			c.MayMix = c.MayMix || !run.ProductGiven
			versions = append(versions, run.Tool.Version)
		}
		slices.Sort(versions)
		c.ToolVersion = strings.Join(slices.Compact(versions), ", ")
		c.Failure, c.RanAt = s.incompleteReason(key, runs), ranAt(runs)
		if !c.RulesKnown {
			c.Rules = nil
		}
		if !c.FilesKnown {
			c.Files = nil
		}
		all[key] = c
	}
	return all, nil
}

func addRun(c *ingest.Coverage, run *sarif.Run, seen *seenInRun) {
	rules, known := ranRules(run, seen)
	c.RulesKnown = c.RulesKnown && known
	c.Rules = append(c.Rules, rules...)
	artifacts, complete := run.Artifacts()
	files, known := scannedFiles(artifacts, complete, seen)
	c.FilesKnown = c.FilesKnown && known
	c.Files = append(c.Files, files...)
	for _, artifact := range artifacts {
		if artifact.Hash != "" {
			c.Hashes[artifact.Path] = artifact.Hash
		}
	}
	failedFiles, failedRules := run.Failed()
	c.Skipped = append(c.Skipped, failedFiles...)
	c.FailedRules = append(c.FailedRules, failedRules...)
	c.Rebased = slices.AppendSeq(c.Rebased, maps.Keys(seen.rebased))
	c.PlacelessRules = append(c.PlacelessRules, seen.having(seenWithoutFile)...)
	if seen.nameless {
		c.NamelessRule = run.UnnamedRule()
	}
}

// ranRules returns the rules that ran, if the run has a complete catalogue. A rule without results shows that the
// catalogue does not only list rules with results.
func ranRules(run *sarif.Run, seen *seenInRun) (rules []string, known bool) {
	if seen.unnamedRules || !run.RulesComplete() {
		return nil, false
	}
	for _, rule := range run.Rules() {
		rules = append(rules, rule.ID)
		known = known || seen.rules[rule.ID] == 0
	}
	return rules, known
}

// scannedFiles returns the files that the tool scanned, if the run declares them: by their role, or by listing files
// without results, too. Files with results are always included.
func scannedFiles(artifacts []sarif.Artifact, complete bool, seen *seenInRun) (files []string, known bool) {
	var targets, plain []string
	for _, artifact := range artifacts {
		switch {
		case artifact.Target:
			targets = append(targets, artifact.Path)
		case artifact.Plain:
			plain = append(plain, artifact.Path)
		}
	}
	switch {
	case !complete:
		return nil, false
	case len(targets) > 0:
		files = targets
	case seen.unnamedFiles || !slices.ContainsFunc(plain, func(path string) bool { return !seen.files[path] }):
		return nil, false
	default:
		files = plain
	}
	return slices.AppendSeq(files, maps.Keys(seen.files)), true
}
