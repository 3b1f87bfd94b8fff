package apidoc

import (
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
)

// comment returns the text of a leading comment: lines joined, paragraphs kept.
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

// firstSentence returns the text before the first full stop: the summary of an operation.
func firstSentence(text string) string {
	paragraph, _, _ := strings.Cut(text, "\n\n")
	sentence, _, _ := strings.Cut(paragraph, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// sentences joins the non-empty texts.
func sentences(texts ...string) string {
	var filled []string
	for _, text := range texts {
		if text != "" {
			filled = append(filled, text)
		}
	}
	return strings.Join(filled, " ")
}
