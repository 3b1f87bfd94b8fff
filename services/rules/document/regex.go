package document

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// regexProblem says why a scanner cannot compile a regular expression; empty if it can, or if that is unknown. Scanners
// use PCRE, in several versions: only what all of them refuse is a problem.
func regexProblem(text string) string {
	s := &regexScan{text: text, names: map[string]int{}}
	s.run()
	if s.problem == "" {
		s.checkReferences()
	}
	return s.problem
}

// regexScan finds certain errors in a regular expression of PCRE. It accepts everything else.
type regexScan struct {
	text    string
	at      int
	problem string
	// open are the groups that are not closed.
	open []regexGroup
	// groups counts the capturing groups so far; most is the greatest count.
	groups, most int
	// names are the numbers of the named groups.
	names map[string]int
	// references are checked at the end, because they may name a later group.
	references []regexReference
	// sameNames is the flag J, unnumbered the flag n, and extended the flag x: blanks and # comments do not count.
	sameNames, unnumbered, extended bool
	// ends says that there was a verb that ends PCRE's search for the length of a look-behind.
	ends bool
	// repeatable says that a quantifier may follow, and suffixed that + or ? may follow a quantifier.
	repeatable, suffixed bool
	// widthless says that the last item matches no characters.
	widthless bool
}

var (
	regexFlags   = regexp.MustCompile(`^\(\?[a-zA-Z^-]*[:)]`)
	regexVerb    = regexp.MustCompile(`^\(\*(?:([A-Z_]+[0-9]*)|:)`)
	regexNamed   = regexp.MustCompile(`^\(\*[a-z_]+:`)
	regexRepeat  = regexp.MustCompile(`^\{([0-9]+)(,([0-9]*))?\}`)
	regexClassIn = regexp.MustCompile(`^\[:\^?([a-z]+):\]`)
)

// maxRepeat is the greatest number of repetitions that PCRE counts.
const maxRepeat = 65535

func (s *regexScan) run() {
	for s.at < len(s.text) && s.problem == "" {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.escape(false)
		case s.extended && strings.IndexByte(" \t\n\r\f\v", c) >= 0:
			s.at++
		case s.extended && c == '#':
			s.skipPast("\n")
		case c == '[':
			s.class()
			s.item(true)
		case c == '(':
			s.group()
		case c == ')':
			s.close()
		case c == '*', c == '+', c == '?', c == '{':
			s.quantifier()
		case c == '|':
			s.alternative()
		default:
			s.item(true)
			s.widthless = c == '^' || c == '$'
			s.at++
		}
	}
	if s.problem == "" && len(s.open) > 0 {
		s.problem = fmt.Sprintf("the ( at character %d is not closed", s.position(s.open[len(s.open)-1].at))
	}
}

// item notes that an item was read.
func (s *regexScan) item(repeatable bool) {
	s.repeatable, s.suffixed, s.widthless = repeatable, false, false
}

// position counts characters from 1.
func (s *regexScan) position(at int) int { return len([]rune(s.text[:at])) + 1 }

// skipPast moves behind the next end, or to the end of the text. It reports whether there was one.
func (s *regexScan) skipPast(end string) bool {
	i := strings.Index(s.text[s.at:], end)
	if i < 0 {
		s.at = len(s.text)
		return false
	}
	s.at += i + len(end)
	return true
}

// class reads a class such as [^a-z].
func (s *regexScan) class() {
	start := s.at
	s.at++
	if s.at < len(s.text) && s.text[s.at] == '^' {
		s.at++
	}
	for first := s.at; s.at < len(s.text); {
		switch c := s.text[s.at]; {
		case c == ']' && s.at > first:
			s.at++
			return
		case c == '\\':
			if s.escape(true); s.problem != "" {
				return
			}
		case regexClassIn.MatchString(s.text[s.at:]):
			if name := regexClassIn.FindStringSubmatch(s.text[s.at:])[1]; !slices.Contains(regexClasses, name) {
				s.problem = fmt.Sprintf("there is no class [:%s:]; want one of %s", clip(name), strings.Join(regexClasses, ", "))
				return
			}
			s.skipPast(":]")
		case isReversed(s.text[s.at:]):
			s.problem = fmt.Sprintf("the range %s is in the wrong order", s.text[s.at:s.at+3])
			return
		default:
			s.at++
		}
		s.rangeEnd()
	}
	s.problem = fmt.Sprintf("the [ at character %d is not closed", s.position(start))
}

// rangeEnd skips the hyphen of a range and its end, which cannot begin another range: [a-z-9].
func (s *regexScan) rangeEnd() {
	if rest := s.text[s.at:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
		s.at++
		if rest[1] != '\\' && rest[1] != '[' {
			s.at++
		}
	}
}

// isReversed reports whether a text begins with a range such as z-a.
func isReversed(text string) bool {
	return len(text) > 3 && text[1] == '-' && isWordByte(text[0]) && isWordByte(text[2]) && text[0] > text[2]
}

func isWordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// quantifier reads a quantifier, or a brace that is none.
func (s *regexScan) quantifier() {
	if c := s.text[s.at]; s.suffixed && (c == '+' || c == '?') {
		s.suffixed = false
		s.at++
		return
	}
	length, endless := 1, s.text[s.at] != '?'
	if s.text[s.at] == '{' {
		bounds := regexRepeat.FindStringSubmatch(s.text[s.at:])
		if bounds == nil {
			s.at++
			s.item(true)
			return
		}
		length, endless = len(bounds[0]), bounds[2] == ","
		least, err := strconv.Atoi(bounds[1])
		most := least
		if err == nil && bounds[3] != "" {
			most, err = strconv.Atoi(bounds[3])
		}
		if err != nil || most < least || most > maxRepeat {
			s.problem = fmt.Sprintf("the quantifier %s needs ascending numbers up to %d", clip(bounds[0]), maxRepeat)
			return
		}
	}
	if !s.repeatable {
		s.problem = fmt.Sprintf("the %s at character %d has nothing to repeat", s.text[s.at:s.at+length], s.position(s.at))
		return
	}
	if endless && !s.widthless && !s.ends && s.inLookBehind() {
		s.problem = fmt.Sprintf("the %s at character %d has no limit, in a look-behind", s.text[s.at:s.at+length], s.position(s.at))
		return
	}
	s.at += length
	s.repeatable, s.suffixed = false, true
}
