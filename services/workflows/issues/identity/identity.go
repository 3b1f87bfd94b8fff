// Package identity decides which results of different runs are the same issue: results with the same project, file,
// weakness class and evidence. The position in the file, indentation and quote style do not matter.
package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// version is the prefix of each identity. If the rules change, old and new identities cannot be equal by chance.
const version = "1:"

// Of returns the identity of a result: [version] and 40 hexadecimal digits. projectID is 0 if there is no single
// project. file, class and evidence may be in any spelling; Of normalises them.
func Of(projectID int64, file, class, evidence string) string {
	hash := sha256.New()
	for _, part := range []string{File(file), Class(class), Evidence(evidence)} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		hash.Write(size[:])
		hash.Write([]byte(part))
	}
	var project [8]byte
	binary.BigEndian.PutUint64(project[:], uint64(projectID))
	hash.Write(project[:])
	return version + hex.EncodeToString(hash.Sum(nil)[:20])
}

// File normalises a file path: slashes, relative to the repository root. Empty stays empty.
func File(name string) string {
	name = norm.NFC.String(strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "\uFFFD"))
	name = strings.ReplaceAll(name, `\`, "/")
	for { // trimming one end may expose another blank or slash
		clean := strings.TrimSpace(strings.TrimPrefix(path.Clean("/"+strings.TrimSpace(name)), "/"))
		if clean == name {
			return name
		}
		name = clean
	}
}

// Class normalises a weakness class to lower case with hyphens: "SQL Injection" and "sql_injection" are equal.
func Class(class string) string {
	words := strings.FieldsFunc(strings.ToLower(norm.NFKC.String(strings.ToValidUTF8(class, "\uFFFD"))), func(r rune) bool { return !isWord(r) || r == '_' })
	return strings.Join(words, "-")
}

// lineNumber matches the line number prefix of a quoted line of code: "42: ", "L42 | ", "+42|".
var lineNumber = regexp.MustCompile(`^\s*[-+>]?\s*L?\d+\s*[:|]\s?`)

// Evidence normalises a piece of code for comparison. It removes line numbers, and white space except between two
// words. All quotes become one kind. Numbers and strings that look like a hash become 0.
func Evidence(text string) string {
	lines := strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines {
		lines[i] = lineNumber.ReplaceAllString(line, "")
	}
	runes := []rune(norm.NFKC.String(strings.Join(lines, "\n")))
	var out strings.Builder
	gap, afterWord := false, false
	for i := 0; i < len(runes); {
		r := runes[i]
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r): // control, format and zero-width characters
			gap = true
			i++
			continue
		case isWord(r):
			end := wordEnd(runes, i)
			if gap && afterWord {
				out.WriteByte(' ')
			}
			out.WriteString(normalWord(string(runes[i:end])))
			i, afterWord = end, true
		default:
			out.WriteRune(normalQuote(r))
			i++
			afterWord = false
		}
		gap = false
	}
	return out.String()
}

// wordEnd returns the end of a word or number. A dot inside a number belongs to it.
func wordEnd(runes []rune, start int) int {
	number := unicode.IsDigit(runes[start])
	end := start
	for end < len(runes) {
		dot := number && runes[end] == '.' && end+1 < len(runes) && unicode.IsDigit(runes[end+1])
		if !isWord(runes[end]) && !dot {
			break
		}
		end++
	}
	return end
}

// hash matches a likely hash: at least seven hexadecimal digits, one of them decimal.
var hash = regexp.MustCompile(`^[0-9a-fA-F]{7,}$`)

func normalWord(word string) string {
	first, _ := utf8.DecodeRuneInString(word)
	if unicode.IsDigit(first) || hash.MatchString(word) && strings.ContainsAny(word, "0123456789") {
		return "0"
	}
	return word
}

func normalQuote(r rune) rune {
	if r == '\'' || r == '`' || r == '´' || unicode.In(r, unicode.Pi, unicode.Pf, unicode.Quotation_Mark) {
		return '"'
	}
	return r
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}
