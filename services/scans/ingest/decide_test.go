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
	for name, c := range map[string]struct {
		coverage            *Coverage
		diff                bool
		product, rule, path string
		want                decision
	}{
		"seen no more":              {all, false, vocabulary.SAST, "r", "a.go", goneCovered},
		"part of a rule":            {all, false, vocabulary.SAST, "CA5350/md5", "a.go", goneCovered},
		"no file":                   {all, false, vocabulary.SAST, "r", "", goneRule},
		"rule not run":              {all, false, vocabulary.SAST, "gone", "a.go", ruleGone},
		"file gone":                 {all, false, vocabulary.SAST, "r", "gone.go", fileGone},
		"file may be there":         {all, false, vocabulary.SAST, "r", "other.go", keepState},
		"file renamed":              {all, false, vocabulary.SAST, "r", "old.go", fileRenamed},
		"another file has the name": {all, false, vocabulary.SAST, "r", "both.go", goneCovered},
		"file skipped":              {all, false, vocabulary.SAST, "r", "slow.go", keepState},
		"skipped, and rule not run": {all, false, vocabulary.SAST, "gone", "slow.go", keepState},
		"failed":                    {with(func(c *Coverage) { c.Failure = "crash" }), false, vocabulary.SAST, "r", "a.go", keepState},
		"product scanned":           {with(func(c *Coverage) { c.Products = []string{vocabulary.SAST} }), false, vocabulary.SAST, "r", "a.go", goneCovered},
		"product not scanned":       {with(func(c *Coverage) { c.Products = []string{vocabulary.SCA} }), false, vocabulary.SAST, "r", "a.go", keepState},
		"dependencies unknown":      {with(func(c *Coverage) { c.Unresolved = []string{"a.go"} }), false, vocabulary.SCA, "r", "a.go", keepState},
		"code beside dependencies":  {with(func(c *Coverage) { c.Unresolved = []string{"a.go"} }), false, vocabulary.SAST, "r", "a.go", goneCovered},
		"rule failed":               {with(func(c *Coverage) { c.FailedRules = []string{"r"} }), false, vocabulary.SAST, "r", "a.go", keepState},
		"nothing known":             {unknownCoverage(), false, vocabulary.SAST, "r", "a.go", goneReport},
		"rules known":               {with(func(c *Coverage) { c.FilesKnown = false }), false, vocabulary.SAST, "r", "gone.go", goneRule},
		"files known":               {with(func(c *Coverage) { c.RulesKnown = false }), false, vocabulary.SAST, "gone", "a.go", goneScanned},
		"diff: looked at":           {all, true, vocabulary.SAST, "r", "a.go", goneCovered},
		"diff: rule not run":        {all, true, vocabulary.SAST, "gone", "a.go", keepState},
		"diff: not looked at":       {all, true, vocabulary.SAST, "r", "gone.go", keepState},
		"diff: renamed":             {all, true, vocabulary.SAST, "r", "old.go", fileRenamed},
		"diff: skipped":             {all, true, vocabulary.SAST, "r", "slow.go", keepState},
		"diff: no file":             {all, true, vocabulary.SAST, "r", "", keepState},
	} {
		d := newDecider(c.coverage, !c.diff)
		d.absent["gone.go"] = fileGone
		if got := d.decide(c.product, c.rule, c.path); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
