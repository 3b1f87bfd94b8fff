package sarif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/jsonstream"
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
	// Uncategorised is an automationDetails.id that names no category, or empty.
	Uncategorised string
	// ImageCategory is the name of the container image that was scanned, without tag and digest, or empty.
	ImageCategory string
	// RepositoryURI, Revision and Branch are what was scanned according to the report (versionControlProvenance), or
	// empty.
	RepositoryURI, Revision, Branch string
	// AsOf is the time of that state; zero if the report has none.
	AsOf time.Time
	// RanAt is when the run ended, or began if its end is unknown; zero if the report has neither.
	RanAt time.Time
	// Succeeded is false if missing results may still be in the code: an invocation failed or has an error-level
	// notification, or the run has no results property, or null (SARIF 3.14.23).
	Succeeded bool
	// Results is the number of results in the file.
	Results int
	// Rejected is why no result of this run can be used; empty if they can.
	Rejected string
	// Warnings are warnings for people about the run. [Report.Results] may add to them.
	Warnings []string
	// CategoryUnknown says that automationDetails could not be read, so that the results may belong to any category.
	CategoryUnknown bool
	// Secrets says that the tool looks for secrets, so snippets are redacted.
	Secrets bool
	// Product is one of [vocabulary.Products].
	Product string
	// Products are the possible products of results: Product, or all if rules may say otherwise.
	Products []string
	// ProductGiven says that the product was given with the report (see [WithProduct]), so that all results have it.
	ProductGiven bool

	driver     *component
	extensions []*component
	taxonomies []*component
	artifacts  []wireArtifactLocation
	bases      map[string]wireArtifactLocation
	mappedTo   []wireArtifactLocation // directories of the repositories
	logical    []logicalLocation
	sampled    []wireArtifactLocation
	invoked    []*invocation
	segments   []segment
	hasResults bool
	references []reference // to external property files
	guid       string      // automationDetails.guid
	paths      *pathResolver
	told       placesTold
	stubs      map[string]*Rule
	wire       *wireResult // of the current result
	at         place       // of the current result
	fixed      func(jsonstream.Fix)
	ruleCount  int
	cweTitles  map[string]string // by "CWE-n"
	flowTable  []wireStep

	notes, resultNotes notes            // of the first and the second pass
	opened             []string         // warnings before the second pass
	begun              bool             // the second pass
	unnamed            unnamed          // results that name no rule
	named, byGUID      map[string]*Rule // see ruleOfMessage and ruleByGUID

	artifactFacts            []artifactFacts // of artifacts
	artifactsLost            bool
	image                    imageNames
	ownProduct               string // of its properties
	failedFiles, failedRules []string
}

// maxWarnings bounds the warnings of a run. One more says that there were others.
const maxWarnings = 50

func (run *Run) warn(format string, args ...any) {
	text := redactTokens(fmt.Sprintf(format, args...))
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
		run.Rejected = redactTokens(fmt.Sprintf(format, args...))
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

func newRun(index int) *Run {
	return &Run{Index: index, Succeeded: true, driver: newComponent(), stubs: map[string]*Rule{}}
}

// run reads one element of runs.
func (r *reader) run(index int) error {
	run := newRun(index)
	r.report.Runs = append(r.report.Runs, run)
	if k := r.Kind(); k != '{' {
		run.reject("it is %s, want an object", jsonstream.KindName(k))
		return r.Skip()
	}
	return r.Object(func(name string) error { return r.runMember(run, name) })
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
	case "threadFlowLocations":
		return r.flowTable(run)
	case "automationDetails":
		return r.automation(run)
	case "originalUriBaseIds":
		var bases dict[wireArtifactLocation]
		err := r.optional(run, &bases, always)
		run.bases = bases
		return err
	case "versionControlProvenance":
		return r.provenance(run)
	case "properties":
		return r.runProperties(run)
	case "logicalLocations":
		return r.logicalLocations(run)
	case "externalPropertyFileReferences":
		return r.referenceList(run)
	}
	return r.Skip()
}

func (r *reader) automation(run *Run) error {
	var details struct {
		ID   string `json:"id"`
		GUID string `json:"guid"`
	}
	err := r.optional(run, &details, func(pointer string) bool {
		run.CategoryUnknown = run.CategoryUnknown || pointer == "" || pointer == "/id"
		return true
	})
	details.ID = redactTokens(details.ID)
	if slash := strings.LastIndexByte(details.ID, '/'); slash > 0 {
		run.AutomationCategory = jsonstream.Cut(jsonstream.Clean(details.ID[:slash]), 255)
	} else {
		run.Uncategorised = jsonstream.Cut(jsonstream.Clean(details.ID), 255)
	}
	run.guid = details.GUID
	return err
}

// finish computes what depends on the whole run.
func (run *Run) finish(o options) {
	if run.Tool.Name == "" {
		run.reject("tool.driver.name is missing, so that its findings cannot be told from those of other tools")
	}
	run.Tool.Slug = toolSlug(run.Tool.Name)
	run.ImageCategory = run.image.category(run.Tool.Slug)
	run.Product = cmp.Or(o.product, run.ownProduct)
	if run.Product == "" {
		run.Product = productOf(run.Tool.Slug)
	}
	run.Products, run.ProductGiven = []string{run.Product}, o.product != ""
	if run.rulesSayProduct(o) {
		run.Products = []string{vocabulary.SAST, vocabulary.SCA, vocabulary.Secrets}
	}
	run.Secrets = run.Product == vocabulary.Secrets || productOf(run.Tool.Slug) == vocabulary.Secrets ||
		contains(sensitiveTools, run.Tool.Slug)
	run.paths = newPathResolver(run, o.places)
	run.guessRoot()
	run.RanAt = run.ranAt()
	run.checkComplete()
	if !run.hasResults && run.Rejected == "" && run.Succeeded {
		run.Succeeded = false
		run.warn("the run has no results property, or null, so that no finding is closed by it (an empty array would say that nothing was found)")
	}
	run.cweTitles = run.taxonomyTitles()
	for _, c := range run.components() {
		for _, rule := range c.rules {
			if rule != nil {
				rule.link(run)
			}
		}
	}
	run.tell(&run.notes)
}
