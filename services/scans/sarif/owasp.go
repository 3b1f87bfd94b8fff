package sarif

import (
	"regexp"
	"strings"
)

var (
	owaspPattern = regexp.MustCompile(`(?i)^(?:external/)?owasp[-_:/ ]*(?:top[-_ ]?(?:10|ten)[-_:/ ]*)?(\S.*)$`)
	owaspBare    = regexp.MustCompile(`^(?:A|M|API|LLM)\d{1,2}:\d{4}\b`)
	owaspShort   = regexp.MustCompile(`(?i)^(?:A|M|API|LLM)\d{1,2}$`)
	owaspEntry   = regexp.MustCompile(`(?i)(?:^|[^a-z0-9])(A|M|API|LLM)[-_ ]?(\d{1,2})(?:$|[^0-9a-z])`)
	owaspYear    = regexp.MustCompile(`(?:^|[^0-9])(20\d\d)(?:$|[^0-9])`)
)

func isOWASP(name string) bool { return strings.Contains(strings.ToLower(name), "owasp") }

// owaspNames returns the entries that properties and tags name: "OWASP-A03:2021 - Injection" and "A03:2021 - Injection"
// as the latter, "owasp-top10-2021-a3" as "A3:2021".
func (b *bag) owaspNames() []string {
	var names []string
	for _, text := range b.texts[factOWASP] {
		if m := owaspPattern.FindStringSubmatch(text); m != nil {
			text = m[1]
		}
		if !strings.Contains(text, "://") {
			names = append(names, owaspName(text, ""))
		}
	}
	for _, tag := range b.texts[factTags] {
		if m := owaspPattern.FindStringSubmatch(tag); m != nil && owaspEntry.MatchString(m[1]) {
			names = append(names, owaspName(m[1], tag))
		} else if owaspBare.MatchString(tag) {
			names = append(names, tag)
		}
	}
	return names
}

// owaspName keeps a text that begins with the entry. Of other texts it takes the entry and the year, which may also be
// in the name of the list.
func owaspName(text, list string) string {
	if start := owaspEntry.FindStringIndex(text); start == nil || start[0] == 0 && !owaspShort.MatchString(text) {
		return text
	}
	m := owaspEntry.FindStringSubmatch(text)
	name := strings.ToUpper(m[1]) + m[2]
	for _, place := range [...]string{text, list} {
		if year := owaspYear.FindStringSubmatch(place); year != nil {
			return name + ":" + year[1]
		}
	}
	return name
}
