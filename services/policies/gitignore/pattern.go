// Package gitignore matches paths with the patterns of a .gitignore file, as Git does.
//
// It does not use the matcher of go-git, which differs from Git: for example, it excepts files of excluded directories,
// lets an exception of a name except everything below that name, and reads [!a] as a list of two characters.
package gitignore

import (
	"errors"
	"regexp"
	"strings"
)

// pattern is a compiled pattern.
type pattern struct {
	text   string
	except bool // it begins with !
	dirs   bool // it ends with /
	// whole patterns are compared with the whole path, others with its last name.
	whole bool
	// literal patterns have no wildcards; otherwise expr matches.
	literal string
	expr    *regexp.Regexp
}

// The reasons for refusing a pattern. Git ignores such lines silently.
var (
	errBlank    = errors.New("it is blank")
	errComment  = errors.New(`it is a comment: write \# for a path that begins with #`)
	errNothing  = errors.New("it names no path")
	errLines    = errors.New("it must be on one line, without zero characters")
	errBracket  = errors.New("a [ has no ]")
	errRange    = errors.New("it has a range of characters that ends before it begins")
	errClass    = errors.New("it has a class of characters that does not exist")
	errTrailing = errors.New(`it ends with a single \`)
)

// compile compiles the text of a pattern.
func compile(text string) (*pattern, error) {
	if strings.ContainsAny(text, "\x00\n\r") {
		return nil, errLines
	}
	p, rest := &pattern{text: text}, withoutBlanks(text)
	switch {
	case rest == "":
		return nil, errBlank
	case rest[0] == '#':
		return nil, errComment
	}
	rest, p.except = strings.CutPrefix(rest, "!")
	rest, p.dirs = strings.CutSuffix(rest, "/")
	p.whole = strings.Contains(rest, "/")
	if rest = strings.TrimPrefix(rest, "/"); rest == "" {
		return nil, errNothing
	}
	if !strings.ContainsAny(rest, `*?[\`) {
		p.literal = rest
		return p, nil
	}
	source, err := translate(rest)
	if err != nil {
		return nil, err
	}
	p.expr, err = regexp.Compile(`\A(?s:` + source + `)\z`)
	return p, err
}

// withoutBlanks removes the blanks at the end, except one behind a backslash.
func withoutBlanks(text string) string {
	short := strings.TrimRight(text, " ")
	if len(short) < len(text) && (len(short)-len(strings.TrimRight(short, `\`)))%2 == 1 {
		short += " "
	}
	return short
}

// matches reports whether the pattern matches a path whose last name is name.
func (p *pattern) matches(path, name string, dir bool) bool {
	if p.dirs && !dir {
		return false
	}
	if p.whole {
		name = path
	}
	if p.expr == nil {
		return p.literal == name
	}
	return p.expr.MatchString(name)
}

// translate converts a pattern to a regular expression.
func translate(glob string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(glob); {
		switch c := glob[i]; c {
		case '*':
			i += stars(&b, glob, i)
		case '?':
			b.WriteString("[^/]")
			i++
		case '[':
			n, err := class(&b, glob[i:])
			if err != nil {
				return "", err
			}
			i += n
		case '\\':
			if i+1 == len(glob) {
				return "", errTrailing
			}
			i += 1 + literal(&b, glob[i+1:])
		default:
			i += literal(&b, glob[i:])
		}
	}
	return b.String(), nil
}

// literal writes the first character of a text, and returns its length.
func literal(b *strings.Builder, text string) int {
	for n := range text {
		if n > 0 {
			b.WriteString(regexp.QuoteMeta(text[:n]))
			return n
		}
	}
	b.WriteString(regexp.QuoteMeta(text))
	return len(text)
}

// stars writes the stars at a position, and returns how much of the pattern they take. Two stars between slashes match
// any number of directories; elsewhere they are as one star.
func stars(b *strings.Builder, glob string, at int) int {
	end := at
	for end < len(glob) && glob[end] == '*' {
		end++
	}
	begins := at == 0 || glob[at-1] == '/'
	switch {
	case end-at < 2 || !begins || end < len(glob) && glob[end] != '/':
		b.WriteString("[^/]*")
	case end == len(glob):
		b.WriteString(".*")
	default: // with the slash
		b.WriteString("(?:.*/)?")
		end++
	}
	return end - at
}
