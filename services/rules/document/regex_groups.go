package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// regexGroup is a group that is not closed.
type regexGroup struct {
	at   int
	kind groupKind
	// extended is the flag outside of it.
	extended bool
	// groups is the count of capturing groups before it; most is the greatest count of its alternatives.
	groups, most int
}

type groupKind int

const (
	otherGroup groupKind = iota
	lookAhead
	lookBehind
	conditional
	// branchReset is (?|…): each alternative counts its groups from the same number.
	branchReset
)

// regexName matches the name of a group.
var regexName = regexp.MustCompile(`^[A-Za-z_\x{80}-\x{10FFFF}][A-Za-z_0-9\x{80}-\x{10FFFF}]*$`)

var (
	regexGroupName = regexp.MustCompile(`^\(\?(?:P?<([^>=!*][^>]*)>|'([^']*)')`)
	regexCall      = regexp.MustCompile(`^\(\?(?:P[=>]|&|([+-]?[0-9]+\)))`)
	regexCondition = regexp.MustCompile(`^\(\?\((?:<([^>)]*)>|'([^')]*)'|([+-]?[0-9]+|[^?*R)][^)]*|R[^)]*))\)`)
	regexAheads    = regexp.MustCompile(`^\((?:\?[=!*]|\*(?:pla|nla|napla|[a-z_]+_lookahead):)`)
	regexBehinds   = regexp.MustCompile(`^\((?:\?<[=!*]|\*(?:plb|nlb|naplb|[a-z_]+_lookbehind):)`)
)

// regexVerbs are the verbs of PCRE.
var regexVerbs = strings.Fields(`ACCEPT COMMIT F FAIL MARK PRUNE SKIP THEN ANY ANYCRLF BSR_ANYCRLF BSR_UNICODE CASELESS_RESTRICT CR CRLF LF
	LIMIT_DEPTH LIMIT_HEAP LIMIT_MATCH LIMIT_RECURSION NO_AUTO_POSSESS NO_DOTSTAR_ANCHOR NO_JIT NO_START_OPT NOTEMPTY NOTEMPTY_ATSTART
	NUL TURKISH_CASING UCP UTF UTF8 UTF16 UTF32`)

// regexLetters are the flags of all versions of PCRE, and the letters of (?R) and (?C).
const regexLetters = "imsxnJUXarDSWPTRC^-:)"

// group reads the beginning of a group, or all of a comment, of flags, of a reference, or of a verb.
func (s *regexScan) group() {
	rest, start := s.text[s.at:], s.at
	flags, verb := regexFlags.FindString(rest), regexVerb.FindStringSubmatch(rest)
	switch {
	case strings.HasPrefix(rest, "(?#"):
		if !s.skipPast(")") {
			s.problem = fmt.Sprintf("the comment at character %d is not closed", s.position(start))
		}
		return
	case verb != nil:
		s.verb(verb[1])
		return
	case flags != "" && strings.Trim(flags[2:], regexLetters) != "":
		s.problem = fmt.Sprintf("%s has unknown flags", clip(flags))
		return
	case strings.HasSuffix(flags, ")"):
		s.setFlags(flags)
		s.at += len(flags)
		s.item(true) // this may be a reference to a group, such as (?R)
		return
	}
	s.open = append(s.open, regexGroup{at: start, kind: kindOf(rest), extended: s.extended, groups: s.groups, most: s.groups})
	s.item(false)
	name, condition := regexGroupName.FindStringSubmatch(rest), regexCondition.FindStringSubmatch(rest)
	switch {
	case flags != "":
		s.setFlags(flags)
		s.at += len(flags)
	case name != nil:
		s.name(name[1]+name[2], name[0])
		s.at += len(name[0])
	case condition != nil:
		s.condition(condition)
		s.at += len(condition[0])
	case regexCall.MatchString(rest):
		s.call(rest)
	case regexNamed.MatchString(rest):
		s.skipPast(":")
	case strings.HasPrefix(rest, "(?"):
		s.at += 2
		if s.at < len(s.text) && s.text[s.at] != '(' && s.text[s.at] != ')' && s.text[s.at] != '\\' {
			s.at++ // = ! < > P | * and C
		}
		if s.at < len(s.text) && (s.text[s.at] == '*' || s.text[s.at] == '!' || s.text[s.at] == '=') && s.text[s.at-1] == '<' {
			s.at++ // of a look-behind
		}
	default:
		s.count()
		s.at++
	}
}

func kindOf(rest string) groupKind {
	switch {
	case regexAheads.MatchString(rest):
		return lookAhead
	case regexBehinds.MatchString(rest):
		return lookBehind
	case strings.HasPrefix(rest, "(?("):
		return conditional
	case strings.HasPrefix(rest, "(?|"):
		return branchReset
	}
	return otherGroup
}

// verb reads a verb such as (*SKIP:name).
func (s *regexScan) verb(name string) {
	start := s.at
	switch {
	case name != "" && !slices.Contains(regexVerbs, name):
		s.problem = fmt.Sprintf("there is no verb (*%s)", clip(name))
	case !s.skipPast(")"):
		s.problem = fmt.Sprintf("the ( at character %d is not closed", s.position(start))
	}
	s.ends = s.ends || name == "ACCEPT" || name == "F" || name == "FAIL"
	s.item(true)
}

func (s *regexScan) count() {
	s.groups++
	s.most = max(s.most, s.groups)
}

// name reads the name of a group.
func (s *regexScan) name(name, text string) {
	s.count()
	number, twice := s.names[name]
	isReset := func(g regexGroup) bool { return g.kind == branchReset }
	switch {
	case !regexName.MatchString(name):
		s.problem = fmt.Sprintf("%s: a name has letters, digits and underscores, and does not begin with a digit", clip(text))
	case twice && number != s.groups && !s.sameNames && !slices.ContainsFunc(s.open, isReset):
		s.problem = fmt.Sprintf("there are two groups with the name %s", clip(name))
	case !twice:
		s.names[name] = s.groups
	}
}

// condition reads (?(1), (?(<name>) and the like. R is recursion; DEFINE and VERSION are words.
func (s *regexScan) condition(match []string) {
	to := match[1] + match[2] + match[3]
	if match[3] != "" && (to[0] == 'R' || to == "DEFINE" || strings.HasPrefix(to, "VERSION")) {
		return
	}
	s.refer(to, match[0])
}

// call reads (?1), (?&name), (?P>name) or (?P=name) up to its end, which closes it.
func (s *regexScan) call(rest string) {
	text, _, _ := strings.Cut(rest, ")")
	s.refer(strings.TrimLeft(text, "(?P=>&"), text+")")
	s.at += len(text)
}

// setFlags notes the flags x, J and n.
func (s *regexScan) setFlags(flags string) {
	on, off, _ := strings.Cut(flags, "-")
	s.sameNames = s.sameNames || strings.Contains(on, "J")
	s.unnumbered = s.unnumbered || strings.Contains(on, "n")
	if strings.ContainsAny(on, "x") {
		s.extended = true
	}
	if strings.ContainsAny(off, "x") || strings.Contains(on, "^") && !strings.Contains(on, "x") {
		s.extended = false
	}
}

// alternative reads a |.
func (s *regexScan) alternative() {
	s.item(false)
	s.at++
	if i := len(s.open) - 1; i >= 0 && s.open[i].kind == branchReset {
		s.open[i].most = max(s.open[i].most, s.groups)
		s.groups = s.open[i].groups
	}
}

func (s *regexScan) close() {
	if len(s.open) == 0 {
		s.problem = fmt.Sprintf("the ) at character %d has no (", s.position(s.at))
		return
	}
	closed := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	s.extended = closed.extended
	s.groups = max(s.groups, closed.most)
	s.item(true)
	s.widthless = closed.kind == lookAhead || closed.kind == lookBehind
	s.at++
}

// inLookBehind reports whether the length of the present item counts for a look-behind.
func (s *regexScan) inLookBehind() bool {
	for _, group := range slices.Backward(s.open) {
		switch group.kind {
		case lookBehind:
			return true
		case lookAhead, conditional:
			return false
		}
	}
	return false
}
