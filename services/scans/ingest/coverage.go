package ingest

import (
	"slices"
	"strings"
	"time"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Coverage is which rules one analysis ran over which files. It determines what a missing finding means. Each result of
// the placeless rules may be a finding in any file, so their findings in files are not closed. Each result of the
// nameless rule may be a finding of any rule, so the findings of other rules are not closed.
type Coverage struct {
	// ScanCoverage is stored unchanged, except for the product, which is derived from Products. Rules have the names
	// that the tool uses. The lists may be unsorted.
	*storev1.ScanCoverage
	// Products are the scanned products. Findings of other products are neither matched nor closed. Empty means all
	// products of the analysis.
	Products []string
	// MayMix says that the results may be of other products than these, so that the products of the report before
	// count: see inheritProducts.
	MayMix bool
	// ListsAll says that the files are all that the tool looked for: a file that is neither in files nor in skipped no
	// longer exists, or belongs to another part of the project (see absences). If it is false (SARIF), the file has to
	// be missing from the next report, too.
	ListsAll bool
	// Rebased are present paths of results that the report writes with another root: absolute, or out of the repository.
	// Their files may have had other paths before.
	Rebased []string
	// RanAt is when the tool ran, as the report says; zero if unknown. It orders reports without commit times.
	RanAt time.Time
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
	fileLeft    = decision{state: lifecycle.Removed, prefix: "no scan has searched its file for a while: ", about: true}
	fileMissing = decision{state: lifecycle.Removed, prefix: "its file is missing from two reports: ", about: true}
)

// aboutFile reports whether the files of the finding are gone, as far as the coverage tells. Such a decision does not
// rest on the silence of one report.
func (f decision) aboutFile() bool {
	return f == fileRenamed || f == fileGone || f == fileLeft || f == fileMissing || f == fileReverted
}

// despiteIgnoring reports whether the decision holds for a finding in a path that a policy ignores. A scan is silent
// about it because it skipped the path, unless it says that it searched the file, or that the file or the rule is gone.
func (f decision) despiteIgnoring() bool {
	return f == goneScanned || f == goneCovered || f == fileRenamed || f == ruleGone
}

// missedAgain is the decision after two reports in a row missed a finding.
func (f decision) missedAgain() decision {
	const again = "; two reports in a row miss it"
	if f.about {
		f.suffix += again
	} else {
		f.prefix += again
	}
	return f
}

// decider decides about findings that a scan did not report, by the coverage of the scan.
type decider struct {
	coverage                     *Coverage
	full                         bool
	rules, failedRules, products map[string]bool
	placelessRules, unresolved   map[string]bool
	files, skipped, renamed      map[string]bool
	// absent has the decisions about files that this scan did not search.
	absent map[string]decision
}

// newDecider takes the coverage of a scan.
func newDecider(c *Coverage, full bool) *decider {
	return &decider{
		coverage: c, full: full, rules: set(c.GetRules()), failedRules: set(c.FailedRules), products: set(c.Products),
		placelessRules: set(c.PlacelessRules), unresolved: set(c.Unresolved),
		files: set(c.GetFiles()), skipped: set(c.GetSkipped()), renamed: set(c.GetRenamed()), absent: map[string]decision{},
	}
}

// blind reports whether the scan says nothing about findings of the given product, rule and file that it does not
// report.
func (d *decider) blind(product, rule, path string) bool {
	switch {
	case d.coverage.GetFailure() != "", len(d.products) > 0 && !d.products[product], d.failedRules[rule]:
		return true
	case path != "" && (d.skipped[path] || d.placelessRules[rule] || product == vocabulary.SCA && d.unresolved[path]):
		return true
	}
	return d.coverage.NamelessRule != "" && d.coverage.NamelessRule != rule
}

// unsearched reports whether the scan did not search a file, although it lists its files.
func (d *decider) unsearched(path string) bool {
	return path != "" && d.coverage.GetFilesKnown() && !d.files[path] && !d.skipped[path]
}

// decide returns whether this scan closes a finding of the given product, rule and file. Empty values mean unknown.
func (d *decider) decide(product, rule, path string) decision {
	switch {
	case d.blind(product, rule, path):
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
	}
	return d.absent[path]
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
