package ingest

import (
	"slices"
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// Coverage is which rules one analysis ran over which files. It determines what a missing finding means.
type Coverage struct {
	// ScanCoverage is stored unchanged, except for the product, which is derived from Products. Rules have the names
	// that the tool uses. The lists may be unsorted.
	*storev1.ScanCoverage
	// Products are the scanned products. Findings of other products are neither matched nor closed. Empty means all
	// products of the analysis.
	Products []string
	// ListsAll says that a file which is neither in files nor in skipped no longer exists. If it is false (SARIF), the
	// file has to be missing from the next report, too.
	ListsAll bool
	// FailedRules did not complete. Their findings are not closed.
	FailedRules []string
}

// unknownCoverage is the coverage of a report that does not declare any: what it does not report is fixed.
func unknownCoverage() *Coverage { return &Coverage{ScanCoverage: &storev1.ScanCoverage{}} }

// summary says for people what is known.
func (c *Coverage) summary() string {
	switch {
	case c.GetFailure() != "":
		return "failed"
	case c.GetRulesKnown() && c.GetFilesKnown():
		return "rules and files"
	case c.GetRulesKnown():
		return "rules"
	case c.GetFilesKnown():
		return "files"
	}
	return "unknown"
}

// set makes a set of names.
func set(names []string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, name := range names {
		s[name] = true
	}
	return s
}

// sorted returns a sorted copy without duplicates.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// decision is what happens to a finding that a scan did not report: its new state and the reason. The reason is prefix,
// path and suffix if about is set, otherwise only prefix. An empty state leaves the finding unchanged.
type decision struct {
	state          string
	prefix, suffix string
	about          bool
}

var (
	keepState   = decision{}
	goneReport  = decision{state: lifecycle.Fixed, prefix: "gone from the report"}
	goneScanned = decision{state: lifecycle.Fixed, prefix: "gone from ", suffix: ": file was scanned", about: true}
	goneCovered = decision{state: lifecycle.Fixed, prefix: "gone from ", suffix: ": rule ran, file was scanned", about: true}
	goneRule    = decision{state: lifecycle.Fixed, prefix: "gone from the report: rule ran"}
	ruleGone    = decision{state: lifecycle.Removed, prefix: "its rule was not run any more"}
	fileRenamed = decision{state: lifecycle.Removed, prefix: "its file was renamed: ", about: true}
	fileGone    = decision{state: lifecycle.Removed, prefix: "its file was not scanned any more: ", about: true}
	fileMissing = decision{state: lifecycle.Removed, prefix: "its file is missing from two reports: ", about: true}
)

// decider decides about findings that a scan did not report, by the coverage of the scan.
type decider struct {
	coverage                        *Coverage
	full                            bool
	rules, failedRules, products    map[string]bool
	files, skipped, renamed, before map[string]bool
	// knowsBefore reports whether before has the files that the previous report scanned or skipped. A file that is missing
	// from both reports is gone.
	knowsBefore bool
}

// newDecider takes the coverage of this scan. before is the coverage of the previous report, or nil if it does not
// count.
func newDecider(c *Coverage, full bool, before *previousCoverage) *decider {
	d := &decider{
		coverage: c, full: full, rules: set(c.GetRules()), failedRules: set(c.FailedRules), products: set(c.Products),
		files: set(c.GetFiles()), skipped: set(c.GetSkipped()), renamed: set(c.GetRenamed()),
	}
	if before != nil && before.GetFilesKnown() {
		d.knowsBefore = true
		d.before = set(before.GetFiles())
		for _, path := range before.GetSkipped() {
			d.before[path] = true
		}
	}
	return d
}

// decide returns whether this scan closes a finding of the given product, rule and file. Empty values mean unknown.
func (d *decider) decide(product, rule, path string) decision {
	switch {
	case d.coverage.GetFailure() != "", len(d.products) > 0 && !d.products[product], d.failedRules[rule], path != "" && d.skipped[path]:
		return keepState
	case !d.full:
		return d.decideDiff(rule, path)
	}
	ran := d.ran(rule)
	switch {
	case d.coverage.GetRulesKnown() && !ran:
		return ruleGone
	case path != "" && d.renamed[path] && !d.files[path]:
		return fileRenamed
	case path == "" || !d.coverage.GetFilesKnown():
		if d.coverage.GetRulesKnown() {
			return goneRule
		}
		return goneReport
	case d.files[path]:
		if d.coverage.GetRulesKnown() {
			return goneCovered
		}
		return goneScanned
	case d.coverage.ListsAll:
		return fileGone
	case d.knowsBefore && !d.before[path]:
		return fileMissing
	}
	return keepState
}

// decideDiff decides for a diff scan. It reports only what is new compared with its base, so it closes findings only in
// files that it scanned.
func (d *decider) decideDiff(rule, path string) decision {
	switch {
	case d.files[path] && d.ran(rule):
		return goneCovered
	case d.renamed[path] && !d.files[path]:
		return fileRenamed
	}
	return keepState
}

// ran reports whether the rule was run. A finding may name a part of a rule ("CA5350/md5" belongs to the rule CA5350).
func (d *decider) ran(rule string) bool {
	for name := rule; ; {
		if d.rules[name] {
			return true
		}
		slash := strings.LastIndexByte(name, '/')
		if slash <= 0 {
			return false
		}
		name = name[:slash]
	}
}
