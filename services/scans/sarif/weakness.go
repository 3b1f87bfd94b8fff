package sarif

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
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
		return jsonstream.Cut(word, 100)
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
	cwePattern = regexp.MustCompile(`(?i)(?:^|[^a-z0-9])cwe[-_:/ #]{0,3}(?:id)?[-_:/ #]{0,3}0*(\d{1,5})(?:$|[^0-9a-z](?:\s*[:–-]?\s*(\S.*))?)`)
	cweMention = regexp.MustCompile(`(?i)(?:^|[^a-z0-9])cwe[-_:/ ]{0,2}0*(\d{1,5})`)
	cweURL     = regexp.MustCompile(`(?i)cwe\.mitre\.org/data/definitions/0*(\d{1,5})\b`)
	onlyDigits = regexp.MustCompile(`^0*(\d{1,5})$`)
	// cweTitle is what separates an id from its title: "CWE-79: Cross-site Scripting".
	cweTitle = regexp.MustCompile(`(?i)cwe[-_:/ ]?\d+\)?\s*[:–-]\s*\S`)
)

// cweProperties reads the properties about CWEs. Where a property has nothing but CWEs, a bare "79" is one.
func (b *bag) cweProperties() []string {
	var names []string
	for _, text := range b.texts[factCWE] {
		for part := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' || c == ';' }) {
			if m := onlyDigits.FindStringSubmatch(strings.TrimSpace(part)); m != nil {
				names = append(names, "CWE-"+m[1])
			}
		}
	}
	names = append(names, cweNames(b.texts[factCWE])...)
	names = append(names, cweNames(b.texts[factCWEText])...)
	return names
}

// cweNames finds CWEs in texts such as "CWE-95: Improper …", "external/cwe/cwe-079", "CWE-79, CWE-80" and URLs of their
// definitions.
func cweNames(texts []string) []string {
	var names []string
	for _, text := range texts {
		names = append(names, cwesIn(text)...)
	}
	return names
}

func cwesIn(text string) (names []string) {
	if !mentionsCWE(text) {
		return nil
	}
	if m := cweURL.FindAllStringSubmatch(text, maxTags); m != nil {
		for _, found := range m {
			names = append(names, "CWE-"+found[1])
		}
		return names
	}
	m := cwePattern.FindStringSubmatch(text)
	switch {
	case m == nil:
		return nil
	case m[2] != "" && cwePattern.MatchString(" "+m[2]): // a list
		return append([]string{"CWE-" + m[1]}, cwesIn(m[2])...)
	case m[2] != "" && cweTitle.MatchString(text):
		return []string{"CWE-" + m[1] + ": " + jsonstream.OneLine(m[2])}
	}
	return []string{"CWE-" + m[1]}
}

// mentionsCWE reports whether a text has "cwe" in any case. It saves most texts from the expressions.
func mentionsCWE(text string) bool {
	for i := 0; i+3 <= len(text); i++ {
		if text[i]|0x20 == 'c' && text[i+1]|0x20 == 'w' && text[i+2]|0x20 == 'e' {
			return true
		}
	}
	return false
}

// isCWE reports whether a name of a taxonomy is one of CWE.
func isCWE(name string) bool {
	return mentionsCWE(name) || strings.Contains(strings.ToLower(name), "common weakness")
}

// taxonomyOf returns the component and the name that a reference to a taxon means. Tools refer by name, by guid or by
// index, to a taxonomy of the run, to an extension, or to a taxonomy that the driver only says it supports.
func (run *Run) taxonomyOf(ref *wireComponentRef) (c *component, name string) {
	if ref == nil {
		return nil, ""
	}
	for _, c := range append(slices.Clone(run.taxonomies), run.extensions...) {
		if ref.GUID != "" && strings.EqualFold(c.guid, ref.GUID) || ref.GUID == "" && ref.Name != "" && strings.EqualFold(c.name, ref.Name) {
			return c, c.name
		}
	}
	if ref.Name != "" {
		return nil, ref.Name
	}
	for _, supported := range run.driver.supported {
		if ref.GUID != "" && strings.EqualFold(supported.GUID, ref.GUID) {
			return nil, supported.Name
		}
	}
	if ref.Index == nil || *ref.Index < 0 {
		return nil, ""
	}
	// The specification counts the extensions. Many tools count the taxonomies.
	for _, list := range [][]*component{run.taxonomies, run.extensions} {
		if n := int(*ref.Index); n < len(list) && (isCWE(list[n].name) || isOWASP(list[n].name)) {
			return list[n], list[n].name
		}
	}
	return nil, ""
}

// taxon returns the CWE or the OWASP entry that a reference means. gosec writes id "703" in a component named CWE,
// flawfinder "CWE-362", others only an index.
func (run *Run) taxon(ref *wireDescriptorRef) (cwe, owasp string) {
	if names := cwesIn(ref.ID); len(names) == 1 {
		id, _, _ := strings.Cut(names[0], ":")
		return id, ""
	}
	c, name := run.taxonomyOf(ref.ToolComponent)
	id := ref.ID
	if id == "" && c != nil && ref.Index != nil && *ref.Index >= 0 && int(*ref.Index) < len(c.taxonIDs) {
		id = c.taxonIDs[*ref.Index]
	}
	switch {
	case isOWASP(name) && owaspEntry.MatchString(id):
		return "", owaspName(jsonstream.Cut(jsonstream.Clean(id), 255), name)
	case !isCWE(name):
		return "", ""
	}
	if m := onlyDigits.FindStringSubmatch(id); m != nil {
		return "CWE-" + m[1], ""
	}
	if names := cwesIn(id); len(names) == 1 {
		return names[0], ""
	}
	return "", ""
}

// taxonomyTitles returns the titles of all CWE taxonomies of the run by "CWE-n".
func (run *Run) taxonomyTitles() map[string]string {
	titles := map[string]string{}
	for _, c := range append(run.components(), run.taxonomies...) {
		for id, title := range c.titles {
			if m := cwePattern.FindStringSubmatch(id); m != nil {
				titles["CWE-"+m[1]] = title
			} else if m := onlyDigits.FindStringSubmatch(id); m != nil && isCWE(c.name) {
				titles["CWE-"+m[1]] = title
			}
		}
		c.titles = nil
	}
	return titles
}

// cweOfTexts returns the CWE of the first text that names one. A text that names several is ambiguous.
func cweOfTexts(texts ...string) []string {
	for _, text := range texts {
		if !mentionsCWE(text) {
			continue
		}
		found := map[string]bool{}
		for _, pattern := range [...]*regexp.Regexp{cweURL, cweMention} {
			for _, m := range pattern.FindAllStringSubmatch(text, maxTags) {
				found["CWE-"+m[1]] = true
			}
		}
		if len(found) == 1 {
			return slices.Collect(maps.Keys(found))
		}
	}
	return nil
}

// titled adds the titles that the run's taxonomies have, and keeps each CWE once.
func (run *Run) titled(names []string) []string {
	for i, name := range names {
		if title := run.cweTitles[name]; title != "" {
			names[i] = name + ": " + title
		}
	}
	return distinctCWE(names)
}

// ownWeaknesses returns the CWEs and the OWASP entries that a result names itself.
func (run *Run) ownWeaknesses(w *wireResult) (cwes, owasp []string) {
	p := &w.Properties
	cwes = append(p.cweProperties(), cweNames(p.texts[factTags])...)
	for i := range w.Taxa {
		ref := &w.Taxa[i]
		if ref.ToolComponent == nil && len(run.taxonomies) == 1 { // some tools leave out the obvious
			ref.ToolComponent = &wireComponentRef{Name: run.taxonomies[0].name}
		}
		id, entry := run.taxon(ref)
		if id != "" {
			cwes = append(cwes, id)
		}
		if entry != "" {
			owasp = append(owasp, entry)
		}
	}
	owasp = append(owasp, p.owaspNames()...)
	if len(cwes) == 0 && len(owasp) == 0 {
		return nil, nil
	}
	return head(run.titled(cwes), maxTags), head(distinct(owasp), maxTags)
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
