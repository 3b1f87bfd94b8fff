package document

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// regexClasses are the classes of POSIX.
var regexClasses = []string{
	"alpha", "lower", "upper", "alnum", "ascii", "blank", "cntrl", "digit", "graph", "print", "punct", "space", "word", "xdigit",
}

// regexProperty matches a property of Unicode whose name can be judged: no negation, no prefix such as Script=.
var (
	regexProperty  = regexp.MustCompile(`^\\[pP](?:([A-Za-z])|\{\^?([A-Za-z _-]+)\})`)
	regexCodePoint = regexp.MustCompile(`^\\x\{0*([0-9A-Fa-f]+)\}`)
	regexNumber    = regexp.MustCompile(`^\\([1-9])(?:[^0-9]|$)`)
	regexBack      = regexp.MustCompile(`^\\(?:[gk]\{([^}]*)\}|[gk]<([^>]*)>|[gk]'([^']*)'|g([+-]?[0-9]+))`)
	regexCharName  = regexp.MustCompile(`^\\N\{[A-TV-Za-z][^}]*\}`)
)

// escape reads a backslash and what it escapes, outside of a class or in one.
func (s *regexScan) escape(inClass bool) {
	rest := s.text[s.at:]
	switch {
	case len(rest) == 1:
		s.problem = "it ends with a backslash"
		return
	case rest[1] == 'E':
		s.at += 2
		return
	case rest[1] == 'Q':
		from := s.at
		if s.skipPast(`\E`); s.at-from > len(`\Q\E`) {
			s.item(true)
		}
		return
	case rest == `\c`:
		s.problem = `it ends with \c`
		return
	case strings.IndexByte("LlUu", rest[1]) >= 0 || regexCharName.MatchString(rest):
		s.problem = fmt.Sprintf(`\%c at character %d is not supported`, rest[1], s.position(s.at))
		return
	}
	if s.checkCharacter(rest); s.problem != "" {
		return
	}
	if !inClass {
		s.referBack(rest)
	}
	s.item(true)
	s.widthless = strings.IndexByte("bBAzZGK", rest[1]) >= 0
	switch {
	case rest[1] == 'c':
		s.at += 3
	case len(rest) > 2 && rest[2] == '{' && strings.IndexByte("pPxogk", rest[1]) >= 0 && strings.IndexByte(rest, '}') > 0:
		s.skipPast("}")
	case strings.HasPrefix(rest, `\N{U`): // \N{2} is \N with a quantifier
		s.skipPast("}")
	default:
		s.at = min(s.at+2, len(s.text))
	}
}

// checkCharacter checks code points and properties of Unicode.
func (s *regexScan) checkCharacter(rest string) {
	if digits := regexCodePoint.FindStringSubmatch(rest); digits != nil {
		if n, err := strconv.ParseUint(digits[1], 16, 32); err != nil || n > unicode.MaxRune {
			s.problem = fmt.Sprintf(`%s is beyond the last character \x{10FFFF}`, clip(digits[0]))
		}
	}
	if property := regexProperty.FindStringSubmatch(rest); property != nil && !isProperty(property[1]+property[2]) {
		s.problem = fmt.Sprintf("%s is not a property of Unicode", clip(property[0]))
	}
}

// referBack notes a reference such as \1, \g{-1} or \k<name>. \10 and more can be an octal number.
func (s *regexScan) referBack(rest string) {
	if number := regexNumber.FindStringSubmatch(rest); number != nil {
		s.refer(number[1], `\`+number[1])
	}
	if back := regexBack.FindStringSubmatch(rest); back != nil {
		s.refer(back[1]+back[2]+back[3]+back[4], back[0])
	}
}

// moreProperties are names that PCRE knows besides the tables of Go, as isProperty compares them.
var moreProperties = strings.Fields(`any l& lc xan xps xsp xuc xwd
	ahex alpha alphabetic bidic bidim ci cased caseignorable cwcf cwcm cwkcf cwl cwt cwu
	changeswhencasefolded changeswhencasemapped changeswhenlowercased changeswhentitlecased changeswhenuppercased
	dash dep di dia defaultignorablecodepoint ebase ecomp emod epres emoji emojicomponent emojimodifier emojimodifierbase
	emojipresentation ext extpict extendedpictographic graphemebase graphemeextend graphemelink grbase grext grlink hex
	hexdigit ids idst idc idcontinue idstart idsb ideo incb joinc loe lower lowercase math mcm nchar patsyn patws qmark radical ri
	sd sentenceterminal sterm space term uideo upper uppercase vs whitespace wspace xidc xidcontinue xids xidstart
	idcompatmathcontinue idcompatmathstart modifiercombiningmark inhangul unknown
	garay gurungkhema kiratrai olonal sunuwar todhri tulutigalari sidetic tolongsiki beriaerfe taiyo kawi nagmundari`)

var properties = func() map[string]bool {
	known := map[string]bool{}
	for _, name := range moreProperties {
		known[name] = true
	}
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts, unicode.Properties} {
		for name := range tables {
			known[foldProperty(name)] = true
		}
	}
	return known
}()

// foldProperty writes a name as PCRE compares it.
func foldProperty(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "", "_", "").Replace(name))
}

// isProperty reports whether PCRE may know a property. Names of four letters can be codes of scripts.
func isProperty(name string) bool {
	name = foldProperty(name)
	return properties[name] || len(name) == 4 || strings.HasPrefix(name, "bidi")
}

// regexReference is a reference to a group.
type regexReference struct {
	// name is empty if the reference is a number.
	name   string
	number int
	text   string
}

// refer notes a reference by name, by number, or by relative number.
func (s *regexScan) refer(to, text string) {
	to = strings.TrimSpace(to)
	number, err := strconv.Atoi(to)
	switch {
	case to == "" || err != nil && !regexName.MatchString(to):
		return // PCRE may know more
	case err != nil:
		s.references = append(s.references, regexReference{name: to, text: text})
		return
	case to[0] == '-':
		number += s.groups + 1
		if number < 1 && !s.unnumbered {
			s.problem = fmt.Sprintf("%s refers to a group that does not exist", clip(text))
		}
	case to[0] == '+':
		number += s.groups
	}
	s.references = append(s.references, regexReference{number: number, text: text})
}

// checkReferences checks that the groups of references exist.
func (s *regexScan) checkReferences() {
	i := slices.IndexFunc(s.references, func(r regexReference) bool {
		_, known := s.names[r.name]
		return r.name != "" && !known || r.number > s.most && !s.unnumbered
	})
	if i >= 0 {
		s.problem = fmt.Sprintf("%s refers to a group that does not exist", clip(s.references[i].text))
	}
}
