package sarif

import (
	"regexp"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Texts in which tools write about dependencies. Properties come first; see [packageOf].

var (
	// Trivy: one fact per line.
	trivyPackage   = regexp.MustCompile(`(?m)^Package:[ \t]*(\S.*?)[ \t]*$`)
	trivyInstalled = regexp.MustCompile(`(?m)^Installed Version:[ \t]*(\S.*?)[ \t]*$`)
	trivyFixed     = regexp.MustCompile(`(?m)^Fixed Version:[ \t]*(\S.*?)[ \t]*$`)
	// Grype: "A high vulnerability in npm package: lodash, version 4.17.4 was found at: …".
	grypeMessage = regexp.MustCompile(`(?i)vulnerability in (\S+) package: (\S+?), version (\S+?),? was found`)
	// Earlier Grype: "… reports x at version 1.0.1 which would result in a vulnerable (java-archive) package".
	grypeReports = regexp.MustCompile(`reports (\S+) at version (\S+)\s+which would result in a vulnerable \(([^)\s]+)\) package`)
	// OSV-Scanner: "Package 'lodash@4.17.4' is vulnerable to 'CVE-…'".
	osvMessage = regexp.MustCompile(`(?i)package '([^'\s]+)@([^'@\s]+)' is vulnerable`)
	// Snyk: "This file introduces a vulnerable lodash package …", and "(CVE-2018-16487) lodash@4.17.4" about the rule.
	snykMessage = regexp.MustCompile(`(?i)introduces a vulnerable (\S+) package`)
	snykRule    = regexp.MustCompile(`^\([A-Z, 0-9-]+\) (@?[^\s@]+)@(\d\S*)`)
	snykFix     = regexp.MustCompile(`(?i)upgrade (?:\S+ )?to (@?[^\s@]+)@v?(\d[\w.+-]*\w)`)
	// govulncheck: "… in 1 package (golang.org/x/net/http2)", "… on 1 vulnerable module (golang.org/x/net)".
	govulnMessage = regexp.MustCompile(`\b(?:package|module)s? \(([^),\s]+\.[^),\s]+)[),]`)
	// Black Duck and Xray: "… in lodash 4.17.20", "[CVE-2022-1234] lodash 4.17.20".
	namedVersion = regexp.MustCompile(`(?:\) in|^\[[^\]]+\]) (@?[\w./:-]+) v?(\d+\.[\w.+-]*\w|\d+)\b`)
	// A package URL in any text.
	purlPattern = regexp.MustCompile(`\bpkg:[a-z.+-]+/[^\s"'<>)\]}|` + "`" + `]+`)
	fixedIn     = regexp.MustCompile(`(?i)\b(?:fixed|patched) in:? (?:version |versions )?v?(\d[\w.+-]*[\w])`)
	// joinedID is an advisory and a package in the id of a rule.
	joinedID    = regexp.MustCompile(`^(?:CVE-\d{4}-\d{4,}|(?i:GHSA(?:-[0-9a-z]{4}){3})|XRAY-\d+)(?:-([A-Za-z@]\S*)|_(\S+)_(\d[^_\s]*))$`)
	nameVersion = regexp.MustCompile(`^(@?[\w./-]+(?::[\w.-]+)?):v?(\d[\w.+-]*)$`)
	bundled     = regexp.MustCompile(`^(.+?)[-_.]v?(\d+(?:\.\d[\w]*)+)(?:[.-](?:min|slim|RELEASE|Final|jre\d*))?\.(jar|war|js|whl|nupkg|gem|crate)$`)

	cveID      = regexp.MustCompile(`(?i)\bCVE-\d{4}-\d{4,}`)
	advisoryID = regexp.MustCompile(`(?i)\b(?:GHSA(?:-[0-9a-z]{4}){3}|(?:GO|PYSEC|RUSTSEC|OSV|SNYK|MAL|DSA|DLA|USN|ALAS|TEMP|GMS|NSWG|BDSA|XRAY|WS|RHSA|ELSA|SNYK-[A-Z]+)-[0-9A-Z][0-9A-Z.-]*\d)\b`)
)

// fromText fills empty fields from the formats of known tools.
func (p *Package) fromText(text string) {
	set(&p.Name, submatch(trivyPackage, text))
	set(&p.Version, submatch(trivyInstalled, text))
	set(&p.FixedVersion, versions([]string{submatch(trivyFixed, text)}))
	if m := grypeMessage.FindStringSubmatch(text); m != nil {
		set(&p.Ecosystem, ecosystem(m[1]))
		set(&p.Name, m[2])
		set(&p.Version, m[3])
	}
	if m := grypeReports.FindStringSubmatch(text); m != nil {
		set(&p.Name, m[1])
		set(&p.Version, m[2])
		set(&p.Ecosystem, ecosystem(m[3]))
	}
	if snykRule.MatchString(text) {
		set(&p.AdvisoryID, cveID.FindString(text))
	}
	for _, pattern := range [...]*regexp.Regexp{osvMessage, snykRule, namedVersion} {
		if m := pattern.FindStringSubmatch(text); m != nil && (p.Name == "" || p.Name == m[1]) {
			set(&p.Name, m[1])
			set(&p.Version, m[2])
		}
	}
	set(&p.Name, submatch(snykMessage, text))
	if name := submatch(govulnMessage, text); name != "" && p.Name == "" {
		set(&p.Name, name)
		set(&p.Ecosystem, "gomod")
	}
	set(&p.FixedVersion, submatch(fixedIn, text))
	p.fromFix(text)
}

// fromFix reads "Upgrade to lodash@4.17.20".
func (p *Package) fromFix(text string) {
	if m := snykFix.FindStringSubmatch(text); m != nil && (p.Name == "" || p.Name == m[1]) {
		set(&p.FixedVersion, m[2])
	}
}

// sheetFacts are names that mean something only in a description of one dependency.
var sheetFacts = map[string]fact{"version": factVersion, "type": factEcosystem}

func sheetFact(name string) fact {
	if f := sheetFacts[strings.ToLower(strings.TrimSpace(name))]; f != noFact {
		return f
	}
	return factOf([]byte(strings.Trim(name, " \t*-`")), noFact)
}

// fromFactSheet reads help texts in which each line has a fact ("Fix Version: 1.2"), and tables in Markdown.
func (p *Package) fromFactSheet(text string) {
	var sheet bag
	var columns []fact
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "|") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			switch {
			case columns == nil:
				for _, cell := range cells {
					columns = append(columns, sheetFact(cell))
				}
			case !strings.HasPrefix(strings.Trim(line, "| "), "-"):
				for i, cell := range cells[:min(len(cells), len(columns))] {
					sheet.note(columns[i], cell)
				}
			}
			continue
		}
		columns = nil
		if name, value, found := strings.Cut(line, ":"); found && len(name) < maxPropertyName {
			sheet.note(sheetFact(name), value)
		}
	}
	p.fromBag(&sheet)
}

// note adds a text about a dependency. A text about anything else is left out.
func (b *bag) note(f fact, text string) {
	text = strings.Trim(text, " \t*`")
	if f >= factPURL && f <= factAdvisory && text != "" && len(b.texts[f]) < maxLoose {
		b.texts[f] = append(b.texts[f], jsonstream.Cut(text, 500))
	}
}
