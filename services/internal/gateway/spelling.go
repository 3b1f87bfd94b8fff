package gateway

import "strings"

// Spelling is an operation whose path has a second spelling. In both paths {} is a segment with any value; the values
// have the same order.
type Spelling struct {
	Method, Contract, Original string
}

// spelled are the second spellings of the operations that are served.
func (g *gateway) spelled(all []Spelling) []Spelling {
	served := map[string]bool{}
	for _, rt := range g.routes {
		served[rt.httpMethod+" "+variable.ReplaceAllString(rt.pattern, "{}")] = true
	}
	var found []Spelling
	for _, s := range all {
		if served[s.Method+" "+s.Contract] && !served[s.Method+" "+s.Original] {
			found = append(found, s)
		}
	}
	return found
}

// inContract returns the contract's spelling of an escaped path. Methods are not compared, so that both spellings have
// the same answer for a method that the path does not take.
func (g *gateway) inContract(path string) string {
	for _, s := range g.spellings {
		if translated, ok := s.translate(path); ok {
			return translated
		}
	}
	return path
}

func (s Spelling) translate(path string) (string, bool) {
	if strings.Count(path, "/") != strings.Count(s.Original, "/") {
		return "", false
	}
	segments, original := strings.Split(path, "/"), strings.Split(s.Original, "/")
	var values []string
	for i, segment := range original {
		switch {
		case segment == "{}":
			values = append(values, segments[i])
		case segment != segments[i]:
			return "", false
		}
	}
	translated := strings.Split(s.Contract, "/")
	for i, segment := range translated {
		if segment == "{}" {
			translated[i], values = values[0], values[1:]
		}
	}
	return strings.Join(translated, "/"), true
}
