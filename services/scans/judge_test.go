package scans

import (
	"testing"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// TestFates goes through the rules of closing (scan protocol, section 6: fixed vs removed).
func TestFates(t *testing.T) {
	known := &storev1.ScanCoverage{
		RulesKnown: true, Rules: []string{"r", "CA5350"}, FilesKnown: true, Files: []string{"a.go", "both.go"},
		Skipped: []string{"slow.go"}, Renamed: []string{"old.go", "both.go"},
	}
	with := func(change func(*coverage)) *coverage {
		c := &coverage{ScanCoverage: &storev1.ScanCoverage{
			RulesKnown: known.RulesKnown, Rules: known.Rules, FilesKnown: known.FilesKnown, Files: known.Files, Skipped: known.Skipped, Renamed: known.Renamed,
		}, listsAll: true}
		change(c)
		return c
	}
	all := with(func(*coverage) {})
	before := &previousCoverage{ScanCoverage: &storev1.ScanCoverage{FilesKnown: true, Files: []string{"a.go"}, Skipped: []string{"slow.go", "lazy.go"}}}
	sarif := with(func(c *coverage) { c.listsAll = false })
	for name, c := range map[string]struct {
		coverage            *coverage
		diff                bool
		before              *previousCoverage
		product, rule, path string
		want                fate
	}{
		"seen no more":                {all, false, nil, sast, "r", "a.go", goneCovered},
		"part of a rule":              {all, false, nil, sast, "CA5350/md5", "a.go", goneCovered},
		"no file":                     {all, false, nil, sast, "r", "", goneRule},
		"rule not run":                {all, false, nil, sast, "gone", "a.go", ruleGone},
		"file gone":                   {all, false, nil, sast, "r", "gone.go", fileGone},
		"file renamed":                {all, false, nil, sast, "r", "old.go", fileRenamed},
		"another file has the name":   {all, false, nil, sast, "r", "both.go", goneCovered},
		"file skipped":                {all, false, nil, sast, "r", "slow.go", leftAlone},
		"skipped, and rule not run":   {all, false, nil, sast, "gone", "slow.go", leftAlone},
		"failed":                      {with(func(c *coverage) { c.Failure = "crash" }), false, nil, sast, "r", "a.go", leftAlone},
		"product scanned":             {with(func(c *coverage) { c.products = []string{sast} }), false, nil, sast, "r", "a.go", goneCovered},
		"product not scanned":         {with(func(c *coverage) { c.products = []string{sca} }), false, nil, sast, "r", "a.go", leftAlone},
		"rule failed":                 {with(func(c *coverage) { c.failedRules = []string{"r"} }), false, nil, sast, "r", "a.go", leftAlone},
		"nothing known":               {unknownCoverage(), false, nil, sast, "r", "a.go", goneReport},
		"rules known":                 {with(func(c *coverage) { c.FilesKnown = false }), false, nil, sast, "r", "gone.go", goneRule},
		"files known":                 {with(func(c *coverage) { c.RulesKnown = false }), false, nil, sast, "gone", "a.go", goneScanned},
		"left out for the first time": {sarif, false, nil, sast, "r", "gone.go", leftAlone},
		"there before":                {sarif, false, &previousCoverage{ScanCoverage: all.ScanCoverage}, sast, "r", "a.go", goneCovered},
		"left out twice":              {sarif, false, before, sast, "r", "gone.go", fileMissing},
		"skipped before":              {sarif, false, before, sast, "r", "lazy.go", leftAlone},
		"diff: looked at":             {all, true, nil, sast, "r", "a.go", goneCovered},
		"diff: rule not run":          {all, true, nil, sast, "gone", "a.go", leftAlone},
		"diff: not looked at":         {all, true, nil, sast, "r", "gone.go", leftAlone},
		"diff: renamed":               {all, true, nil, sast, "r", "old.go", fileRenamed},
		"diff: skipped":               {all, true, nil, sast, "r", "slow.go", leftAlone},
		"diff: no file":               {all, true, nil, sast, "r", "", leftAlone},
	} {
		if got := newJudge(c.coverage, !c.diff, c.before).fate(c.product, c.rule, c.path); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
