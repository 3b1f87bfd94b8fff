// Package markdown writes texts of scanners into comments and issues of source-code hosts.
package markdown

import "strings"

// Span is a code span with a text in one line. A code span has no links, mentions, HTML and markup.
func Span(text string) string {
	return "`" + strings.ReplaceAll(text, "`", "'") + "`"
}
