package identity

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
)

type object = map[string]any

// Report is a scanner's report about a tree: one SARIF run.
type Report struct {
	Tool    string
	Version string
	Results []Result
	// Analysed are the files that the report lists as analyzed; nil: it lists none.
	Analysed []string
	// Failed is true for a run that ended early.
	Failed bool
	// Image is the container image that was scanned; empty: none.
	Image string
	// Aliases maps present names of rules to former ones.
	Aliases map[string]string

	run object // as the scanner wrote it, except for the fields above
}

// Result is one result of a report.
type Result struct {
	Rule    string
	Place          // start of the result
	Column  int    // 0: unknown
	EndLine int    // 0: unknown
	EndCol  int    // 0: unknown
	Message string // of the tool
	Snippet string // quoted by the tool; empty: it quotes no code

	// prints are partial fingerprints, logical is the name of the logical location; empty: as the scanner wrote them.
	prints  object
	logical string

	// origin is the index plus one of the result before the edit that this one was carried from; 0: none.
	origin int
	// copyOf is the same for a copy.
	copyOf int
	raw    object
}

// LoadReport reads a SARIF file. The root is stripped from absolute URIs.
func LoadReport(name, root string) (*Report, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := ParseReport(content, root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// ParseReport parses a SARIF document with one run. Each of its results must have a location.
func ParseReport(content []byte, root string) (*Report, error) {
	var document struct {
		Runs []object `json:"runs"`
	}
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	if len(document.Runs) != 1 {
		return nil, fmt.Errorf("want one run, got %d", len(document.Runs))
	}
	r := &Report{run: document.Runs[0]}
	driver := at(r.run, "tool", "driver")
	r.Tool, _ = driver["name"].(string)
	r.Version, _ = driver["version"].(string)
	results, _ := r.run["results"].([]any)
	for i, raw := range results {
		result, err := parseResult(raw.(object), root)
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", i, err)
		}
		r.Results = append(r.Results, result)
	}
	// The artifacts name files by their old paths; Analysed replaces them.
	delete(r.run, "artifacts")
	delete(r.run, "results")
	if invocations, ok := r.run["invocations"].([]any); ok {
		for _, invocation := range invocations {
			delete(invocation.(object), "toolConfigurationNotifications")
			delete(invocation.(object), "toolExecutionNotifications")
		}
	}
	return r, nil
}

func parseResult(raw object, root string) (Result, error) {
	locations, _ := raw["locations"].([]any)
	if len(locations) == 0 {
		return Result{}, fmt.Errorf("no location")
	}
	physical := at(locations[0].(object), "physicalLocation")
	region := at(physical, "region")
	uri, _ := at(physical, "artifactLocation")["uri"].(string)
	file, err := url.PathUnescape(strings.TrimPrefix(uri, root))
	if err != nil {
		return Result{}, err
	}
	number := func(key string) int {
		n, _ := region[key].(float64)
		return int(n)
	}
	result := Result{
		Place: Place{file, number("startLine")}, Column: number("startColumn"), EndLine: number("endLine"), EndCol: number("endColumn"), raw: raw,
	}
	result.Rule, _ = raw["ruleId"].(string)
	result.Message, _ = at(raw, "message")["text"].(string)
	result.Snippet, _ = at(region, "snippet")["text"].(string)
	if result.Rule == "" || result.Line < 1 {
		return Result{}, fmt.Errorf("no rule or no line")
	}
	return result, nil
}

// at returns the object below keys; empty if there is none.
func at(o object, keys ...string) object {
	for _, key := range keys {
		next, ok := o[key].(object)
		if !ok {
			return object{}
		}
		o = next
	}
	return o
}

// Files returns the files with results, sorted.
func (r *Report) Files() []string {
	files := map[string]bool{}
	for _, result := range r.Results {
		files[result.File] = true
	}
	return slices.Sorted(maps.Keys(files))
}

// with returns the report with other results.
func (r *Report) with(results []Result) *Report {
	c := *r
	c.Results = results
	return &c
}

// SARIF writes the report.
func (r *Report) SARIF() ([]byte, error) {
	run := maps.Clone(r.run)
	results := make([]object, len(r.Results))
	for i, result := range r.Results {
		results[i] = result.sarif()
	}
	run["results"] = results
	if r.Image != "" {
		run["properties"] = object{"imageName": r.Image}
	}
	tool := maps.Clone(at(run, "tool"))
	driver := maps.Clone(at(tool, "driver"))
	driver["version"] = r.Version
	driver["rules"] = r.rules(driver)
	tool["driver"] = driver
	run["tool"] = tool
	if r.Analysed != nil {
		artifacts := make([]object, len(r.Analysed))
		for i, file := range r.Analysed {
			artifacts[i] = object{"location": object{"uri": escape(file)}, "roles": []string{"analysisTarget"}}
		}
		run["artifacts"] = artifacts
	}
	if r.Failed {
		run["invocations"] = []object{{"executionSuccessful": false, "exitCode": 137}}
	}
	return json.Marshal(object{"version": "2.1.0", "runs": []object{run}})
}

// rules returns the report's rules under their present names.
func (r *Report) rules(driver object) []any {
	present := map[string]string{}
	for now, former := range r.Aliases {
		present[former] = now
	}
	rules, _ := driver["rules"].([]any)
	rules = slices.Clone(rules)
	for i, rule := range rules {
		former, _ := rule.(object)["id"].(string)
		if now, renamed := present[former]; renamed {
			renamedRule := maps.Clone(rule.(object))
			renamedRule["id"], renamedRule["deprecatedIds"] = now, []string{former}
			rules[i] = renamedRule
		}
	}
	return rules
}

// sarif returns the result as the scanner wrote it, updated with the fields of Result.
func (r Result) sarif() object {
	result := maps.Clone(r.raw)
	delete(result, "ruleIndex") // may point into a list that has changed; the rule's name is enough
	delete(result, "fixes")     // quote code that has changed
	delete(result, "relatedLocations")
	result["ruleId"] = r.Rule
	message := maps.Clone(at(result, "message"))
	message["text"] = r.Message
	result["message"] = message
	locations := result["locations"].([]any)
	location := maps.Clone(locations[0].(object))
	physical := maps.Clone(at(location, "physicalLocation"))
	artifact := maps.Clone(at(physical, "artifactLocation"))
	artifact["uri"] = escape(r.File)
	delete(artifact, "index")
	physical["artifactLocation"], physical["region"] = artifact, r.region(at(physical, "region"))
	location["physicalLocation"] = physical
	if r.logical != "" {
		location["logicalLocations"] = []object{{"fullyQualifiedName": r.logical, "kind": "function"}}
	}
	if r.prints != nil {
		result["partialFingerprints"] = r.prints
	}
	result["locations"] = []any{location}
	return result
}

func (r Result) region(before object) object {
	region := maps.Clone(before)
	region["startLine"] = r.Line
	set := func(key string, value int) {
		if value != 0 {
			region[key] = value
		}
	}
	set("startColumn", r.Column)
	set("endLine", r.EndLine)
	set("endColumn", r.EndCol)
	if r.Snippet != "" {
		region["snippet"] = object{"text": r.Snippet}
	}
	return region
}

func escape(file string) string { return (&url.URL{Path: file}).EscapedPath() }
