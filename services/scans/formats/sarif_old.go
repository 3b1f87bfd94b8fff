package formats

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// sarif10 and sarif20 are SARIF before 2.1.0. Tools wrote them for years, and 2.1.0 has other names for most members.
var (
	sarif10 = Format{Name: "sarif-1.0", Title: "SARIF 1.0", Convert: convertOldSARIF, Recognises: func(o *Outline) bool {
		return o.Has("runs") && (strings.HasPrefix(o.Value("version"), "1.") || strings.Contains(o.Value("$schema"), "sarif-1.0") ||
			o.Value("version") == "" && o.Has("runs[].tool.name") && o.Has("runs[].rules"))
	}}
	sarif20 = Format{Name: "sarif-2.0", Title: "SARIF 2.0, drafts", Convert: convertOldSARIF, Recognises: func(o *Outline) bool {
		return o.Has("runs") && (strings.HasPrefix(o.Value("version"), "2.0") || strings.Contains(o.Value("$schema"), "sarif-2.0") ||
			o.Value("version") == "" && o.Has("runs[].tool.name") && o.Has("runs[].resources"))
	}}
)

type oldTool struct {
	Name            string `json:"name"`
	FullName        string `json:"fullName"`
	Version         string `json:"version"`
	SemanticVersion string `json:"semanticVersion"`
}

type oldRule struct {
	ID               string                  `json:"id"`
	Name             oldText                 `json:"name"`
	ShortDescription oldText                 `json:"shortDescription"`
	FullDescription  oldText                 `json:"fullDescription"`
	Help             oldText                 `json:"help"`
	HelpURI          oldText                 `json:"helpUri"`
	HelpLocation     oldFile                 `json:"helpLocation"`
	DefaultLevel     string                  `json:"defaultLevel"`
	MessageFormats   jsonstream.Map[oldText] `json:"messageFormats"`
	MessageStrings   jsonstream.Map[oldText] `json:"messageStrings"`
	Configuration    struct {
		DefaultLevel string `json:"defaultLevel"`
	} `json:"configuration"`
	Properties oldProperties `json:"properties"`
}

type oldProperties struct {
	Tags     jsonstream.Texts `json:"tags"`
	CWE      jsonstream.Texts `json:"cwe"`
	Severity jsonstream.Texts `json:"security-severity"`
}

// oldFile is a file in 2.0, and a file with a region in 1.0.
type oldFile struct {
	URI       string              `json:"uri"`
	FileIndex *jsonstream.Integer `json:"fileIndex"`
	Region    *oldRegion          `json:"region"`
	Location  *oldFile            `json:"fileLocation"`
}

type oldRegion struct {
	StartLine   jsonstream.Integer `json:"startLine"`
	StartColumn jsonstream.Integer `json:"startColumn"`
	EndLine     jsonstream.Integer `json:"endLine"`
	EndColumn   jsonstream.Integer `json:"endColumn"`
	Snippet     oldText            `json:"snippet"`
}

type oldLocation struct {
	Physical       *oldFile     `json:"physicalLocation"`
	ResultFile     *oldFile     `json:"resultFile"`
	AnalysisTarget *oldFile     `json:"analysisTarget"`
	Logical        string       `json:"fullyQualifiedLogicalName"`
	Message        oldText      `json:"message"`
	Location       *oldLocation `json:"location"` // of a step
}

type oldFlow struct {
	Locations   jsonstream.List[oldLocation] `json:"locations"`
	ThreadFlows jsonstream.List[struct {
		Locations jsonstream.List[oldLocation] `json:"locations"`
	}] `json:"threadFlows"`
}

type oldMessageRef struct {
	FormatID  string                  `json:"formatId"`
	Arguments jsonstream.List[string] `json:"arguments"`
}

type oldResult struct {
	RuleID              string                       `json:"ruleId"`
	RuleKey             string                       `json:"ruleKey"`
	RuleIndex           *jsonstream.Integer          `json:"ruleIndex"`
	Level               string                       `json:"level"`
	BaselineState       string                       `json:"baselineState"`
	Message             oldMessage                   `json:"message"`
	RuleMessageID       string                       `json:"ruleMessageId"`
	Formatted           oldMessageRef                `json:"formattedRuleMessage"`
	Locations           jsonstream.List[oldLocation] `json:"locations"`
	AnalysisTarget      *oldFile                     `json:"analysisTarget"`
	Related             jsonstream.List[oldLocation] `json:"relatedLocations"`
	CodeFlows           jsonstream.List[oldFlow]     `json:"codeFlows"`
	Snippet             oldText                      `json:"snippet"`
	Fingerprints        jsonstream.Map[string]       `json:"fingerprints"`
	PartialFingerprints jsonstream.Map[string]       `json:"partialFingerprints"`
	Contribution        string                       `json:"toolFingerprintContribution"`
	SuppressionStates   jsonstream.List[string]      `json:"suppressionStates"`
	Properties          oldProperties                `json:"properties"`
}

// oldRun is a run without its results.
type oldRun struct {
	tool     oldTool
	category string
	rules    map[string]*oldRule
	order    []*oldRule
	files    []string
	bytes    int
	failure  string
	results  bool
	ranAt    string // of the last invocation
}

// convertOldSARIF reads the descriptions of all runs first, because the rules may follow the results.
func convertOldSARIF(in *Input, w *Writer) error {
	var runs []*oldRun
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"runs": oldRuns(func(s *jsonstream.Stream) error {
			run := &oldRun{rules: map[string]*oldRule{}}
			runs = append(runs, run)
			return run.describe(s)
		})})
	})
	if err != nil {
		return err
	}
	n := 0
	return in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"runs": oldRuns(func(s *jsonstream.Stream) error {
			n++
			return runs[n-1].convert(s, w)
		})})
	})
}

// oldRuns reads each run of a list of runs, at most 256.
func oldRuns(run func(*jsonstream.Stream) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		_, err := s.ArrayOf(func(i int) error {
			if i >= 256 {
				return &jsonstream.LimitError{What: "more runs than a report may have", Max: 256}
			}
			return run(s)
		})
		return err
	}
}

// describe reads everything except the results.
func (run *oldRun) describe(s *jsonstream.Stream) error {
	var id struct {
		InstanceID string `json:"instanceId"`
	}
	err := object(s, members{
		"tool":              into(&run.tool),
		"id":                into(&id),
		"rules":             run.readRules,
		"resources":         func(s *jsonstream.Stream) error { return object(s, members{"rules": run.readRules}) },
		"files":             run.readFiles,
		"invocation":        run.invocation,
		"invocations":       func(s *jsonstream.Stream) error { return eachOf(s, run.invocation) },
		"toolNotifications": run.notifications, "configurationNotifications": run.configurationNotifications,
		"results": func(s *jsonstream.Stream) error {
			run.results = run.results || s.Kind() != 'n'
			return s.Skip()
		},
	})
	if slash := strings.LastIndexByte(id.InstanceID, '/'); slash > 0 {
		run.category = id.InstanceID[:slash]
	}
	return err
}

// eachOf reads the elements of a list, or the members of an object.
func eachOf(s *jsonstream.Stream, element func(*jsonstream.Stream) error) error {
	if s.Kind() == '{' {
		return s.Object(func(string) error { return element(s) })
	}
	_, err := s.ArrayOf(func(int) error { return element(s) })
	return err
}

func (run *oldRun) fail(reason string) { run.failure = cmp.Or(run.failure, reason) }

// readRules reads rules: an object by key, or a list.
func (run *oldRun) readRules(s *jsonstream.Stream) error {
	read := func(key string) error {
		rule := &oldRule{}
		problem, err := s.Decode(rule, nil)
		if err != nil {
			return err
		}
		if problem != "" {
			run.fail("a rule could not be read: " + problem)
		}
		rule.ID = cmp.Or(rule.ID, key)
		size := len(rule.ID) + len(rule.ShortDescription+rule.FullDescription+rule.Help) + 500
		for _, table := range []jsonstream.Map[oldText]{rule.MessageFormats, rule.MessageStrings} {
			for id, text := range table {
				size += len(id) + len(text)
			}
		}
		if run.bytes += size; run.bytes > maxRuleBytes || len(run.order) >= maxRules {
			return &jsonstream.LimitError{What: "rules with more bytes than a report may describe", Max: maxRuleBytes}
		}
		run.order = append(run.order, rule)
		for _, name := range []string{key, rule.ID} {
			if run.rules[name] == nil {
				run.rules[name] = rule
			}
		}
		return nil
	}
	if s.Kind() == '{' {
		return s.Object(read)
	}
	_, err := s.ArrayOf(func(int) error { return read("") })
	return err
}

// readFiles reads the files that locations may name by index. In most versions files is an object, and they do not.
func (run *oldRun) readFiles(s *jsonstream.Stream) error {
	if s.Kind() != '[' {
		return s.Skip()
	}
	return s.Array(func(int) error {
		var file oldFile
		if _, err := s.Decode(&file, nil); err != nil {
			return err
		}
		if run.bytes += len(file.path(nil)) + 16; run.bytes > maxRuleBytes {
			return &jsonstream.LimitError{What: "files with more bytes than a report may describe", Max: maxRuleBytes}
		}
		run.files = append(run.files, file.path(nil))
		return nil
	})
}

func (run *oldRun) invocation(s *jsonstream.Stream) error {
	var successful *bool
	var began, ended, beganUTC, endedUTC string // the names changed between the versions
	err := object(s, members{
		"toolExecutionSuccessful": into(&successful), "toolNotifications": run.notifications,
		"configurationNotifications": run.configurationNotifications,
		"startTime":                  into(&began), "endTime": into(&ended), "startTimeUtc": into(&beganUTC), "endTimeUtc": into(&endedUTC),
	})
	run.ranAt = cmp.Or(endedUTC, ended, beganUTC, began, run.ranAt)
	if successful != nil && !*successful {
		run.fail("the tool says that it did not succeed")
	}
	return err
}

func (run *oldRun) notifications(s *jsonstream.Stream) error {
	return eachOf(s, func(s *jsonstream.Stream) error {
		var n struct {
			Level string `json:"level"`
		}
		_, err := s.Decode(&n, nil)
		if strings.EqualFold(n.Level, "error") {
			run.fail("the tool reports an error about its execution")
		}
		return err
	})
}

// configurationNotifications fails the run if a rule could not be loaded.
func (run *oldRun) configurationNotifications(s *jsonstream.Stream) error {
	return eachOf(s, func(s *jsonstream.Stream) error {
		var n struct {
			Level   string `json:"level"`
			RuleID  string `json:"ruleId"`
			RuleKey string `json:"ruleKey"`
		}
		_, err := s.Decode(&n, nil)
		if strings.EqualFold(n.Level, "error") && n.RuleID+n.RuleKey != "" {
			run.fail("the tool could not load a rule")
		}
		return err
	})
}

// convert writes the results.
func (run *oldRun) convert(s *jsonstream.Stream, w *Writer) error {
	tool := Tool{Name: cmp.Or(run.tool.Name, run.tool.FullName), Version: cmp.Or(run.tool.Version, run.tool.SemanticVersion), Category: run.category, RanAt: run.ranAt}
	w.Run(tool)
	if run.failure != "" {
		w.Fail(run.failure)
	}
	if !run.results {
		w.Fail("the run has no results property")
	}
	return object(s, members{"results": items(w, func(r *oldResult) error {
		level := run.level(r)
		switch {
		case level == "pass", level == "notapplicable", level == "none", strings.EqualFold(r.BaselineState, "absent"):
			return nil // no problem of this commit
		case level == "open": // the tool could not decide
			level = "note"
		}
		return w.Result(run.result(r, level))
	})})
}

func (run *oldRun) rule(r *oldResult) *oldRule {
	for _, name := range []string{r.RuleKey, r.RuleID} {
		if rule := run.rules[name]; rule != nil && name != "" {
			return rule
		}
	}
	if i := r.RuleIndex; r.RuleID == "" && i != nil && *i >= 0 && int(*i) < len(run.order) {
		return run.order[*i]
	}
	return &oldRule{ID: cmp.Or(r.RuleID, r.RuleKey)}
}

func (run *oldRun) level(r *oldResult) string {
	rule := run.rule(r)
	return strings.ToLower(cmp.Or(r.Level, rule.DefaultLevel, rule.Configuration.DefaultLevel, "warning"))
}

func (run *oldRun) result(r *oldResult, level string) *Result {
	rule := run.rule(r)
	out := &Result{
		Rule: Rule{
			ID: cmp.Or(r.RuleID, rule.ID), Name: string(rule.Name), Message: string(rule.ShortDescription), Description: string(rule.FullDescription),
			Help: string(rule.Help), HelpURI: cmp.Or(string(rule.HelpURI), rule.HelpLocation.URI), Tags: rule.Properties.Tags, CWE: rule.Properties.CWE,
		},
		Message: r.text(rule), Level: level, Fingerprints: map[string]string{}, Snippet: string(r.Snippet),
	}
	for _, score := range []jsonstream.Texts{r.Properties.Severity, rule.Properties.Severity} {
		if len(score) > 0 {
			out.Score = cmp.Or(out.Score, score[0])
		}
	}
	for name, value := range r.Fingerprints {
		out.Fingerprints[name] = value
	}
	const lineHash = "primaryLocationLineHash"
	if hash := r.PartialFingerprints[lineHash]; hash != "" {
		out.Fingerprints[lineHash] = hash
	}
	if r.Contribution != "" {
		out.Fingerprints["toolFingerprintContribution"] = r.Contribution
	}
	for _, state := range r.SuppressionStates {
		if strings.HasPrefix(strings.ToLower(state), "suppressed") {
			out.Suppressed = &Suppression{}
		}
	}
	run.places(out, r)
	return out
}

func (run *oldRun) places(out *Result, r *oldResult) {
	for i := range r.Locations {
		l := &r.Locations[i]
		file := cmp.Or(l.Physical, l.ResultFile, l.AnalysisTarget)
		if i > 0 {
			out.Related = append(out.Related, l.place(run.files))
			continue
		}
		out.Path, out.Logical = file.path(run.files), l.Logical
		if region := file.region(); region != nil {
			out.Line, out.Column = int(region.StartLine), int(region.StartColumn)
			out.EndLine, out.EndColumn = int(region.EndLine), int(region.EndColumn)
			out.Snippet = cmp.Or(string(region.Snippet), out.Snippet)
		}
	}
	if out.Path == "" {
		out.Path = r.AnalysisTarget.path(run.files)
	}
	for i := range r.Related {
		out.Related = append(out.Related, r.Related[i].place(run.files))
	}
	for _, flow := range r.CodeFlows[:min(len(r.CodeFlows), 1)] {
		steps := flow.Locations
		if len(flow.ThreadFlows) > 0 {
			steps = flow.ThreadFlows[0].Locations
		}
		for i := range steps {
			out.Flow = append(out.Flow, steps[i].place(run.files))
		}
	}
}

// place is a location with its text.
func (l *oldLocation) place(files []string) Place {
	text := l.Message
	if l.Location != nil {
		l = l.Location
		text = cmp.Or(text, l.Message)
	}
	file := cmp.Or(l.Physical, l.ResultFile, l.AnalysisTarget)
	p := Place{Path: file.path(files), Message: string(text)}
	if region := file.region(); region != nil {
		p.Line, p.Column, p.Snippet = int(region.StartLine), int(region.StartColumn), string(region.Snippet)
	}
	return p
}

// path is the URI of the file, as a path if it is relative.
func (f *oldFile) path(files []string) string {
	switch {
	case f == nil:
		return ""
	case f.Location != nil:
		return f.Location.path(files)
	case f.URI == "" && f.FileIndex != nil && *f.FileIndex >= 0 && int(*f.FileIndex) < len(files):
		return files[*f.FileIndex]
	case strings.Contains(f.URI, "://"):
		return f.URI
	}
	path := strings.TrimPrefix(f.URI, "file:")
	if decoded, err := url.PathUnescape(path); err == nil {
		return decoded
	}
	return path
}

func (f *oldFile) region() *oldRegion {
	if f == nil {
		return nil
	}
	return f.Region
}
