package ingest

import (
	"slices"
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// Coverage is which rules one analysis ran over which files, and so what it means that a finding was not seen.
type Coverage struct {
	// ScanCoverage is stored as it is, but for the product, which is made of Products. Rules are as the tool names them;
	// the lists need not be sorted.
	*storev1.ScanCoverage
	// Products are those that were scanned; nothing of others is closed or recognised. Empty: all of the analysis.
	Products []string
	// ListsAll: a file that is neither in files nor in skipped is not there any more. Where it is false (SARIF), the next
	// report has to leave it out, too.
	ListsAll bool
	// FailedRules did not come to an end: none of their findings is closed.
	FailedRules []string
}

// unknownCoverage is that of a report that says nothing about it: what is not in it is gone.
func unknownCoverage() *Coverage { return &Coverage{ScanCoverage: &storev1.ScanCoverage{}} }

// words say what is known, for people.
func (c *Coverage) words() string {
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

// sorted sorts a list and drops repeats.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// fate is what becomes of a finding that a scan did not see: its new state and why. Why is prefix, path and suffix,
// where about is true, else prefix alone. A state that is empty leaves the finding as it is.
type fate struct {
	state          string
	prefix, suffix string
	about          bool
}

var (
	leftAlone   = fate{}
	goneReport  = fate{state: lifecycle.Fixed, prefix: "gone from the report"}
	goneScanned = fate{state: lifecycle.Fixed, prefix: "gone from ", suffix: ": file was scanned", about: true}
	goneCovered = fate{state: lifecycle.Fixed, prefix: "gone from ", suffix: ": rule ran, file was scanned", about: true}
	goneRule    = fate{state: lifecycle.Fixed, prefix: "gone from the report: rule ran"}
	ruleGone    = fate{state: lifecycle.Removed, prefix: "its rule was not run any more"}
	fileRenamed = fate{state: lifecycle.Removed, prefix: "its file was renamed: ", about: true}
	fileGone    = fate{state: lifecycle.Removed, prefix: "its file was not scanned any more: ", about: true}
	fileMissing = fate{state: lifecycle.Removed, prefix: "its file is missing from two reports: ", about: true}
)

// judge decides about findings that a scan did not see, by what it looked at.
type judge struct {
	coverage                        *Coverage
	full                            bool
	rules, failedRules, products    map[string]bool
	files, skipped, renamed, before map[string]bool
	// knowsBefore: before is what the report before looked at, or skipped; a file that is missing from both is gone.
	knowsBefore bool
}

// newJudge takes the coverage of this scan, and the files of the report before it where they count.
func newJudge(c *Coverage, full bool, before *previousCoverage) *judge {
	j := &judge{
		coverage: c, full: full, rules: set(c.GetRules()), failedRules: set(c.FailedRules), products: set(c.Products),
		files: set(c.GetFiles()), skipped: set(c.GetSkipped()), renamed: set(c.GetRenamed()),
	}
	if before != nil && before.GetFilesKnown() {
		j.knowsBefore = true
		j.before = set(before.GetFiles())
		for _, path := range before.GetSkipped() {
			j.before[path] = true
		}
	}
	return j
}

// fate decides about a finding by its product, rule and file, which may be empty.
func (j *judge) fate(product, rule, path string) fate {
	switch {
	case j.coverage.GetFailure() != "", len(j.products) > 0 && !j.products[product], j.failedRules[rule], path != "" && j.skipped[path]:
		return leftAlone
	case !j.full:
		return j.diffFate(rule, path)
	}
	ran := j.ran(rule)
	switch {
	case j.coverage.GetRulesKnown() && !ran:
		return ruleGone
	case path != "" && j.renamed[path] && !j.files[path]:
		return fileRenamed
	case path == "" || !j.coverage.GetFilesKnown():
		if j.coverage.GetRulesKnown() {
			return goneRule
		}
		return goneReport
	case j.files[path]:
		if j.coverage.GetRulesKnown() {
			return goneCovered
		}
		return goneScanned
	case j.coverage.ListsAll:
		return fileGone
	case j.knowsBefore && !j.before[path]:
		return fileMissing
	}
	return leftAlone
}

// diffFate: a scan that compares with a base reports only what is new against it, and so speaks only about the files
// that it looked at.
func (j *judge) diffFate(rule, path string) fate {
	switch {
	case j.files[path] && j.ran(rule):
		return goneCovered
	case j.renamed[path] && !j.files[path]:
		return fileRenamed
	}
	return leftAlone
}

// ran reports whether the rule was run. A finding may name a part of a rule ("CA5350/md5" is of the rule CA5350).
func (j *judge) ran(rule string) bool {
	for name := rule; ; {
		if j.rules[name] {
			return true
		}
		slash := strings.LastIndexByte(name, '/')
		if slash <= 0 {
			return false
		}
		name = name[:slash]
	}
}
