package gitignore

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// classes are the names that Git knows in [[:name:]], as parts of an expression. None has the slash, which brackets
// never match.
var classes = map[string]string{
	"alnum": "[:alnum:]", "alpha": "[:alpha:]", "blank": "[:blank:]", "cntrl": "[:cntrl:]", "digit": "[:digit:]", "lower": "[:lower:]",
	"space": "[:space:]", "upper": "[:upper:]", "xdigit": "[:xdigit:]",
	"graph": span('!', '~'), "print": span(' ', '~'), "punct": span('!', '/') + span(':', '@') + span('[', '`') + span('{', '~'),
}

// class writes the brackets at the beginning of a text, and returns their length.
func class(b *strings.Builder, text string) (int, error) {
	i, not := 1, len(text) > 1 && (text[1] == '!' || text[1] == '^')
	if not {
		i = 2
	}
	var set strings.Builder
	for first := true; first || !strings.HasPrefix(text[i:], "]"); first = false {
		part, n, err := member(text[i:])
		if err != nil {
			return 0, err
		}
		set.WriteString(part)
		i += n
	}
	switch {
	case not:
		b.WriteString("[^/" + set.String() + "]")
	case set.Len() == 0: // only the slash
		b.WriteString(`[^\x{0}-\x{10ffff}]`)
	default:
		b.WriteString("[" + set.String() + "]")
	}
	return i + 1, nil
}

// member converts the member of brackets at the beginning of a text: a class, a range or a character.
func member(text string) (part string, size int, err error) {
	if inner, found := strings.CutPrefix(text, "[:"); found {
		if name, _, closed := strings.Cut(inner, ":]"); closed && !strings.Contains(name, "]") {
			part, known := classes[name]
			if !known {
				return "", 0, errClass
			}
			return part, len(name) + len("[::]"), nil
		}
	}
	low, n, err := character(text)
	if err != nil {
		return "", 0, err
	}
	rest := text[n:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		return span(low, low), n, nil
	}
	high, more, err := character(rest[1:])
	if err == nil && high < low {
		err = errRange
	}
	return span(low, high), n + 1 + more, err
}

// character reads a character, which may follow a backslash.
func character(text string) (r rune, size int, err error) {
	bare := strings.TrimPrefix(text, `\`)
	if bare == "" {
		return 0, 0, errBracket
	}
	r, n := utf8.DecodeRuneInString(bare)
	return r, len(text) - len(bare) + n, nil
}

// span writes a range without the slash.
func span(low, high rune) string {
	if low <= '/' && '/' <= high {
		out := ""
		if low < '/' {
			out = span(low, '/'-1)
		}
		if high > '/' {
			out += span('/'+1, high)
		}
		return out
	}
	return fmt.Sprintf(`\x{%x}-\x{%x}`, low, high)
}
