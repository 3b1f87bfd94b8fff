package sarif

import (
	"net/url"
	"path"
	"regexp"
	"strings"
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
}

var (
	// Trivy: one fact per line.
	trivyPackage   = regexp.MustCompile(`(?m)^Package:[ \t]*(\S.*?)[ \t]*$`)
	trivyInstalled = regexp.MustCompile(`(?m)^Installed Version:[ \t]*(\S.*?)[ \t]*$`)
	trivyFixed     = regexp.MustCompile(`(?m)^Fixed Version:[ \t]*(\S.*?)[ \t]*$`)
	// Grype: "A high vulnerability in npm package: lodash, version 4.17.4 was found at: …".
	grypeMessage = regexp.MustCompile(`(?i)vulnerability in (\S+) package: (\S+?), version (\S+?),? was found`)
	// OSV-Scanner: "Package 'lodash@4.17.4' is vulnerable to 'CVE-…'".
	osvMessage = regexp.MustCompile(`(?i)package '([^'\s]+)@([^'@\s]+)' is vulnerable`)
	// Snyk: "This file introduces a vulnerable lodash package …".
	snykMessage = regexp.MustCompile(`(?i)introduces a vulnerable (\S+) package`)
	// A package URL in any text.
	purlPattern = regexp.MustCompile(`\bpkg:[a-z.+-]+/[^\s"'<>)\]}?#]+`)
	fixedIn     = regexp.MustCompile(`(?i)\bfixed in:? (?:version |versions )?v?(\d[\w.+-]*[\w])`)

	cveID      = regexp.MustCompile(`(?i)\bCVE-\d{4}-\d{4,}\b`)
	advisoryID = regexp.MustCompile(`(?i)\b(?:GHSA(?:-[0-9a-z]{4}){3}|(?:GO|PYSEC|RUSTSEC|OSV|SNYK|MAL|DSA|DLA|USN|ALAS|TEMP|GMS|NSWG|SNYK-[A-Z]+)-[0-9A-Z][0-9A-Z.-]*\d)\b`)
)

// packageOf reads the dependency from properties first, then from message formats of known tools. It returns nil if
// none is named.
func packageOf(w *wireResult, rule *Rule, message, file string) *Package {
	p := &Package{
		Name:         first(w.Properties.PackageName),
		Version:      first(w.Properties.InstalledVersion, w.Properties.PackageVersion),
		FixedVersion: first(w.Properties.FixedVersion),
		Ecosystem:    ecosystem(first(w.Properties.Ecosystem, w.Properties.PackageManager)),
	}
	p.fromText(message)
	p.fromPURL(first(w.Properties.PURL, w.Properties.PURLs, rule.purls))
	p.fromPURL(purlPattern.FindString(message))
	if p.Name == "" {
		return nil
	}
	if p.Ecosystem == "" {
		p.Ecosystem = lockfiles[strings.ToLower(path.Base(file))]
	}
	p.AdvisoryID = advisory(rule.ID, message)
	return p
}

// fromText fills empty fields from the message.
func (p *Package) fromText(message string) {
	set(&p.Name, submatch(trivyPackage, message))
	set(&p.Version, submatch(trivyInstalled, message))
	set(&p.FixedVersion, submatch(trivyFixed, message))
	if m := grypeMessage.FindStringSubmatch(message); m != nil {
		set(&p.Ecosystem, ecosystem(m[1]))
		set(&p.Name, m[2])
		set(&p.Version, m[3])
	}
	if m := osvMessage.FindStringSubmatch(message); m != nil {
		set(&p.Name, m[1])
		set(&p.Version, m[2])
	}
	set(&p.Name, submatch(snykMessage, message))
	set(&p.FixedVersion, submatch(fixedIn, message))
}

// fromPURL fills empty fields from a package URL: pkg:type/namespace/name@version.
func (p *Package) fromPURL(purl string) {
	rest, ok := strings.CutPrefix(purl, "pkg:")
	if !ok {
		return
	}
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	kind, name, ok := strings.Cut(rest, "/")
	if !ok || name == "" {
		return
	}
	name, version, _ := cutLast(strings.TrimRight(name, ".,"), "@")
	if decoded, err := url.PathUnescape(name); err == nil {
		name = decoded
	}
	if decoded, err := url.PathUnescape(version); err == nil {
		version = decoded
	}
	if kind == "maven" {
		name = strings.Replace(name, "/", ":", 1)
	}
	name = clean(name)
	if p.Name != "" && !strings.HasSuffix(name, p.Name) {
		return // another package
	}
	set(&p.Name, name)
	set(&p.Version, clean(version))
	set(&p.Ecosystem, ecosystem(kind))
}

// cutLast cuts around the last separator, unless it is the first character ("@scope/name").
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i > 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// advisory prefers a CVE, which every source knows, to other identifiers, and the rule's id to the message.
func advisory(texts ...string) string {
	for _, pattern := range []*regexp.Regexp{cveID, advisoryID} {
		for _, text := range texts {
			if id := pattern.FindString(text); id != "" {
				if strings.HasPrefix(strings.ToUpper(id), "GHSA") {
					return "GHSA" + strings.ToLower(id[len("GHSA"):])
				}
				return strings.ToUpper(id)
			}
		}
	}
	return ""
}

// ecosystems maps the ecosystems of package URLs and tools to the API's.
var ecosystems = map[string]string{
	"npm": "npm", "javascript": "npm", "node": "npm", "node-pkg": "npm", "yarn": "npm", "pnpm": "npm",
	"pypi": "pypi", "python": "pypi", "pip": "pypi", "python-pkg": "pypi", "poetry": "pypi", "pipenv": "pypi",
	"golang": "gomod", "go": "gomod", "gomod": "gomod", "go-module": "gomod", "gobinary": "gomod",
	"cargo": "cargo", "rust": "cargo", "crates.io": "cargo", "rust-crate": "cargo",
	"maven": "maven", "java": "maven", "java-archive": "maven", "gradle": "maven", "pom": "maven", "jar": "maven",
	"gem": "gem", "rubygems": "gem", "ruby": "gem", "bundler": "gem",
	"composer": "composer", "packagist": "composer", "php": "composer", "php-composer": "composer",
	"nuget": "nuget", "dotnet": "nuget", "pub": "pub", "dart": "pub", "dart-pub": "pub",
	"swift": "swiftpm", "swiftpm": "swiftpm", "hex": "hex", "mix": "hex", "erlang": "hex",
}

func ecosystem(word string) string { return ecosystems[strings.ToLower(strings.TrimSpace(word))] }

// lockfiles maps file names to ecosystems.
var lockfiles = map[string]string{
	"package-lock.json": "npm", "npm-shrinkwrap.json": "npm", "yarn.lock": "npm", "pnpm-lock.yaml": "npm", "package.json": "npm",
	"requirements.txt": "pypi", "poetry.lock": "pypi", "pipfile.lock": "pypi", "uv.lock": "pypi", "pyproject.toml": "pypi",
	"go.mod": "gomod", "go.sum": "gomod", "cargo.lock": "cargo", "cargo.toml": "cargo",
	"pom.xml": "maven", "gradle.lockfile": "maven", "build.gradle": "maven", "build.gradle.kts": "maven",
	"gemfile.lock": "gem", "composer.lock": "composer", "packages.lock.json": "nuget", "pubspec.lock": "pub",
	"package.resolved": "swiftpm", "mix.lock": "hex",
}

func set(field *string, value string) {
	if *field == "" {
		*field = cut(value, 255)
	}
}

// submatch returns the first group of a pattern.
func submatch(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
