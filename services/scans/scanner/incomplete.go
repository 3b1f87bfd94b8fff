package scanner

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/go-json-experiment/json"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// failedNameless is why a scan closes nothing if it had an error anywhere.
const failedNameless = "the scanner reported an error that names neither a file nor a rule"

// anywhere is the subproject that contains all files.
const anywhere = "."

// incomplete reads what a scanner reports about files, rules and dependencies that it could not look at.
type incomplete struct {
	doc      *document
	coverage *storev1.ScannerCoverage
	bytes    int64 // of paths and rules
}

// wireError is an error of the engine, in the form of its JSON output. Errors of rules may have spans in the file of
// the rule, so only errors without a rule are about the files of their spans.
type wireError struct {
	Level text `json:"level"`
	Rule  text `json:"rule_id"`
	Path  text `json:"path"`
	Type  raw  `json:"type"`
	Spans []struct {
		File text `json:"file"`
	} `json:"spans"`
}

// unreadable records that a part without which the scan cannot be understood is missing or has another type.
func (c *incomplete) unreadable(name string) {
	c.coverage.Failure = "the scanner sent " + name + " in an unknown form, or not at all"
}

// list reads an optional list. It may be missing or null.
func (c *incomplete) list(element func(int) error, unreadable func() error) error {
	if k := c.doc.kind(); k != '[' && k != 'n' {
		return cmp.Or(unreadable(), c.doc.skip())
	}
	return c.doc.array(element)
}

// errors reads stats.errors: an error is about files, or else about a rule, or else about the whole scan. It adds the
// ones about broken rules to broken.
func (c *incomplete) errors(broken *[]RuleError) error {
	return c.list(func(int) error {
		var value raw
		if _, err := c.doc.item(&value); err != nil {
			return err
		}
		if one, ok := ruleErrorOf(value); ok && len(*broken) < maxRuleErrors {
			*broken = append(*broken, one)
		}
		var w wireError
		if json.Unmarshal(value, &w, decodeOptions) != nil {
			w = wireError{} // a text, or a form of another version
		}
		files := w.files()
		for _, file := range files {
			if err := c.keep(&c.coverage.SkippedPaths, file); err != nil {
				return err
			}
		}
		switch {
		case len(files) > 0:
		case w.Rule != "":
			return c.keep(&c.coverage.FailedRules, string(w.Rule))
		case w.Level != "info":
			c.coverage.Failure = failedNameless
		}
		return nil
	}, func() error {
		c.unreadable("stats.errors")
		return nil
	})
}

func (w *wireError) files() (files []string) {
	if w.Path != "" {
		files = append(files, string(w.Path))
	}
	if len(w.Type) > 0 && w.Type[0] == '[' { // ["PartialParsing", [{"path": …}]]
		files = append(files, pathsIn(w.Type)...)
	}
	if w.Rule == "" && len(files) == 0 {
		for _, span := range w.Spans {
			if span.File != "" {
				files = append(files, string(span.File))
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// skipped reads skipped_paths: paths, or objects that have them.
func (c *incomplete) skipped() error {
	return c.list(func(int) error {
		var value raw
		problem, err := c.doc.item(&value)
		if err != nil {
			return err
		}
		paths := slices.DeleteFunc(pathsIn(value), func(path string) bool { return path == "" })
		if problem != "" || len(paths) == 0 && len(value) > 0 {
			c.coverage.Failure = failedSkipped
		}
		for _, path := range paths {
			if err := c.keep(&c.coverage.SkippedPaths, path); err != nil {
				return err
			}
		}
		return nil
	}, func() error {
		c.coverage.Failure = failedSkipped
		return nil
	})
}

// parserErrors reads dependency_parser_errors. The dependencies of the directory of such a file are unknown.
func (c *incomplete) parserErrors() error {
	return c.list(func(int) error {
		var w struct {
			Path text `json:"path"`
		}
		if _, err := c.doc.item(&w); err != nil {
			return err
		}
		return c.keep(&c.coverage.SkippedSubprojects, path.Dir(string(w.Path)))
	}, c.anySubproject)
}

func (c *incomplete) anySubproject() error { return c.keep(&c.coverage.SkippedSubprojects, anywhere) }

// subprojects reads subprojects with unknown dependencies: their names, or the paths that describe them. A subproject
// without a path may be anywhere.
func (c *incomplete) subprojects() error {
	return c.list(func(int) error {
		var value raw
		if _, err := c.doc.item(&value); err != nil {
			return err
		}
		paths := pathsIn(value)
		if len(paths) == 0 {
			paths = []string{anywhere}
		}
		for _, path := range paths {
			if err := c.keep(&c.coverage.SkippedSubprojects, path); err != nil {
				return err
			}
		}
		return nil
	}, c.anySubproject)
}

// parseRate reads stats.parse_rate. It does not say which files were parsed only in part.
func (c *incomplete) parseRate(value []byte) {
	var rates map[string]struct {
		Parsed      count `json:"targets_parsed"`
		Targets     count `json:"num_targets"`
		ParsedBytes count `json:"bytes_parsed"`
		Bytes       count `json:"num_bytes"`
	}
	if json.Unmarshal(value, &rates, decodeOptions) != nil {
		c.coverage.Failure = "the scanner reported its parse rate in an unknown form"
		return
	}
	for language, rate := range rates {
		if rate.Parsed < rate.Targets || rate.ParsedBytes < rate.Bytes {
			c.coverage.PartlyParsed = append(c.coverage.PartlyParsed, &storev1.PartlyParsed{
				Language: plain(language, maxName), Files: int64(rate.Targets - rate.Parsed), Bytes: int64(rate.Bytes - rate.ParsedBytes),
			})
		}
	}
	slices.SortFunc(c.coverage.PartlyParsed, func(a, b *storev1.PartlyParsed) int { return cmp.Compare(a.GetLanguage(), b.GetLanguage()) })
}

// keep adds a path or a rule. Their size is limited, because they are held in memory.
func (c *incomplete) keep(list *[]string, name string) error {
	name = plain(name, maxName)
	if c.bytes += int64(len(name)) + 16; c.bytes > c.doc.limits.MaxPathBytes {
		return &LimitError{fmt.Sprintf("paths and rule ids have more than %d bytes", c.doc.limits.MaxPathBytes)}
	}
	if name != "" {
		*list = append(*list, name)
	}
	return nil
}
