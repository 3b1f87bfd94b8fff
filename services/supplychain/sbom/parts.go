package sbom

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/position"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/supplychain/dependencies"
	"github.com/palisade/palisade/services/supplychain/purl"
)

// parts are the packages of a document and their vulnerabilities.
type parts struct {
	maxPlaces, places int
	byRef             map[string]*part
	// byName are the refs of packages by name@version, as packages name what they require.
	byName          map[string]string
	vulnerabilities map[vulnerabilityKey]*cdx.Vulnerability
}

// part is a package in one version. Its package URL is its ref in the document.
type part struct {
	ecosystem, name, version string
	transitivity             string
	licenses                 []string
	resolvedURL              string
	occurrences              []cdx.EvidenceOccurrence
	children                 []string
}

// vulnerabilityKey tells vulnerabilities apart. Findings in several lockfiles, with the same decision, are one.
type vulnerabilityKey struct{ id, ref, state, detail string }

func newParts(most int) *parts {
	return &parts{maxPlaces: most, byRef: map[string]*part{}, byName: map[string]string{}, vulnerabilities: map[vulnerabilityKey]*cdx.Vulnerability{}}
}

// part returns a package, which may be new.
func (p *parts) part(ecosystem, name, version string) (string, *part) {
	ref := purl.Format(ecosystem, name, version)
	of := p.byRef[ref]
	if of == nil {
		of = &part{ecosystem: ecosystem, name: name, version: version, transitivity: dependencies.Unknown}
		p.byRef[ref] = of
		p.byName[childName(ecosystem, name+"@"+version)] = ref
	}
	return ref, of
}

func childName(ecosystem, child string) string { return ecosystem + " " + child }

// place notes that a lockfile has the package.
func (p *parts) place(of *part, lockfile string, line int32) error {
	if p.places++; p.places > p.maxPlaces {
		return apierr.FailedPrecondition("the SBOM has more than %d packages", p.maxPlaces)
	}
	at := cdx.EvidenceOccurrence{Location: lockfile}
	if n := int(line); n > 0 {
		at.Line = &n
	}
	of.occurrences = append(of.occurrences, at)
	return nil
}

// add adds a dependency.
func (p *parts) add(row *ent.Dependency, content *storev1.DependencyContent) error {
	_, of := p.part(row.Ecosystem, row.Package, row.Version)
	if row.Transitivity == dependencies.Direct || of.transitivity == dependencies.Unknown {
		of.transitivity = row.Transitivity
	}
	of.licenses = append(of.licenses, content.GetLicenses()...)
	of.resolvedURL = cmp.Or(of.resolvedURL, content.GetResolvedUrl())
	of.children = append(of.children, content.GetChildren()...)
	return p.place(of, row.Lockfile, content.GetLine())
}

// addVulnerability adds a finding, and its package if no lockfile has it: not every scanner reports all dependencies.
func (p *parts) addVulnerability(row *ent.Finding, content *storev1.FindingContent, ruleName string, rule *findingsv1.FindingRule) error {
	found := content.GetFoundDependency()
	ref, of := p.part(found.GetEcosystem(), *row.Package, found.GetVersion())
	if len(of.occurrences) == 0 {
		of.transitivity = cmp.Or(found.GetTransitivity(), dependencies.Unknown)
		if err := p.place(of, content.GetLocation().GetFilePath(), 0); err != nil {
			return err
		}
	}
	told := position.Of(row, content)
	state, justification, response := told.CycloneDX()
	v := &cdx.Vulnerability{
		ID: position.Vulnerability(row, content, ruleName), Ratings: &[]cdx.VulnerabilityRating{{Severity: cdx.Severity(row.Severity)}},
		Description: cmp.Or(content.GetMessage(), rule.GetMessage()), Affects: &[]cdx.Affects{{Ref: ref}},
		Analysis: &cdx.VulnerabilityAnalysis{
			State: cdx.ImpactAnalysisState(state), Justification: cdx.ImpactAnalysisJustification(justification), Detail: told.Note,
			LastUpdated: position.Since(row).Format(time.RFC3339),
		},
	}
	if numbers := position.Weaknesses(rule.GetCweNames()); len(numbers) > 0 {
		v.CWEs = &numbers
	}
	if state == string(cdx.IASExploitable) {
		v.Recommendation = position.Advice(row, content)
	}
	if response != "" {
		v.Analysis.Response = &[]cdx.ImpactAnalysisResponse{cdx.ImpactAnalysisResponse(response)}
	}
	key := vulnerabilityKey{v.ID, ref, state, told.Note}
	if p.vulnerabilities[key] == nil {
		p.vulnerabilities[key] = v
	}
	return nil
}

// components are the packages by ref.
func (p *parts) components() []cdx.Component {
	list := make([]cdx.Component, 0, len(p.byRef))
	for _, ref := range slices.Sorted(maps.Keys(p.byRef)) {
		of := p.byRef[ref]
		slices.SortFunc(of.occurrences, func(a, b cdx.EvidenceOccurrence) int { return cmp.Compare(a.Location, b.Location) })
		c := cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: of.name, Version: of.version, PackageURL: ref,
			Licenses: licensesOf(of.licenses), Evidence: &cdx.Evidence{Occurrences: &of.occurrences},
			Properties: &[]cdx.Property{{Name: "palisade:transitivity", Value: of.transitivity}},
		}
		if of.resolvedURL != "" {
			c.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeDistribution, URL: of.resolvedURL}}
		}
		list = append(list, c)
	}
	return list
}

// graph says what the project requires directly, and what each package requires. Packages without known requirements
// are listed, too, as CycloneDX asks for.
func (p *parts) graph(root string) []cdx.Dependency {
	direct := []string{}
	list := []cdx.Dependency{{Ref: root, Dependencies: &direct}}
	for _, ref := range slices.Sorted(maps.Keys(p.byRef)) {
		of := p.byRef[ref]
		if of.transitivity == dependencies.Direct {
			direct = append(direct, ref)
		}
		var requires []string
		for _, child := range of.children {
			if known := p.byName[childName(of.ecosystem, child)]; known != "" && known != ref {
				requires = append(requires, known)
			}
		}
		one := cdx.Dependency{Ref: ref}
		if slices.Sort(requires); len(requires) > 0 {
			requires = slices.Compact(requires)
			one.Dependencies = &requires
		}
		list = append(list, one)
	}
	return list
}

// known are the vulnerabilities in order.
func (p *parts) known() []cdx.Vulnerability {
	keys := slices.SortedFunc(maps.Keys(p.vulnerabilities), func(a, b vulnerabilityKey) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.ref, b.ref), cmp.Compare(a.state, b.state), cmp.Compare(a.detail, b.detail))
	})
	list := make([]cdx.Vulnerability, len(keys))
	for i, key := range keys {
		list[i] = *p.vulnerabilities[key]
	}
	return list
}

// expression has the form of an SPDX expression.
var expression = regexp.MustCompile(`^\(*[\w.+-]+\)*( (AND|OR|WITH) \(*[\w.+-]+\)*)*$`)

// licensesOf are the licences of a package: one expression, or names, because scanners do not say whether all of
// several apply or any.
func licensesOf(texts []string) *cdx.Licenses {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if len(texts) == 0 {
		return nil
	}
	if len(texts) == 1 && expression.MatchString(texts[0]) {
		return &cdx.Licenses{{Expression: texts[0]}}
	}
	list := make(cdx.Licenses, len(texts))
	for i, text := range texts {
		list[i].License = &cdx.License{Name: text}
	}
	return &list
}
