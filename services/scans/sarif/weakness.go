package sarif

import (
	"regexp"
	"strings"
)

// The subject of a rule: category, CWE, OWASP and vulnerability class. Tools write them in many places.

const defaultCategory = "security"

// knownCategories are the categories of common rule sets. A tag that is one of them is a category.
var knownCategories = map[string]bool{
	"security": true, "correctness": true, "best-practice": true, "performance": true, "maintainability": true,
	"portability": true, "caching": true, "compatibility": true, "style": true,
}

// category normalises free text: "Possible Security Vulnerability" (ESLint) is security, "Best Practices"
// best-practices.
func category(property string, tags []string) string {
	word := strings.Join(strings.FieldsFunc(strings.ToLower(property), func(r rune) bool {
		return r == ' ' || r == '_' || r == '-' || r == '/' || r == '\t'
	}), "-")
	switch {
	case strings.Contains(word, "security"), strings.Contains(word, "vulnerab"):
		return defaultCategory
	case word == "best-practices":
		return "best-practice"
	case word != "":
		return cut(word, 100)
	}
	for _, tag := range tags {
		if tag = strings.ToLower(tag); knownCategories[tag] {
			return tag
		}
	}
	return defaultCategory
}

// subcategories returns the property and the tags that are subcategories.
func subcategories(property, tags []string) []string {
	for _, tag := range tags {
		switch tag = strings.ToLower(tag); tag {
		case "vuln", "audit", "guardrail", "secure default":
			property = append(property, tag)
		}
	}
	return distinct(property)
}

var (
	cwePattern   = regexp.MustCompile(`(?i)\bcwe[-_:/ ]?0*(\d{1,5})\b(?:\s*[:–-]\s*(\S.*))?`)
	owaspPattern = regexp.MustCompile(`(?i)^(?:external/)?owasp[-_:/ ]+(?:top[-_ ]?10[-_:/ ]*)?(\S.*)$`)
	owaspBare    = regexp.MustCompile(`^(?:A|M|API|LLM)\d{1,2}:\d{4}\b`)
	onlyDigits   = regexp.MustCompile(`^0*(\d{1,5})$`)
)

// cweProperty reads properties that only have CWEs, so a bare "79" is a CWE.
func cweProperty(properties ...loose) []string {
	var names []string
	for _, property := range properties {
		for _, text := range property {
			if m := onlyDigits.FindStringSubmatch(text); m != nil {
				text = "CWE-" + m[1]
			}
			names = append(names, cweNames([]string{text})...)
		}
	}
	return names
}

// cweNames finds CWEs in texts such as "CWE-95: Improper …" and "external/cwe/cwe-079".
func cweNames(texts []string) []string {
	var names []string
	for _, text := range texts {
		m := cwePattern.FindStringSubmatch(text)
		switch {
		case m == nil:
		case m[2] != "":
			names = append(names, "CWE-"+m[1]+": "+oneLine(m[2]))
		default:
			names = append(names, "CWE-"+m[1])
		}
	}
	return names
}

// cweOf reads the target of a relationship: gosec writes id "703" in a component named CWE, flawfinder "CWE-362".
func cweOf(ref wireDescriptorRef, taxonomies []*component) (string, bool) {
	if m := cwePattern.FindStringSubmatch(ref.ID); m != nil {
		return "CWE-" + m[1], true
	}
	digits := onlyDigits.FindStringSubmatch(ref.ID)
	if digits == nil || ref.ToolComponent == nil {
		return "", false
	}
	name := ref.ToolComponent.Name
	for i, c := range taxonomies {
		if name != "" {
			break
		}
		byIndex := ref.ToolComponent.Index != nil && int(*ref.ToolComponent.Index) == i
		if byIndex || (c.guid != "" && strings.EqualFold(c.guid, ref.ToolComponent.GUID)) {
			name = c.name
		}
	}
	return "CWE-" + digits[1], strings.EqualFold(name, "CWE")
}

// taxonomyTitles returns the titles of all CWE taxonomies of the run by "CWE-n".
func (run *Run) taxonomyTitles() map[string]string {
	titles := map[string]string{}
	for _, c := range append(run.components(), run.taxonomies...) {
		for id, title := range c.titles {
			if m := cwePattern.FindStringSubmatch(id); m != nil {
				titles["CWE-"+m[1]] = title
			} else if m := onlyDigits.FindStringSubmatch(id); m != nil && strings.EqualFold(c.name, "CWE") {
				titles["CWE-"+m[1]] = title
			}
		}
		c.titles = nil
	}
	return titles
}

// distinctCWE keeps each CWE once, with a title if any source has one.
func distinctCWE(names []string) []string {
	kept := make([]string, 0, len(names))
	at := map[string]int{}
	for _, name := range names {
		id, _, titled := strings.Cut(name, ":")
		i, seen := at[id]
		switch {
		case !seen:
			at[id] = len(kept)
			kept = append(kept, name)
		case titled && kept[i] == id:
			kept[i] = name
		}
	}
	return kept
}

// owaspNames converts "OWASP-A03:2021 - Injection" and "A03:2021 - Injection" to the latter form.
func owaspNames(property, tags []string) []string {
	var names []string
	for i, text := range append(append([]string{}, property...), tags...) {
		if m := owaspPattern.FindStringSubmatch(text); m != nil {
			names = append(names, m[1])
		} else if i < len(property) || owaspBare.MatchString(text) {
			names = append(names, text)
		}
	}
	return distinct(names)
}

// classes groups CWEs under the names that people filter by.
var classes = map[string]string{
	"CWE-22": "Path Traversal", "CWE-23": "Path Traversal", "CWE-35": "Path Traversal", "CWE-73": "Path Traversal",
	"CWE-77": "Command Injection", "CWE-78": "Command Injection", "CWE-88": "Command Injection",
	"CWE-79": "Cross-Site-Scripting (XSS)", "CWE-80": "Cross-Site-Scripting (XSS)", "CWE-116": "Improper Encoding",
	"CWE-89": "SQL Injection", "CWE-564": "SQL Injection", "CWE-943": "NoSQL Injection", "CWE-90": "LDAP Injection",
	"CWE-643": "XPath Injection", "CWE-91": "XML Injection", "CWE-611": "XML Injection", "CWE-776": "XML Injection",
	"CWE-94": "Code Injection", "CWE-95": "Code Injection", "CWE-96": "Code Injection", "CWE-1336": "Code Injection",
	"CWE-20": "Improper Validation", "CWE-295": "Improper Validation", "CWE-345": "Improper Validation",
	"CWE-119": "Memory Issues", "CWE-120": "Memory Issues", "CWE-121": "Memory Issues", "CWE-122": "Memory Issues",
	"CWE-125": "Memory Issues", "CWE-190": "Memory Issues", "CWE-415": "Memory Issues", "CWE-416": "Memory Issues",
	"CWE-476": "Memory Issues", "CWE-787": "Memory Issues", "CWE-134": "Memory Issues",
	"CWE-200": "Mishandled Sensitive Information", "CWE-209": "Mishandled Sensitive Information",
	"CWE-312": "Mishandled Sensitive Information", "CWE-319": "Mishandled Sensitive Information",
	"CWE-532": "Mishandled Sensitive Information", "CWE-311": "Mishandled Sensitive Information",
	"CWE-259": "Hard-coded Secrets", "CWE-321": "Hard-coded Secrets", "CWE-798": "Hard-coded Secrets",
	"CWE-284": "Improper Authorization", "CWE-285": "Improper Authorization", "CWE-639": "Improper Authorization",
	"CWE-862": "Improper Authorization", "CWE-863": "Improper Authorization", "CWE-276": "Improper Authorization",
	"CWE-269": "Improper Authorization", "CWE-732": "Improper Authorization",
	"CWE-287": "Improper Authentication", "CWE-306": "Improper Authentication", "CWE-384": "Improper Authentication",
	"CWE-326": "Cryptographic Issues", "CWE-327": "Cryptographic Issues", "CWE-330": "Cryptographic Issues",
	"CWE-338": "Cryptographic Issues", "CWE-347": "Cryptographic Issues", "CWE-310": "Cryptographic Issues",
	"CWE-328": "Insecure Hashing Algorithm", "CWE-916": "Insecure Hashing Algorithm",
	"CWE-352": "Cross-Site Request Forgery (CSRF)", "CWE-918": "Server-Side Request Forgery (SSRF)", "CWE-601": "Open Redirect",
	"CWE-502": "Insecure Deserialization", "CWE-915": "Mass Assignment", "CWE-1321": "Mass Assignment",
	"CWE-400": "Denial-of-Service (DoS)", "CWE-770": "Denial-of-Service (DoS)", "CWE-1333": "Denial-of-Service (DoS)",
	"CWE-362": "Race Condition", "CWE-367": "Race Condition", "CWE-489": "Active Debug Code",
	"CWE-614": "Cookie Security", "CWE-1004": "Cookie Security", "CWE-1275": "Cookie Security",
	"CWE-242": "Dangerous Method or Function", "CWE-676": "Dangerous Method or Function", "CWE-749": "Dangerous Method or Function",
}

// vulnerabilityClasses derives the classes from the CWEs, because many tools write none.
func vulnerabilityClasses(cwes []string) []string {
	var names []string
	for _, name := range cwes {
		id, _, _ := strings.Cut(name, ":")
		names = append(names, classes[id])
	}
	return distinct(names)
}
