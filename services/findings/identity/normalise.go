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

// ownLines leaves only the matched lines of a snippet that shows its neighbours, too, with a number before each line.
// Other snippets stay as they are.
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
		number, code, ok := numberedLine(line)
		if !ok {
			return snippet
		}
		all = append(all, code)
		if n, err := strconv.Atoi(number); err == nil && n >= first && n <= max(first, last) {
			own = append(own, code)
		}
	}
	if len(own) == 0 {
		return strings.Join(all, "\n")
	}
	return strings.Join(own, "\n")
}

// numberedLine takes a line of a snippet apart as some tools write it: "156: x := y".
func numberedLine(line string) (number, code string, ok bool) {
	end := lineNumber(line)
	if end == 0 {
		return "", "", false
	}
	number, code = strings.TrimLeft(line[:end-1], " \t"), line[end:]
	if code != "" && isBlank(code[0]) {
		code = code[1:]
	}
	return number, code, true
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

// shape is code with its strings, numbers and free names replaced: what is called, and the fields that are selected,
// stay. A variable may be renamed without changing it. The code has its white space collapsed. It is written out,
// because every result comes this way, and expressions took most of the time.
func shape(code string) string {
	b := make([]byte, 0, len(code))
	var open [128]bool // quotes that nothing closes: they are looked for once
	for i := 0; i < len(code); {
		c, size := rune(code[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(code[i:])
		}
		end := i + size
		switch {
		case c == '"' || c == '\'' || c == '`':
			if !open[c] {
				if end = closing(code, i); end > 0 {
					b = append(b, `""`...)
					i = end
					continue
				}
				open[c] = true
			}
			end = i + size
		case c >= '0' && c <= '9':
			b = append(b, '0')
			i += prefix(code[i:], func(r rune) bool { return r == '.' || nameRune(r) })
			continue
		case nameRune(c):
			end = i + prefix(code[i:], nameRune)
			called := strings.HasPrefix(strings.TrimPrefix(code[end:], " "), "(")
			if called || len(b) > 0 && b[len(b)-1] == '.' {
				b = append(b, code[i:end]...)
			} else {
				b = append(b, 'i')
			}
			i = end
			continue
		}
		b = append(b, code[i:end]...)
		i = end
	}
	return string(b)
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

// messageShape is a message without what it quotes and without names: words that look like a name in a program rather
// than a word of a language.
func messageShape(message string) string {
	if strings.ContainsAny(message, "\"'`") {
		message = quoted.ReplaceAllString(message, `""`)
	}
	b := make([]byte, 0, len(message))
	for i := 0; i < len(message); {
		end := i
		for end < len(message) && !isSpace(message[end]) {
			end++
		}
		if word := message[i:end]; isName(word) {
			b = append(b, 'i')
		} else {
			b = append(b, word...)
		}
		for i = end; i < len(message) && isSpace(message[i]); i++ {
			b = append(b, message[i])
		}
	}
	return string(b)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r' }

func isName(word string) bool {
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c >= '0' && c <= '9', strings.IndexByte("_()[]{}*.$", c) >= 0:
			return true
		case c >= 'A' && c <= 'Z' && i > 0 && word[i-1] >= 'a' && word[i-1] <= 'z':
			return true
		}
	}
	return false
}
