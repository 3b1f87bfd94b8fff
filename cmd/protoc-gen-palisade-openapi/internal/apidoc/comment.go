package apidoc

import (
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
)

// comment gives the text of a leading comment, its lines joined, its paragraphs kept.
func comment(set protogen.CommentSet) string {
	var paragraphs []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(string(set.Leading)), "\n\n") {
		lines := strings.Split(paragraph, "\n")
		for i, line := range lines {
			lines[i] = strings.TrimSpace(line)
		}
		paragraphs = append(paragraphs, strings.TrimSpace(strings.Join(lines, " ")))
	}
	return strings.Join(paragraphs, "\n\n")
}

// firstSentence gives the start of a text up to the first full stop, without it: the summary of an operation.
func firstSentence(text string) string {
	paragraph, _, _ := strings.Cut(text, "\n\n")
	sentence, _, _ := strings.Cut(paragraph, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// sentences joins the texts that are not empty.
func sentences(texts ...string) string {
	var filled []string
	for _, text := range texts {
		if text != "" {
			filled = append(filled, text)
		}
	}
	return strings.Join(filled, " ")
}
