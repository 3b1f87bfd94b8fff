package document

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of a file.
const (
	// MaxSource is the maximum size of a file, in bytes.
	MaxSource = 32 << 20
	// MaxRule is the maximum size of a rule as JSON, in bytes.
	MaxRule = 512 << 10
	// MaxName is the maximum length of a rule name, in characters.
	MaxName = 255

	// maxProblems is the maximum number of problems reported for a file.
	maxProblems = 1000
)

// Rule is a valid rule.
type Rule struct {
	// Name is its id in the document.
	Name string
	// Line is its first line, from 1.
	Line int
	// Product is sast, sca or secrets.
	Product string
	// Severity is unchanged: ERROR, WARNING, … Extract rules may have none.
	Severity string
	// Languages are full names, sorted and distinct.
	Languages []string
	// Document is the rule as JSON: keys in source order, numbers with the digits of the source.
	Document []byte
	// Digest is the SHA-256 of the document with sorted keys: equal rules have equal digests.
	Digest []byte
}

// Problem is one error in a file.
type Problem struct {
	// File is the name passed to Parse.
	File string
	// Line starts at 1.
	Line int
	// Rule is the rule's name; empty if the rule has none, or the problem concerns the file.
	Rule string
	// Text says what was found and what is allowed, without the file, the line and the rule.
	Text string
}

// String formats the problem as one line.
func (p Problem) String() string {
	where := fmt.Sprintf("line %d: ", p.Line)
	if p.File != "" {
		where = fmt.Sprintf("%s:%d: ", p.File, p.Line)
	}
	if p.Rule != "" {
		where += "rule " + p.Rule + ": "
	}
	return where + p.Text
}

// Parse parses a file of rules. It returns the valid rules in order, and all problems by line. name is the file name
// for problems; a name that ends in .json requires JSON.
func Parse(source []byte, name string) (rules []Rule, problems []Problem) {
	p := &parser{file: name}
	root := p.read(source)
	if root != nil {
		rules = p.document(root)
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return rules, p.problems
}

// parser parses one file and collects its problems.
type parser struct {
	file     string
	problems []Problem
	// rule is the name of the current rule; empty outside of rules, and if it has no name.
	rule string
	// bad is true once the current rule has a problem.
	bad bool
	// expanded counts the values read: with aliases, a small file could expand to an unbounded size.
	expanded int
}

func (p *parser) problem(line int, format string, args ...any) {
	p.bad = true
	switch {
	case len(p.problems) < maxProblems:
		p.problems = append(p.problems, Problem{File: p.file, Line: max(line, 1), Rule: p.rule, Text: fmt.Sprintf(format, args...)})
	case len(p.problems) == maxProblems:
		p.problems = append(p.problems, Problem{File: p.file, Line: max(line, 1), Text: "there are more problems; these are the first"})
	}
}

// document parses the list of rules.
func (p *parser) document(root *value) []Rule {
	if root.kind != object {
		p.problem(root.line, "a file of rules must be an object with the key rules, got %s", root)
		return nil
	}
	list := root.get("rules")
	switch {
	case list == nil:
		p.problem(root.line, "the key rules is missing: a file of rules has a list of rules there")
		return nil
	case list.kind != array:
		p.problem(list.line, "rules must be a list, got %s", list)
		return nil
	case len(list.items) == 0:
		p.problem(list.line, "rules is an empty list")
		return nil
	}
	var rules []Rule
	lines := map[string]int{}
	for i, item := range list.items {
		p.rule, p.bad = "", false
		rule := p.readRule(item, i)
		if first, twice := lines[rule.Name]; twice && rule.Name != "" {
			p.problem(item.line, "the id is there already, in line %d", first)
		} else if rule.Name != "" {
			lines[rule.Name] = item.line
		}
		if !p.bad {
			rules = append(rules, rule)
		}
	}
	p.rule = ""
	return rules
}
