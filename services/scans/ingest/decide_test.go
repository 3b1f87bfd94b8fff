package ingest

import (
	"testing"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
)

// TestDecisions tests the rules of closing (scan protocol, section 6: fixed vs removed).
func TestDecisions(t *testing.T) {
	known := &storev1.ScanCoverage{
		RulesKnown: true, Rules: []string{"r", "CA5350"}, FilesKnown: true, Files: []string{"a.go", "both.go"},
		Skipped: []string{"slow.go"}, Renamed: []string{"old.go", "both.go"},
	}
	with := func(change func(*Coverage)) *Coverage {
		c := &Coverage{ScanCoverage: &storev1.ScanCoverage{
			RulesKnown: known.RulesKnown, Rules: known.Rules, FilesKnown: known.FilesKnown, Files: known.Files, Skipped: known.Skipped, Renamed: known.Renamed,
		}, ListsAll: true}
		change(c)
		return c
	}
	all := with(func(*Coverage) {})
	before := &previousCoverage{ScanCoverage: &storev1.ScanCoverage{FilesKnown: true, Files: []string{"a.go"}, Skipped: []string{"slow.go", "lazy.go"}}}
	sarif := with(func(c *Coverage) { c.ListsAll = false })
	for name, c := range map[string]struct {
		coverage            *Coverage
		diff                bool
		before              *previousCoverage
		product, rule, path string
		want                decision
	}{
		"seen no more":                {all, false, nil, vocabulary.SAST, "r", "a.go", goneCovered},
		"part of a rule":              {all, false, nil, vocabulary.SAST, "CA5350/md5", "a.go", goneCovered},
		"no file":                     {all, false, nil, vocabulary.SAST, "r", "", goneRule},
		"rule not run":                {all, false, nil, vocabulary.SAST, "gone", "a.go", ruleGone},
		"file gone":                   {all, false, nil, vocabulary.SAST, "r", "gone.go", fileGone},
		"file renamed":                {all, false, nil, vocabulary.SAST, "r", "old.go", fileRenamed},
		"another file has the name":   {all, false, nil, vocabulary.SAST, "r", "both.go", goneCovered},
		"file skipped":                {all, false, nil, vocabulary.SAST, "r", "slow.go", keepState},
		"skipped, and rule not run":   {all, false, nil, vocabulary.SAST, "gone", "slow.go", keepState},
		"failed":                      {with(func(c *Coverage) { c.Failure = "crash" }), false, nil, vocabulary.SAST, "r", "a.go", keepState},
		"product scanned":             {with(func(c *Coverage) { c.Products = []string{vocabulary.SAST} }), false, nil, vocabulary.SAST, "r", "a.go", goneCovered},
		"product not scanned":         {with(func(c *Coverage) { c.Products = []string{vocabulary.SCA} }), false, nil, vocabulary.SAST, "r", "a.go", keepState},
		"rule failed":                 {with(func(c *Coverage) { c.FailedRules = []string{"r"} }), false, nil, vocabulary.SAST, "r", "a.go", keepState},
		"nothing known":               {unknownCoverage(), false, nil, vocabulary.SAST, "r", "a.go", goneReport},
		"rules known":                 {with(func(c *Coverage) { c.FilesKnown = false }), false, nil, vocabulary.SAST, "r", "gone.go", goneRule},
		"files known":                 {with(func(c *Coverage) { c.RulesKnown = false }), false, nil, vocabulary.SAST, "gone", "a.go", goneScanned},
		"left out for the first time": {sarif, false, nil, vocabulary.SAST, "r", "gone.go", keepState},
		"there before":                {sarif, false, &previousCoverage{ScanCoverage: all.ScanCoverage}, vocabulary.SAST, "r", "a.go", goneCovered},
		"left out twice":              {sarif, false, before, vocabulary.SAST, "r", "gone.go", fileMissing},
		"skipped before":              {sarif, false, before, vocabulary.SAST, "r", "lazy.go", keepState},
		"diff: looked at":             {all, true, nil, vocabulary.SAST, "r", "a.go", goneCovered},
		"diff: rule not run":          {all, true, nil, vocabulary.SAST, "gone", "a.go", keepState},
		"diff: not looked at":         {all, true, nil, vocabulary.SAST, "r", "gone.go", keepState},
		"diff: renamed":               {all, true, nil, vocabulary.SAST, "r", "old.go", fileRenamed},
		"diff: skipped":               {all, true, nil, vocabulary.SAST, "r", "slow.go", keepState},
		"diff: no file":               {all, true, nil, vocabulary.SAST, "r", "", keepState},
	} {
		if got := newDecider(c.coverage, !c.diff, c.before).decide(c.product, c.rule, c.path); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
