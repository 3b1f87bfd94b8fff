// Package identity tells which results of runs are the same issue: those of one project, file, class of weakness and
// evidence. Where in the file the evidence stands, how it is indented and how it is quoted does not matter.
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

// version begins every identity: should the rules change, old and new ones cannot be equal by chance.
const version = "1:"

// Of is the identity of a result: [version] and 40 hexadecimal digits. projectID is 0 for what is about no single
// project. file, class and evidence may be written as a model happens to write them: they are normalised here.
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

// File is the path of a file as repositories write it: with slashes, from the root of the repository. Empty stays
// empty.
func File(name string) string {
	name = norm.NFC.String(strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "\uFFFD"))
	name = strings.ReplaceAll(name, `\`, "/")
	for { // what is cut from one end may bring a blank or a slash to it
		clean := strings.TrimSpace(strings.TrimPrefix(path.Clean("/"+strings.TrimSpace(name)), "/"))
		if clean == name {
			return name
		}
		name = clean
	}
}

// Class is a class of weakness in lower case, its words joined by hyphens: "SQL Injection" and "sql_injection" are one.
func Class(class string) string {
	words := strings.FieldsFunc(strings.ToLower(norm.NFKC.String(strings.ToValidUTF8(class, "\uFFFD"))), func(r rune) bool { return !isWord(r) || r == '_' })
	return strings.Join(words, "-")
}

// lineNumber is what stands before a line of code that is shown with its number: "42: ", "L42 | ", "+42|".
var lineNumber = regexp.MustCompile(`^\s*[-+>]?\s*L?\d+\s*[:|]\s?`)

// Evidence brings a piece of code into the form in which it is compared. Numbers of lines and white space go, except
// between two words; all quotes become one; numbers and what looks like a hash become 0.
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
		case unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r): // marks of direction, zero widths
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

// wordEnd finds the end of a word or a number; a dot inside a number belongs to it.
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

// hash is a word that a person did not choose: at least seven hexadecimal digits, a decimal one among them.
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
