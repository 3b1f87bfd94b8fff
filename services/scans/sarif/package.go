package sarif

import (
	"cmp"
	"path"
	"regexp"
	"strconv"
	"strings"

	packageurl "github.com/package-url/packageurl-go"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Package is the dependency of a result, according to a dependency scanner. Each field may be empty.
type Package struct {
	Name, Version string
	// FixedVersion is the version, or the comma-separated versions, without the vulnerability.
	FixedVersion string
	// Ecosystem is one of npm, pypi, gomod, cargo, maven, gem, composer, nuget, pub, swiftpm, hex (the API's words), or
	// empty.
	Ecosystem string
	// AdvisoryID is the identifier of the vulnerability: a CVE where one is known, else GHSA, GO, RUSTSEC and so on.
	AdvisoryID string
	// Transitivity is direct, transitive, or empty. Exposure is reachable, always_reachable, conditionally_reachable,
	// unreachable, or empty; ReachableIf is the condition. Malicious says that the package was made to do harm.
	Transitivity, Exposure, ReachableIf string
	Malicious                           bool
	// Lockfile and Manifest are files like the path of the result. LockfileLine is 0 if it is unknown.
	Lockfile, Manifest string
	LockfileLine       int
}

// packageOf reads the dependency of a result: its properties first, then what its rule says, package URLs anywhere, the
// message formats of known tools, the id of the rule, and the file. It returns nil if nothing names a package or an
// advisory.
func packageOf(w *wireResult, rule *Rule, message, file string) *Package {
	p := &Package{}
	p.fromBag(&w.Properties)
	p.fromUse(&w.Properties)
	for _, location := range w.Locations {
		if location.Properties != nil {
			p.fromBag(location.Properties)
		}
	}
	p.fromLogical(w.Locations)
	p.fromText(message)
	p.fromPURL(purlPattern.FindString(message))
	for _, fix := range w.Fixes {
		if fix.Description != nil {
			p.fromFix(fix.Description.Text)
		}
	}
	p.fromRule(rule.about)
	p.fromPURL(file)
	p.fromNames(w.Locations)
	p.fromFile(file)
	if p.Ecosystem == "" {
		p.Ecosystem = lockfiles[strings.ToLower(path.Base(file))]
	}
	p.AdvisoryID = advisory(append([]string{rule.ID, p.AdvisoryID, message}, rule.Tags...)...)
	if p.Name == "" && p.AdvisoryID == "" {
		return nil
	}
	return p
}

// packageOfRule reads what a rule says about a dependency. Most dependency scanners make a rule of each pair of an
// advisory and a package.
func packageOfRule(w *wireRule) *Package {
	p := &Package{}
	p.fromBag(&w.Properties)
	for _, text := range [...]*wireText{w.Help, w.FullDescription, w.ShortDescription} {
		if text == nil || len(w.Properties.texts[factPURL])+len(w.Properties.texts[factPackage]) == 0 && !namesAdvisory(w.ID) {
			continue
		}
		for _, form := range [...]string{text.Text, text.Markdown} {
			form = jsonstream.Cut(jsonstream.Clean(form), maxHelp)
			p.fromFactSheet(form)
			p.fromText(form)
		}
	}
	p.fromRule(packageOfID(w.ID))
	if *p == (Package{}) {
		return nil
	}
	return p
}

// packageOfID reads ids that join an advisory and a package: "CVE-2008-0732-geronimo-javamail" (Grype),
// "CVE-2022-1234_lodash_4.17.0" (Xray).
func packageOfID(id string) *Package {
	if strings.IndexByte(id, '-') < 0 {
		return nil
	}
	p := &Package{AdvisoryID: advisory(id)}
	if m := joinedID.FindStringSubmatch(id); m != nil {
		p.Name = m[1]
		if m[2] != "" {
			p.Name, p.Version = m[2], m[3]
		}
	}
	if *p == (Package{}) {
		return nil
	}
	return p
}

func namesAdvisory(id string) bool {
	return strings.IndexByte(id, '-') > 0 && (cveID.MatchString(id) || advisoryID.MatchString(id))
}

// isDependency reports whether a result is about a known vulnerability of a dependency, whatever the tool is: it has a
// package URL, and the id of an advisory.
func isDependency(w *wireResult, rule *Rule) bool {
	named := len(w.Properties.texts[factPURL]) > 0
	for _, location := range w.Locations {
		for _, logical := range location.LogicalLocations {
			named = named || strings.HasPrefix(logical.FullyQualifiedName, "pkg:")
		}
	}
	return named && namesAdvisory(rule.ID)
}

// fromBag fills empty fields from properties.
func (p *Package) fromBag(b *bag) {
	for _, purl := range b.texts[factPURL] {
		p.fromPURL(purl)
	}
	for _, name := range b.texts[factPackage] {
		if strings.HasPrefix(name, "pkg:") {
			p.fromPURL(name)
		} else if !strings.ContainsAny(name, " \t\n") {
			set(&p.Name, name)
		}
	}
	set(&p.Version, first(b.texts[factVersion]))
	set(&p.FixedVersion, versions(b.texts[factFixed]))
	set(&p.Ecosystem, ecosystem(first(b.texts[factEcosystem])))
	set(&p.AdvisoryID, advisory(b.texts[factAdvisory]...))
}

// fromUse reads how the project uses the package.
func (p *Package) fromUse(b *bag) {
	if word := strings.ToLower(first(b.texts[factTransitivity])); word == "direct" || word == "transitive" {
		p.Transitivity = word
	}
	p.Exposure = exposures[string(normalName(make([]byte, 0, maxPropertyName), []byte(first(b.texts[factReachability]))))]
	p.ReachableIf = redactTokens(first(b.texts[factCondition]))
	p.Malicious = strings.EqualFold(first(b.texts[factMalicious]), "true")
	p.Lockfile, p.Manifest = first(b.texts[factLockfile]), first(b.texts[factManifest])
	if line, err := strconv.ParseInt(first(b.texts[factLockfileLine]), 10, 32); err == nil && line > 0 {
		p.LockfileLine = int(line)
	}
}

// exposures maps the words of tools to the API's, without separators.
var exposures = map[string]string{
	"reachable": "reachable", "unreachable": "unreachable", "notreachable": "unreachable", "alwaysreachable": "always_reachable",
	"conditionallyreachable": "conditionally_reachable",
}

// fromLogical fills empty fields from names of logical locations, where dependency-check has the package URL.
func (p *Package) fromLogical(locations []wireLocation) {
	for _, location := range locations {
		for _, logical := range location.LogicalLocations {
			p.fromPURL(logical.FullyQualifiedName)
			p.fromPURL(logical.Name)
		}
	}
}

// fromRule fills empty fields from what the rule says, unless that is about another package.
func (p *Package) fromRule(rule *Package) {
	if rule == nil {
		return
	}
	if p.AdvisoryID == "" {
		p.AdvisoryID = rule.AdvisoryID
	}
	if p.Name != "" && rule.Name != "" && p.Name != rule.Name && !strings.HasSuffix(p.Name, rule.Name) && !strings.HasSuffix(rule.Name, p.Name) {
		return
	}
	p.Name, p.Version = cmp.Or(p.Name, rule.Name), cmp.Or(p.Version, rule.Version)
	p.FixedVersion, p.Ecosystem = cmp.Or(p.FixedVersion, rule.FixedVersion), cmp.Or(p.Ecosystem, rule.Ecosystem)
}

// fromPURL fills empty fields from a package URL: pkg:type/namespace/name@version.
func (p *Package) fromPURL(text string) {
	if !strings.HasPrefix(text, "pkg:") {
		return
	}
	purl, err := packageurl.FromString(strings.TrimRight(text, ".,;"))
	if err != nil {
		return
	}
	name := jsonstream.Clean(purl.Name)
	switch purl.Type {
	case packageurl.TypeDebian, packageurl.TypeRPM, packageurl.TypeApk, packageurl.TypeAlpm: // the namespace is the distribution
	case packageurl.TypeMaven:
		name = joined(purl.Namespace, ":", name)
	default:
		name = joined(purl.Namespace, "/", name)
	}
	if p.Name != "" && !strings.HasSuffix(name, p.Name) {
		return // another package
	}
	set(&p.Name, name)
	set(&p.Version, jsonstream.Clean(purl.Version))
	set(&p.Ecosystem, ecosystem(purl.Type))
}

func joined(namespace, separator, name string) string {
	if namespace == "" {
		return name
	}
	return jsonstream.Clean(namespace) + separator + name
}

// versionLike is one version. versionAlone is one that no words are around.
var (
	versionLike  = regexp.MustCompile(`^[vV]?\d[\w.+~:-]*$`)
	versionAlone = regexp.MustCompile(`^[\w.+~:-]*\d[\w.+~:-]*$`)
)

// versions joins the versions of a list, and of texts such as "4.17.12, 5.0.0".
func versions(texts []string) string {
	var list []string
	for _, text := range texts {
		if versionAlone.MatchString(text) {
			list = append(list, text)
			continue
		}
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", ;|[]\"'`", r) }) {
			if word = strings.TrimLeft(word, ">=^~"); versionLike.MatchString(word) {
				list = append(list, word)
			}
		}
	}
	return strings.Join(distinct(list), ", ")
}

// fromNames reads names of logical locations: "lodash:4.17.4", "app.jar: log4j-core-2.14.1.jar".
func (p *Package) fromNames(locations []wireLocation) {
	for _, location := range locations {
		for _, logical := range location.LogicalLocations {
			name := cmp.Or(logical.FullyQualifiedName, logical.Name)
			if m := nameVersion.FindStringSubmatch(name); m != nil && p.Name == "" {
				set(&p.Name, m[1])
				set(&p.Version, m[2])
			}
			_, last, _ := cutLast(name, ": ")
			p.fromFile(cmp.Or(last, name))
		}
	}
}

// cutLast cuts around the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// fromFile reads "lib/handlebars-1.0.0.js": a bundled library has its version in the name of its file.
func (p *Package) fromFile(file string) {
	if p.Name != "" {
		return
	}
	if m := bundled.FindStringSubmatch(path.Base(file)); m != nil {
		set(&p.Name, m[1])
		set(&p.Version, m[2])
		set(&p.Ecosystem, ecosystem(m[3]))
	}
}

// cveFirst prefers a CVE, which every source knows, to other identifiers.
var cveFirst = [...]*regexp.Regexp{cveID, advisoryID}

// advisory returns the first CVE of the texts, else the first other identifier.
func advisory(texts ...string) string {
	for _, pattern := range cveFirst {
		for _, text := range texts {
			id := pattern.FindString(text)
			switch {
			case id == "":
			case strings.HasPrefix(strings.ToUpper(id), "GHSA"):
				return "GHSA" + strings.ToLower(id[len("GHSA"):])
			default:
				return strings.ToUpper(id)
			}
		}
	}
	return ""
}

func set(field *string, value string) {
	if *field == "" {
		*field = jsonstream.Cut(redactTokens(strings.TrimSpace(value)), 255)
	}
}

// submatch returns the first group of a pattern.
func submatch(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
