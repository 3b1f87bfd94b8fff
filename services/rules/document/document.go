package document

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of a file.
const (
	// MaxSource is how long a file may be, in bytes.
	MaxSource = 32 << 20
	// MaxRule is how long a rule may be as JSON, in bytes.
	MaxRule = 512 << 10
	// MaxName is how long the name of a rule may be, in characters.
	MaxName = 255

	// maxProblems bounds what is told of one file.
	maxProblems = 1000
)

// Rule is a rule without a problem.
type Rule struct {
	// Name is its id in the document.
	Name string
	// Line is where it begins, from 1.
	Line int
	// Product is sast, sca or secrets.
	Product string
	// Severity is as written: ERROR, WARNING, … Extract rules may have none.
	Severity string
	// Languages in their full names, sorted, each once.
	Languages []string
	// Document is the rule as JSON: its keys in the order of the source, its numbers in the digits of the source.
	Document []byte
	// Digest is the SHA-256 of the document whatever the order of its keys: equal rules have equal digests.
	Digest []byte
}

// Problem is one thing that is wrong in a file.
type Problem struct {
	// File is the name that Parse was given.
	File string
	// Line is where, from 1.
	Line int
	// Rule is the name of the rule that it is about; empty where it has none, or the problem is the file's.
	Rule string
	// Text says what was got and what is allowed, without the file, the line and the rule.
	Text string
}

// String is the problem in one line.
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

// Parse reads a file of rules. It returns the rules that have no problem, in their order, and all problems, by line.
// Name is the name of the file, for the problems; one that ends in .json must hold JSON.
func Parse(source []byte, name string) (rules []Rule, problems []Problem) {
	p := &parser{file: name}
	root := p.read(source)
	if root != nil {
		rules = p.document(root)
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return rules, p.problems
}

// parser reads one file and gathers what is wrong with it.
type parser struct {
	file     string
	problems []Problem
	// rule is the name of the rule that is read; empty outside of rules, and where it has no name.
	rule string
	// bad is true once the rule that is read has a problem.
	bad bool
	// expanded counts the values that were read: aliases could make a small file as large as memory.
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

// document reads the list of rules.
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
