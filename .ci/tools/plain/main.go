// Command plain checks that comments and documents are plain English: no long lines, and few of the phrases that make a
// reader stop. It reads the files of a Git work tree that people write: Go, protos, Markdown, and shell.
//
//	plain [DIRECTORY]
//
// It prints how often each phrase occurs per 10,000 words, and every place where a limit is exceeded. It then exits
// with 1.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// maxLine is how many characters a line of a comment or document may have.
const maxLine = 120

// rule limits how often a phrase may occur per 10,000 words. The limits are the highest rates in the comments of
// cerbos, openfga, spicedb, minder, pocketbase, caddy and litestream.
type rule struct {
	name    string
	pattern *regexp.Regexp
	limit   float64
}

var rules = []rule{
	{"those of", regexp.MustCompile(`(?i)\b(those|that) of\b|\bthose (who|that|which)\b`), 0.8},
	{"of which", regexp.MustCompile(`(?i)\b(of which|whose|in which)\b`), 7.2},
	{"so many", regexp.MustCompile(`(?i)\b(so many|but for|nor (do|does|did|is|are|was|were|has|have|can|may|must|will))\b`), 3.6},
	{"he", regexp.MustCompile(`(?i)\b(he|him|his|she|hers|himself)\b`), 0},
}

// violation is a place where a rule matches, or a long line.
type violation struct {
	place, text string
}

// report is what was found in all files.
type report struct {
	words int
	found map[string][]violation // by the rule's name
	long  []violation
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	r, err := check(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(2)
	}
	if !r.print() {
		os.Exit(1)
	}
}

// check reads all files of a work tree that people write.
func check(root string) (*report, error) {
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	r := &report{found: map[string][]violation{}}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if read := reader(name); read != nil {
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				return nil, err
			}
			if !generated.Match(text[:min(len(text), 400)]) {
				r.add(name, read(text))
			}
		}
	}
	return r, nil
}

// generated matches the first lines of files that programs write.
var generated = regexp.MustCompile(`(?i)code generated .*do not edit`)

// reader returns what extracts the prose of a file, or nil for a file that is not checked.
func reader(name string) func([]byte) []block {
	if strings.Contains(name, "testdata/") || strings.HasPrefix(name, "gen/") || strings.Contains(name, "third_party/") {
		return nil
	}
	switch base := filepath.Base(name); {
	case strings.HasSuffix(name, ".go"):
		return goComments
	case strings.HasSuffix(name, ".proto"):
		return protoComments
	case strings.HasSuffix(name, ".md"):
		return markdown
	case base == "Makefile" || base == "Dockerfile" || strings.HasPrefix(name, ".ci/") && filepath.Ext(name) == "":
		return hashComments
	}
	return nil
}

// add counts the words of a file's prose and keeps the places that break a rule.
func (r *report) add(name string, blocks []block) {
	for _, b := range blocks {
		text := b.text()
		r.words += len(strings.Fields(text))
		for _, rule := range rules {
			for _, at := range rule.pattern.FindAllStringIndex(text, -1) {
				r.found[rule.name] = append(r.found[rule.name], violation{fmt.Sprintf("%s:%d", name, b.lineAt(at[0])), around(text, at)})
			}
		}
		for _, l := range b.lines {
			if n := len([]rune(l.source)); n > maxLine && !l.mayBeLong {
				r.long = append(r.long, violation{fmt.Sprintf("%s:%d", name, l.number), fmt.Sprintf("%d characters", n)})
			}
		}
	}
}

// around returns a match with some text on both sides.
func around(text string, at []int) string {
	from, to := max(0, at[0]-40), min(len(text), at[1]+40)
	return "…" + string(bytes.ToValidUTF8([]byte(text[from:to]), nil)) + "…"
}

// print writes the counts and the places that break a rule, and reports whether there is none.
func (r *report) print() (ok bool) {
	ok = true
	fmt.Printf("%d words of comments and documents\n", r.words)
	for _, rule := range rules {
		found := r.found[rule.name]
		rate := float64(len(found)) * 10_000 / float64(max(1, r.words))
		fmt.Printf("%-10s %4d, %5.2f per 10,000 words, at most %.1f\n", rule.name, len(found), rate, rule.limit)
		if rate > rule.limit {
			ok = false
			for _, v := range found {
				fmt.Printf("  %s: %s\n", v.place, v.text)
			}
		}
	}
	fmt.Printf("%-10s %4d lines of more than %d characters\n", "long", len(r.long), maxLine)
	for _, v := range r.long {
		ok = false
		fmt.Printf("  %s: %s\n", v.place, v.text)
	}
	return ok
}
