package main

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// line is a line of prose. source is the whole line of the file.
type line struct {
	number       int
	text, source string
	mayBeLong    bool // a table, a link or other text that cannot be wrapped
}

// block is prose without a gap: a phrase may begin on one line and end on the next.
type block struct{ lines []line }

func (b block) text() string {
	parts := make([]string, len(b.lines))
	for i, l := range b.lines {
		parts[i] = l.text
	}
	return strings.Join(parts, " ")
}

// lineAt returns the number of the line that holds an offset of the text.
func (b block) lineAt(offset int) int {
	for _, l := range b.lines {
		if offset -= len(l.text) + 1; offset < 0 {
			return l.number
		}
	}
	return b.lines[len(b.lines)-1].number
}

// unbreakable matches what cannot be wrapped: a word of 60 characters, such as a URL.
var unbreakable = regexp.MustCompile(`\S{60,}`)

// blocksOf joins lines that follow each other.
func blocksOf(lines []line) (blocks []block) {
	for i, l := range lines {
		if i == 0 || l.number != lines[i-1].number+1 {
			blocks = append(blocks, block{})
		}
		last := &blocks[len(blocks)-1]
		last.lines = append(last.lines, l)
	}
	return blocks
}

// goComments returns the comments of a Go file. Only lines that are nothing but a comment have a length: code is
// gofmt's affair.
func goComments(source []byte) []block {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	all := strings.Split(string(source), "\n")
	var lines []line
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return blocksOf(lines)
		}
		if kind != token.COMMENT || strings.HasPrefix(text, "//go:") || strings.HasPrefix(text, "//nolint") {
			continue
		}
		first := file.Line(pos)
		for i, part := range strings.Split(text, "\n") {
			whole := all[first+i-1]
			alone := i > 0 || strings.HasPrefix(strings.TrimSpace(whole), "//") || strings.HasPrefix(strings.TrimSpace(whole), "/*")
			lines = append(lines, line{first + i, strings.Trim(part, "/* \t"), whole, !alone || unbreakable.MatchString(part)})
		}
	}
}

// marked returns the lines that begin with a mark of a comment.
func marked(source []byte, mark string) []block {
	var lines []line
	for i, whole := range strings.Split(string(source), "\n") {
		text, is := strings.CutPrefix(strings.TrimSpace(whole), mark)
		if is && !strings.HasPrefix(text, "!") {
			lines = append(lines, line{i + 1, strings.TrimSpace(text), whole, unbreakable.MatchString(text)})
		}
	}
	return blocksOf(lines)
}

func protoComments(source []byte) []block { return marked(source, "//") }
func hashComments(source []byte) []block  { return marked(source, "#") }

// code matches what Markdown shows verbatim.
var code = regexp.MustCompile("`[^`]*`")

// markdown returns the text of a document without its code. Rows of tables may be long.
func markdown(source []byte) []block {
	var lines []line
	fenced := false
	for i, whole := range strings.Split(string(source), "\n") {
		trimmed := strings.TrimSpace(whole)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
			continue
		}
		if !fenced && trimmed != "" {
			table := strings.HasPrefix(trimmed, "|")
			lines = append(lines, line{i + 1, code.ReplaceAllString(trimmed, "code"), whole, table || unbreakable.MatchString(trimmed)})
		}
	}
	return blocksOf(lines)
}
