package sarif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Tool is the tool of a run.
type Tool struct {
	// Name is tool.driver.name as written.
	Name string
	// Slug is the name in lower case. Names of one tool under different licences or versions have the same slug
	// ("Semgrep OSS" is semgrep, "defsec" is tfsec). Identities depend on it.
	Slug string
	// Version is as written and often wrong ("dev"), so nothing depends on it.
	Version string
}

// Run is one run of one tool.
type Run struct {
	// Index is the position in the report, from 0.
	Index int
	Tool  Tool
	// AutomationCategory is automationDetails.id up to its last slash, or empty (GitHub's rule). An upload replaces the
	// earlier one of the same tool and category.
	AutomationCategory string
	// Revision and Branch are what was scanned according to the report (versionControlProvenance), or empty.
	Revision, Branch string
	// Succeeded is false if missing results may still be in the code: an invocation failed or has an error-level
	// notification about its execution, or the run has no results property (SARIF 3.14.23).
	Succeeded bool
	// Results is the number of results in the file.
	Results int
	// Rejected is why no result of this run can be used; empty if they can.
	Rejected string
	// Warnings are warnings for people about the run. [Report.Results] may add to them.
	Warnings []string
	// Secrets says that the tool looks for secrets, so snippets are redacted.
	Secrets bool
	// Product is one of [vocabulary.SAST], [vocabulary.SCA] and [vocabulary.Secrets].
	Product string
	// Products are the possible products of results: Product, or all if rules may say otherwise.
	Products []string

	driver     *component
	extensions []*component
	taxonomies []*component
	artifacts  []wireArtifactLocation
	bases      map[string]wireArtifactLocation
	invoked    []*invocation
	segments   []int64
	hasResults bool
	external   bool
	paths      *pathResolver
	stubs      map[string]*Rule
	wire       *wireResult // of the current result
	ruleCount  int

	artifactFacts            []artifactFacts // of artifacts
	artifactsLost            bool
	failedFiles, failedRules []string
}

// maxWarnings bounds the warnings of a run. One more says that there were others.
const maxWarnings = 50

func (run *Run) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case len(run.Warnings) > maxWarnings || slices.Contains(run.Warnings, text):
	case len(run.Warnings) == maxWarnings:
		run.Warnings = append(run.Warnings, "further warnings are left out")
	default:
		run.Warnings = append(run.Warnings, text)
	}
}

// reject keeps the first reason, because it usually causes the following ones.
func (run *Run) reject(format string, args ...any) {
	if run.Rejected == "" {
		run.Rejected = fmt.Sprintf(format, args...)
	}
}

// Rules returns the rules that the run declares, of the driver and its extensions. Many tools declare only rules that
// matched.
func (run *Run) Rules() []*Rule {
	var all []*Rule
	for _, c := range run.components() {
		for _, rule := range c.rules {
			if rule != nil {
				all = append(all, rule)
			}
		}
	}
	return all
}

func (run *Run) components() []*component {
	return append([]*component{run.driver}, run.extensions...)
}

// run reads one element of runs.
func (r *reader) run(index int) error {
	run := &Run{Index: index, Succeeded: true, driver: newComponent(), stubs: map[string]*Rule{}}
	r.report.Runs = append(r.report.Runs, run)
	if k := r.kind(); k != '{' {
		run.reject("it is %s, want an object", kindName(k))
		return r.skip()
	}
	err := r.object(func(name string) error { return r.runMember(run, name) })
	if err != nil {
		return err
	}
	run.finish(r.report.options)
	return nil
}

func (r *reader) runMember(run *Run, name string) error {
	switch name {
	case "tool":
		return r.tool(run)
	case "results":
		return r.countResults(run)
	case "invocations":
		return r.invocations(run)
	case "taxonomies":
		return r.taxonomyList(run)
	case "artifacts":
		return r.artifactList(run)
	case "automationDetails":
		var details struct {
			ID string `json:"id"`
		}
		err := r.optional(run, name, &details)
		if slash := strings.LastIndexByte(details.ID, '/'); slash > 0 {
			run.AutomationCategory = cut(clean(details.ID[:slash]), 255)
		}
		return err
	case "originalUriBaseIds":
		var bases dict[wireArtifactLocation]
		err := r.optional(run, name, &bases)
		run.bases = bases
		return err
	case "versionControlProvenance":
		return r.provenance(run)
	case "externalPropertyFileReferences":
		var references struct {
			Results capped[struct{}] `json:"results"`
		}
		err := r.optional(run, name, &references)
		run.external = run.external || len(references.Results) > 0
		return err
	}
	return r.skip()
}

// optional reads a part that a run can do without. An error in it becomes a warning. Its size is charged.
func (r *reader) optional(run *Run, name string, out any) error {
	v, ok, err := r.value()
	switch {
	case err != nil:
		return err
	case !ok:
		run.warn("%s is ignored: %s", name, overSize(r.limits))
	case !r.charge(len(v)):
		run.warn("%s is ignored: the report describes more than fits", name)
	default:
		if err := json.Unmarshal(v, out, decodeOptions); err != nil {
			run.warn("%s is ignored: %s", name, describe(err))
		}
	}
	return nil
}

func (r *reader) provenance(run *Run) error {
	var details capped[struct {
		RevisionID string `json:"revisionId"`
		Branch     string `json:"branch"`
	}]
	err := r.optional(run, "versionControlProvenance", &details)
	if len(details) > 0 {
		run.Revision, run.Branch = cut(clean(details[0].RevisionID), 255), cut(clean(details[0].Branch), 255)
	}
	return err
}

// countResults counts and checks the results, and records their offset for the second pass. A repeated key adds to the
// count: JSON leaves its meaning open, and this way no results are lost.
func (r *reader) countResults(run *Run) error {
	switch k := r.kind(); k {
	case 'n':
		// Go programs write a nil slice, which means no results, as null.
		run.hasResults = true
		return r.skip()
	case '[':
	default:
		run.reject("results is %s, want an array", kindName(k))
		return r.skip()
	}
	run.hasResults = true
	if len(run.segments) > 0 {
		run.warn("results appears more than once; all of them are read")
	}
	first := true
	err := r.array(func(int) error {
		if first {
			first = false
			run.segments = append(run.segments, r.base+r.offset()-1)
		}
		run.Results++
		if _, ok, err := r.value(); !ok || err != nil {
			return err
		}
		return nil
	})
	if run.Results > r.limits.MaxResults {
		run.reject("it has more than %d results, the most that one run may have", r.limits.MaxResults)
	}
	return err
}

// finish computes what depends on the whole run.
func (run *Run) finish(o options) {
	if run.Tool.Name == "" {
		run.reject("tool.driver.name is missing, so that its findings cannot be told from those of other tools")
	}
	run.Tool.Slug = toolSlug(run.Tool.Name)
	run.Product = o.product
	if run.Product == "" {
		run.Product = productOf(run.Tool.Slug)
	}
	run.Products = []string{run.Product}
	if run.rulesSayProduct(o) {
		run.Products = []string{vocabulary.SAST, vocabulary.SCA, vocabulary.Secrets}
	}
	run.Secrets = run.Product == vocabulary.Secrets || productOf(run.Tool.Slug) == vocabulary.Secrets
	run.paths = newPathResolver(run)
	run.checkComplete()
	switch {
	case run.external:
		run.Succeeded = false
		run.warn("results in external files are not read, so that no finding is closed by this run")
	case !run.hasResults && run.Rejected == "":
		run.Succeeded = false
		run.warn("the run has no results property, so that no finding is closed by it (an empty array would say that nothing was found)")
	}
	titles := run.taxonomyTitles()
	for _, c := range run.components() {
		for _, rule := range c.rules {
			if rule != nil {
				rule.link(titles, run.taxonomies)
			}
		}
	}
}
