package vex

import (
	"fmt"
	"strings"
	"time"

	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/position"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/supplychain/purl"
)

// Statements are the statements of one document.
type Statements struct {
	list []*statement
	// byName has the statements by the names of their vulnerabilities in capitals.
	byName map[string][]*statement
	// names are the names in all spellings that rules may have.
	names map[string]bool
}

// statement is what a document says about one package.
type statement struct {
	formats.Decision
	about   purl.Package
	isAbout bool
	matched bool
	order   int
}

// NewStatements returns an empty list.
func NewStatements() *Statements {
	return &Statements{byName: map[string][]*statement{}, names: map[string]bool{}}
}

// Add adds a statement.
func (s *Statements) Add(d *formats.Decision) {
	added := &statement{Decision: *d, order: len(s.list)}
	added.about, added.isAbout = purl.Parse(d.PURL)
	s.list = append(s.list, added)
	if !added.isAbout {
		return // it matches nothing
	}
	seen := map[string]bool{}
	for _, name := range d.Vulnerabilities {
		key := strings.ToUpper(name)
		if seen[key] || key == "" {
			continue
		}
		seen[key] = true
		s.byName[key] = append(s.byName[key], added)
		s.names[name], s.names[key] = true, true
		if rest, isGHSA := strings.CutPrefix(key, "GHSA-"); isGHSA {
			s.names["GHSA-"+strings.ToLower(rest)] = true
		}
	}
}

// unmatched counts the statements that no finding matched.
func (s *Statements) unmatched() (n int) {
	for _, st := range s.list {
		if !st.matched {
			n++
		}
	}
	return n
}

// newest returns the newest statement about a package and one of the names of its vulnerability, or nil.
func (s *Statements) newest(names []string, ecosystem, pkg, version string) (newest *statement) {
	for _, name := range names {
		for _, st := range s.byName[strings.ToUpper(name)] {
			if !st.about.Names(ecosystem, pkg, version) {
				continue
			}
			st.matched = true
			if newest == nil || st.after(newest) {
				newest = st
			}
		}
	}
	return newest
}

func (st *statement) after(other *statement) bool {
	if st.At.Equal(other.At) {
		return st.order > other.order
	}
	return st.At.After(other.At)
}

// decidedAt is the time of the decision in microseconds since 1970. A time in the future would outlast later ones.
func (st *statement) decidedAt(now int64) int64 {
	if !st.isTimed(now) {
		return now
	}
	return store.Micros(st.At)
}

// isTimed reports whether the time of the statement is known and has come. Others apply when they arrive.
func (st *statement) isTimed(now int64) bool { return !st.At.IsZero() && store.Micros(st.At) <= now }

// acceptable are the justifications by which the vulnerable code is there, but something else protects it.
var acceptable = map[string]bool{
	"inline_mitigations_already_exist": true, // OpenVEX and CSAF
	"requires_configuration":           true, // CycloneDX
	"requires_dependency":              true,
	"requires_environment":             true,
	"protected_by_compiler":            true,
	"protected_at_runtime":             true,
	"protected_at_perimeter":           true,
	"protected_by_mitigating_control":  true,
}

// wrong are the justifications by which the vulnerable code is not there, or cannot run.
var wrong = map[string]bool{
	"component_not_present":                             true,
	"vulnerable_code_not_present":                       true,
	"vulnerable_code_not_in_execute_path":               true,
	"vulnerable_code_cannot_be_controlled_by_adversary": true,
	"code_not_present":                                  true, // CycloneDX
	"code_not_reachable":                                true,
}

// reason is the triage reason of a statement that a package is not affected.
func (st *statement) reason() string {
	switch word := strings.ToLower(st.Justification); {
	case acceptable[word]:
		return "acceptable_risk"
	case wrong[word], st.Status == formats.FalsePositive, word == "" && strings.HasPrefix(st.Detail, position.FalsePositive):
		return "false_positive"
	}
	return lifecycle.NoTriageReason
}

// note is the note of a finding that the statement decides about.
func (st *statement) note() string {
	var b strings.Builder
	b.WriteString("VEX: " + strings.ReplaceAll(st.Status, "_", " "))
	if st.Justification != "" {
		fmt.Fprintf(&b, " (%s)", strings.ReplaceAll(st.Justification, "_", " "))
	}
	if st.Detail != "" {
		b.WriteString(": " + st.Detail)
	}
	for _, part := range [...]string{st.Author, st.Document} {
		if part != "" {
			b.WriteString("\n" + part)
		}
	}
	if !st.At.IsZero() {
		b.WriteString("\n" + st.At.UTC().Format(time.RFC3339))
	}
	return b.String()
}
