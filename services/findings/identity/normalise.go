package identity

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matchBase returns a match-based id without its trailing "_n", which counts equal matches in file order.
func matchBase(id string) string {
	id = strings.TrimSpace(id)
	cut := strings.LastIndexByte(id, '_')
	if cut <= 0 || cut == len(id)-1 || strings.Trim(id[cut+1:], "0123456789") != "" {
		return id
	}
	return id[:cut]
}

// matchedLines removes the context lines of a snippet with numbered lines. Other snippets stay unchanged.
func matchedLines(snippet string, first, last int) string {
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

// numberedLine splits a numbered line of a snippet, such as "156: x := y", into its number and its code.
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

// specific reports whether code is long enough to be recognised in another file. A brace or a bare call is not.
func specific(snippet string) bool {
	letters := 0
	for _, r := range snippet {
		if r > ' ' {
			letters++
		}
	}
	return letters >= 20
}

// quoted matches quoted text in a message.
var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`")

// shape returns code with its strings, numbers and free names replaced. Called functions and selected fields stay. So
// renaming a variable does not change the shape. code must have its white space collapsed. This is a hand-written
// scanner because it runs for every result, and regular expressions took most of the time.
func shape(code string) string {
	b := make([]byte, 0, len(code))
	var unclosed [128]bool // quotes that nothing closes, so that each is searched once
	for i := 0; i < len(code); {
		c, size := rune(code[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(code[i:])
		}
		end := i + size
		switch {
		case c == '"' || c == '\'' || c == '`':
			if !unclosed[c] {
				if end = closing(code, i); end > 0 {
					b = append(b, `""`...)
					i = end
					continue
				}
				unclosed[c] = true
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

// closing returns the index after the quote that closes the string at i, or 0 if the string is not closed.
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

// prefix returns the length in bytes of the leading runes that satisfy such.
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

// messageShape returns a message without quoted text and identifiers: words that look like a name in a program rather
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
