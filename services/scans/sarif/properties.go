package sarif

import (
	"maps"
	"slices"
	"strings"
)

// fact is what a property is about. Tools have many names for each.
type fact uint8

const (
	noFact fact = iota
	// inside is an object with further properties of the same kinds.
	inside

	factSecuritySeverity
	factCVSS4
	factCVSS3
	factCVSS // of an unknown version
	factCVSS2
	factSeverity
	factPriority
	factRisk
	factImpact
	factProblem

	factPrecision
	factConfidence
	factCategory
	factSubcategory
	factClass
	factTags
	factProduct
	factCWE     // a bare number is a CWE
	factCWEText // only text that says CWE
	factOWASP

	factPURL
	factPackage
	factVersion
	factFixed
	factEcosystem
	factAdvisory
	factTransitivity
	factReachability
	factCondition
	factMalicious // the only fact that may be true or false
	factLockfile
	factLockfileLine
	factManifest
	factReference

	factPerson // of a suppression
	factReason

	facts // the number of facts
)

// propertyFacts maps property names to facts, without case and without "-", "_", ".", " " and "/". Names that begin
// with cwe, owasp or cvss are understood, too; see [factOf]. docs/scanners.md has the list.
var propertyFacts = map[string]fact{
	"metadata": inside, "vulnerability": factAdvisory, "issue": inside, "finding": inside, "details": inside, "attributes": inside,
	"additionalproperties": inside, "advisory": factAdvisory, "advisories": factAdvisory, "scainfo": inside, "extra": inside,

	"securityseverity": factSecuritySeverity, "securityseverityscore": factSecuritySeverity,
	"severity": factSeverity, "issueseverity": factSeverity, "severitylevel": factSeverity, "severityname": factSeverity,
	"severityrating": factSeverity, "resultseverity": factSeverity, "ruleseverity": factSeverity, "vulnerabilityseverity": factSeverity,
	"baseseverity": factSeverity, "severitylabel": factSeverity, "normalizedseverity": factSeverity, "criticality": factSeverity,
	"priority": factPriority, "prioritylabel": factPriority, "prioritylevel": factPriority,
	"risk": factRisk, "securityrisk": factRisk, "risklevel": factRisk, "riskdesc": factRisk, "riskseverity": factRisk, "threatlevel": factRisk,
	"impact": factImpact, "impactlevel": factImpact,
	"problemseverity": factProblem,
	"basescore":       factCVSS, "vectorstring": factCVSS, "vector": factCVSS,

	"precision": factPrecision, "confidence": factConfidence, "issueconfidence": factConfidence,
	"category": factCategory, "subcategory": factSubcategory, "subcategories": factSubcategory,
	"vulnerabilityclass": factClass, "vulnerabilityclasses": factClass,
	"tags": factTags, "tag": factTags,
	"product": factProduct, "producttype": factProduct, "scantype": factProduct, "enginetype": factProduct, "scannertype": factProduct,
	"issuetype": factProduct, "findingtype": factProduct, "resulttype": factProduct, "vulnerabilitytype": factProduct,
	"weakness": factCWEText, "weaknesses": factCWEText,

	"purl": factPURL, "purls": factPURL, "packageurl": factPURL, "packagepurl": factPURL, "componentpurl": factPURL, "pkgpurl": factPURL,
	"packagename": factPackage, "package": factPackage, "pkgname": factPackage, "pkg": factPackage, "component": factPackage,
	"componentname": factPackage, "library": factPackage, "libraryname": factPackage, "dependency": factPackage,
	"dependencyname": factPackage, "module": factPackage, "modulename": factPackage, "vulnerablemodule": factPackage,
	"artifact": factPackage, "artifactname": factPackage, "affectedpackage": factPackage,
	"packageversion": factVersion, "installedversion": factVersion, "pkgversion": factVersion, "currentversion": factVersion,
	"componentversion": factVersion, "libraryversion": factVersion, "dependencyversion": factVersion, "moduleversion": factVersion,
	"artifactversion": factVersion, "foundversion": factVersion,
	"fixedversion": factFixed, "fixedversions": factFixed, "fixversion": factFixed, "fixversions": factFixed, "fixedin": factFixed,
	"patchedversion": factFixed, "patchedversions": factFixed, "firstpatchedversion": factFixed, "recommendedversion": factFixed,
	"upgradeversion": factFixed, "safeversion": factFixed, "remediationversion": factFixed, "fixedinversion": factFixed, "fix": factFixed,
	"ecosystem": factEcosystem, "packageecosystem": factEcosystem, "packagemanager": factEcosystem, "packagetype": factEcosystem,
	"pkgtype": factEcosystem, "componentorigin": factEcosystem, "librarytype": factEcosystem, "packageformat": factEcosystem,
	"cve": factAdvisory, "cves": factAdvisory, "cveid": factAdvisory, "cveids": factAdvisory, "ghsa": factAdvisory, "ghsaid": factAdvisory,
	"vulnerabilityid": factAdvisory, "vulnid": factAdvisory, "advisoryid": factAdvisory, "osvid": factAdvisory, "aliases": factAdvisory,
	"identifiers": factAdvisory, "vulnerabilityname": factAdvisory,

	"transitivity": factTransitivity, "reachability": factReachability, "reachablecondition": factCondition, "malicious": factMalicious,
	"lockfile": factLockfile, "lockfileline": factLockfileLine, "manifest": factManifest,

	"references": factReference, "reference": factReference,

	"author": factPerson, "alias": factPerson, "user": factPerson, "username": factPerson, "suppressedby": factPerson,
	"createdby": factPerson, "acceptedby": factPerson, "approvedby": factPerson, "dismissedby": factPerson, "reviewer": factPerson,
	"reviewedby": factPerson, "auditor": factPerson, "justification": factReason, "reason": factReason, "comment": factReason,
}

// memberFacts maps the members of an object that is the value of a property, for example of package {name, version}.
var memberFacts = map[fact]map[string]fact{
	factPackage: {
		"name": factPackage, "version": factVersion, "type": factEcosystem, "manager": factEcosystem, "id": factPURL, "package": factPackage,
	},
	factAdvisory:  {"id": factAdvisory, "name": factAdvisory, "value": factAdvisory},
	factFixed:     {"versions": factFixed, "version": factFixed},
	factCWE:       {"id": factCWE, "value": factCWE, "code": factCWE, "number": factCWE, "name": factCWEText, "url": factCWEText, "link": factCWEText},
	factCWEText:   {"id": factCWEText, "name": factCWEText, "value": factCWEText, "url": factCWEText},
	factOWASP:     {"id": factOWASP, "name": factOWASP, "value": factOWASP, "category": factOWASP},
	factReference: {"url": factReference, "uri": factReference, "link": factReference, "href": factReference},
	factTags:      {"name": factTags, "tag": factTags, "value": factTags},
	factSeverity:  {"name": factSeverity, "level": factSeverity, "value": factSeverity, "label": factSeverity, "rating": factSeverity, "score": factCVSS},
}

// cvssMembers are the members of objects about CVSS. Others, such as exploitabilityScore, are no base scores.
var cvssMembers = map[string]fact{
	"score": factCVSS, "basescore": factCVSS, "vector": factCVSS, "vectorstring": factCVSS, "baseseverity": factSeverity, "severity": factSeverity,
	"v4score": factCVSS4, "v40score": factCVSS4, "v4vector": factCVSS4, "v40vector": factCVSS4, "v3score": factCVSS3, "v3vector": factCVSS3,
	"v2score": factCVSS2, "v2vector": factCVSS2,
}

// bareCWE are the names whose values may be bare numbers.
var bareCWE = map[string]bool{
	"cwe": true, "cwes": true, "cweid": true, "cweids": true, "cwenumber": true, "cwenumbers": true, "cwelist": true, "cwecode": true, "cwecodes": true,
}

// maxPropertyName is the length above which a name is not looked up.
const maxPropertyName = 48

// normalName writes a name without case and separators to buf.
func normalName(buf []byte, name []byte) []byte {
	for _, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '-' || c == '_' || c == '.' || c == ' ' || c == '/' || c == '"':
			continue
		}
		if len(buf) == cap(buf) {
			return nil
		}
		buf = append(buf, c)
	}
	return buf
}

// factOf returns the fact of a member of a bag, or of an object that is the value of a property about another fact.
func factOf(name []byte, of fact) fact {
	var buf [maxPropertyName]byte
	n := normalName(buf[:0], name)
	if len(n) == 0 {
		return noFact
	}
	switch of {
	case noFact, inside:
	case factCVSS, factCVSS2, factCVSS3, factCVSS4:
		return cvssMember(string(n), of)
	default:
		if f, known := memberFacts[of][string(n)]; known {
			return f
		}
		if of == factOWASP && isYear(n) {
			return factOWASP
		}
		if of != factPackage && of != factAdvisory && !(of == factCWE && hasPrefix(n, "cwe")) {
			return noFact
		}
	}
	if f, known := propertyFacts[string(n)]; known {
		return f
	}
	switch {
	case hasPrefix(n, "cwe"):
		if bareCWE[string(n)] {
			return factCWE
		}
		return factCWEText
	case hasPrefix(n, "owasp"):
		return factOWASP
	case hasPrefix(n, "cvss"):
		return cvssFact(string(n))
	}
	return noFact
}

// cvssFact is the fact of a name that begins with cvss: "cvssV3", "cvss-score", "cvssv3_baseSeverity".
func cvssFact(name string) fact {
	switch {
	case strings.HasSuffix(name, "severity"), strings.HasSuffix(name, "rating"):
		return factSeverity
	case strings.Contains(name, "exploitab"), strings.Contains(name, "impact"), strings.Contains(name, "temporal"), strings.HasSuffix(name, "version"):
		return noFact
	case strings.Contains(name, "v4"), strings.HasPrefix(name, "cvss4"):
		return factCVSS4
	case strings.Contains(name, "v3"), strings.HasPrefix(name, "cvss3"):
		return factCVSS3
	case strings.Contains(name, "v2"), strings.HasPrefix(name, "cvss2"):
		return factCVSS2
	}
	return factCVSS
}

// cvssMember is the fact of a member of an object about CVSS. A member without a meaning of its own may be the name of
// a source (nvd, redhat) or of a version, and only then has members itself.
func cvssMember(name string, of fact) fact {
	f, known := cvssMembers[name]
	switch {
	case known && f == factCVSS:
		return of
	case known:
		return f
	case strings.HasPrefix(name, "cvss"):
		return cvssFact(name)
	case strings.Contains(name, "score"), strings.Contains(name, "version"):
		return noFact
	}
	return cvssSource(of)
}

// cvssSource marks an object below a fact about CVSS whose scalar members do not count.
func cvssSource(of fact) fact { return of | onlyObjects }

// onlyObjects is a flag of a fact: its scalars do not count.
const onlyObjects fact = 0x80

func isYear(n []byte) bool { return len(n) == 4 && n[0] == '2' && n[1] == '0' }

func hasPrefix(n []byte, prefix string) bool {
	return len(n) >= len(prefix) && string(n[:len(prefix)]) == prefix
}

// PropertyNames are the names of properties that are understood, in their normal form, sorted.
func PropertyNames() []string { return slices.Sorted(maps.Keys(propertyFacts)) }
