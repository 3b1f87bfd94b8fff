package identity

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matchBase is a match-based id without its trailing "_n", which counts equal matches in file order.
func matchBase(id string) string {
	id = strings.TrimSpace(id)
	cut := strings.LastIndexByte(id, '_')
	if cut <= 0 || cut == len(id)-1 || strings.Trim(id[cut+1:], "0123456789") != "" {
		return id
	}
	return id[:cut]
}

// numberedLine is a line of a snippet as some tools write it: "156: x := y".
var numberedLine = regexp.MustCompile(`^[ \t]*(\d+)[:|][ \t]?(.*)$`)

// ownLines leaves only the matched lines of a snippet that shows its neighbours, too, with a number before each line. Other
// snippets stay as they are.
func ownLines(snippet string, first, last int) string {
	if snippet == "" || !strings.ContainsAny(snippet[:1], " \t0123456789") {
		return snippet
	}
	var own, all []string
	for line := range strings.Lines(snippet) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		m := numberedLine.FindStringSubmatch(line)
		if m == nil {
			return snippet
		}
		all = append(all, m[2])
		if n, err := strconv.Atoi(m[1]); err == nil && n >= first && n <= max(first, last) {
			own = append(own, m[2])
		}
	}
	if len(own) == 0 {
		return strings.Join(all, "\n")
	}
	return strings.Join(own, "\n")
}

// specific tells code that can be recognised in another file from a brace or a bare call.
func specific(snippet string) bool {
	letters := 0
	for _, r := range snippet {
		if r > ' ' {
			letters++
		}
	}
	return letters >= 20
}

// quoted finds what a message quotes.
var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`")

// shape is code with its strings, numbers and free names replaced: what is called, and the fields that are selected, stay. A
// variable may be renamed without changing it. The code has its white space collapsed. It is written out, because every result
// comes this way, and expressions took most of the time.
func shape(code string) string {
	var b strings.Builder
	b.Grow(len(code))
	open := map[rune]bool{} // quotes that nothing closes: they are looked for once
	for i := 0; i < len(code); {
		c, size := utf8.DecodeRuneInString(code[i:])
		end := i + size
		switch {
		case c == '"' || c == '\'' || c == '`':
			if !open[c] {
				if end = closing(code, i); end > 0 {
					b.WriteString(`""`)
					i = end
					continue
				}
				open[c] = true
			}
			end = i + size
		case c >= '0' && c <= '9':
			end = i + prefix(code[i:], func(r rune) bool { return r == '.' || nameRune(r) })
			b.WriteByte('0')
			i = end
			continue
		case nameRune(c):
			end = i + prefix(code[i:], nameRune)
			called := strings.HasPrefix(strings.TrimPrefix(code[end:], " "), "(")
			if called || strings.HasSuffix(b.String(), ".") {
				b.WriteString(code[i:end])
			} else {
				b.WriteByte('i')
			}
			i = end
			continue
		}
		b.WriteString(code[i:end])
		i = end
	}
	return b.String()
}

// closing is behind the quote that ends the string at i; 0 if none does.
func closing(code string, i int) int {
	for j := i + 1; j < len(code); j++ {
		switch {
		case code[j] == code[i]:
			return j + 1
		case code[j] == '\\' && code[i] != '`':
			j++
		}
	}
	return 0
}

// prefix is how many bytes at the beginning of text are such runes.
func prefix(text string, such func(rune) bool) int {
	for i, r := range text {
		if !such(r) {
			return i
		}
	}
	return len(text)
}

func nameRune(r rune) bool {
	return r == '_' || r == '$' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
		r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsNumber(r))
}

// named is a word that looks like a name in a program rather than a word of a language.
var named = regexp.MustCompile(`\S*(?:[a-z][A-Z]|[_()\[\]{}*.$0-9])\S*`)

// messageShape is a message without what it quotes and without names.
func messageShape(message string) string {
	return named.ReplaceAllString(quoted.ReplaceAllString(message, `""`), "i")
}
