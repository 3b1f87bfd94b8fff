package main

import (
	"regexp"
	"slices"
	"strings"
)

// ciCall is a call of the scanner in a script.
type ciCall struct {
	before string   // the script up to the call
	line   string   // its logical line
	flags  []string // of the scanner
	after  string   // the rest of the line, from the operator that ends the command
	more   bool     // other commands follow
}

var (
	scanCall = regexp.MustCompile(`\bsemgrep(?:[ \t]+-\S+)*[ \t]+ci\b`)
	printed  = regexp.MustCompile(`\b(echo|printf)\b[^;&|]*$`)
	operator = regexp.MustCompile(`\|\|?|&&|;|\s&(\s|$)`)
)

// calls finds the calls of the scanner in the logical lines of a script, without comments.
func (s ciScript) calls() (list []ciCall) {
	text := joined.ReplaceAllString(shellComment.ReplaceAllString(s.text, "$1"), " ")
	before := ""
	for line := range strings.Lines(text) {
		following := strings.TrimSpace(text[len(before)+len(line):]) != ""
		for _, at := range scanCall.FindAllStringIndex(line, -1) {
			rest, after := strings.TrimRight(line[at[1]:], "\r\n"), ""
			if end := operator.FindStringIndex(rest); end != nil {
				rest, after = rest[:end[0]], strings.TrimSpace(rest[end[0]:])
			}
			if !printed.MatchString(line[:at[0]]) {
				more := following || strings.Contains(after, ";")
				list = append(list, ciCall{before + line[:at[0]], line, strings.FieldsFunc(rest, separates), after, more})
			}
		}
		before += line
	}
	return list
}

func separates(r rune) bool { return strings.ContainsRune(" \t'\"`(),", r) }

func (c ciCall) has(flag string) bool {
	return slices.ContainsFunc(c.flags, func(f string) bool { return f == flag || strings.HasPrefix(f, flag+"=") })
}

// flagProblems reads the flags. closed: the environment suppresses no errors. mentioned: the file seems to set that.
func (c ciCall) flagProblems(closed, mentioned bool) (list []ciProblem) {
	on, off := lastIndex(c.flags, failClosed), lastIndex(c.flags, "--suppress-errors")
	switch {
	case off > on:
		list = append(list, ciProblem{ciFailed, "runs semgrep ci with --suppress-errors: an expired token or a dead server passes the gate", "remove it"})
	case on >= 0 || closed:
	case mentioned:
		list = append(list, ciProblem{ciWarning, "seems to set " + suppressErrors + " for semgrep ci", "add " + failClosed + ", or run this command in the same job"})
	default:
		list = append(list, ciProblem{ciFailed, "runs semgrep ci without " + failClosed + ": an expired token or a dead server passes the gate",
			"add " + failClosed + ", or set " + suppressErrors + "=false"})
	}
	if c.has("--dry-run") {
		list = append(list, ciProblem{ciFailed, "runs semgrep ci with --dry-run: it sends no results", "remove it"})
	}
	if c.has("--audit-on") {
		list = append(list, ciProblem{ciWarning, "runs semgrep ci with --audit-on: findings do not fail the job on these events", "remove it"})
	}
	if !c.has("--oss-only") {
		list = append(list, ciProblem{ciWarning, "runs semgrep ci without --oss-only: it requests the closed engine, and the job fails with 403", "add --oss-only"})
	}
	return list
}

func lastIndex(list []string, value string) int {
	last := -1
	for i, v := range list {
		if v == value {
			last = i
		}
	}
	return last
}

var (
	fails    = regexp.MustCompile(`\bexit\b\s*($|\$|[1-9])|\bfalse\b|\breturn\s+[1-9]`)
	succeeds = regexp.MustCompile(`^;\s*(true|:|exit\s+0)\s*['"]?\s*(;|\)|$)`)
	errexit  = regexp.MustCompile(`\bset\s+([+-])(?:o\s+errexit|[a-z]*e[a-z]*)\b`)
	pipefail = regexp.MustCompile(`\bpipefail\b`)
	ignored  = regexp.MustCompile(`\breturnStatus:\s*true\b`)
	inverted = regexp.MustCompile(`(^|\n|;|&&)\s*(if|!|while|until)\s[^\n;]*$`)
)

// statusProblems reads what the script does with the exit status of the scanner.
func (c ciCall) statusProblems() []ciProblem {
	const fix = "let the exit status of semgrep ci be the one of the job"
	lost := func(status, detail string) []ciProblem { return []ciProblem{{status, detail, fix}} }
	modes := errexit.FindAllStringSubmatch(c.before, -1)
	switch {
	case strings.HasPrefix(c.after, "||") && !fails.MatchString(c.after), succeeds.MatchString(c.after):
		return lost(ciFailed, "runs semgrep ci with "+quoteEnd(c.after)+" after it: a failed scan passes the gate")
	case ignored.MatchString(c.line):
		return lost(ciFailed, "runs semgrep ci with returnStatus: true: a failed scan passes the gate")
	case strings.HasPrefix(c.after, "|") && !strings.HasPrefix(c.after, "||") && !pipefail.MatchString(c.before):
		return lost(ciWarning, "pipes the output of semgrep ci: without set -o pipefail, a failed scan seems to pass the gate")
	case strings.HasPrefix(c.after, "&&") && c.more, // a failure before && does not end a script, even with set -e
		strings.HasPrefix(c.after, "&") && !strings.HasPrefix(c.after, "&&"), inverted.MatchString(c.before):
		return lost(ciWarning, "does not end with the exit status of semgrep ci, it seems")
	case len(modes) > 0 && modes[len(modes)-1][1] == "+":
		return lost(ciWarning, "has set +e before semgrep ci: a failed scan seems to pass the gate")
	}
	return nil
}

// quoteEnd quotes the end of a command.
func quoteEnd(text string) string { return `"` + strings.TrimRight(text, `'" )`) + `"` }
