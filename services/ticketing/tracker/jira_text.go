package tracker

import (
	"bytes"
	"encoding/json"
	"strings"
)

// text is a description or comment as the kind of Jira takes it; nil if there is nothing to say.
func (j *jira) text(text string, items []Item) any {
	if j.kind == JiraDataCenter {
		if rendered := wikiFormat.render(text, items); rendered != "" {
			return rendered
		}
		return nil
	}
	if rendered := documentFormat.render(text, items); rendered != "" {
		return json.RawMessage(rendered)
	}
	return nil
}

// documentFormat is the Atlassian Document Format, in JSON. A text of a document is never markup.
var documentFormat = format{
	paragraph: func(text string) string { return documentParagraph(text, "") },
	item: func(text, url string) string {
		return `{"type":"listItem","content":[` + documentParagraph(text, url) + `]}`
	},
	join: func(paragraphs, items []string) string {
		if len(items) > 0 {
			paragraphs = append(paragraphs, `{"type":"bulletList","content":[`+strings.Join(items, ",")+`]}`)
		}
		return `{"type":"doc","version":1,"content":[` + strings.Join(paragraphs, ",") + `]}`
	},
}

// documentParagraph is a paragraph with a text, which must not be empty. It is a link if url is not empty.
func documentParagraph(text, url string) string {
	marks := ""
	if url != "" {
		marks = `,"marks":[{"type":"link","attrs":{"href":` + quote(url) + `}}]`
	}
	return `{"type":"paragraph","content":[{"type":"text","text":` + quote(text) + marks + `}]}`
}

// quote is a JSON string without the escapes for HTML, which would count towards the limit.
func quote(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
