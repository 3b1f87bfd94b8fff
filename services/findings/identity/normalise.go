package identity

import (
	"regexp"
	"strconv"
	"strings"
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

var (
	quoted     = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`")
	number     = regexp.MustCompile(`\b\d[\w.]*`)
	identifier = regexp.MustCompile(`\.?[ ]?[\pL_$][\pL\pN_$]*[ ]?\(?`)
)

// shape is code with its strings, numbers and free names replaced: what is called, and the fields that are selected, stay. A
// variable may be renamed without changing it.
func shape(code string) string {
	code = quoted.ReplaceAllString(code, `""`)
	code = replaceNumbers(number, code, "0")
	return identifier.ReplaceAllStringFunc(code, func(name string) string {
		switch {
		case strings.HasPrefix(name, "."), strings.HasSuffix(name, "("):
			return name
		case strings.HasSuffix(name, " "):
			return "i "
		}
		return "i"
	})
}

// named is a word that looks like a name in a program rather than a word of a language.
var named = regexp.MustCompile(`\S*(?:[a-z][A-Z]|[_()\[\]{}*.$0-9])\S*`)

// messageShape is a message without what it quotes and without names.
func messageShape(message string) string {
	return named.ReplaceAllString(quoted.ReplaceAllString(message, `""`), "i")
}
