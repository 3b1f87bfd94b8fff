package tracker

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/palisade/palisade/services/internal/markdown"
)

// Limits of texts. Jira has the shortest ones.
const (
	maxTitle = 255
	// maxBody is the limit of a description in UTF-16 units, which Jira counts. The text may use half of it.
	maxBody      = 32_767
	maxParagraph = 2_000
	maxItem      = 400
	maxURL       = 2_000
)

// joiner is invisible and divides a mention, reference or URL, so that trackers do not recognise it.
const joiner = "\u2060"

// format renders the parts of a text for a kind of tracker.
type format struct {
	// paragraph and item get text in one line. url may be empty.
	paragraph func(text string) string
	item      func(text, url string) string
	join      func(paragraphs, items []string) string
}

var markdownFormat = format{
	paragraph: markdown.Span,
	item: func(text, url string) string {
		if url == "" {
			return "- " + markdown.Span(text)
		}
		return "- [" + markdown.Span(text) + "](" + url + ")"
	},
	join: joinBlocks,
}

// wikiFormat is Jira's wiki text. The link of an item is apart from its text, which keeps the text's escapes out of the
// brackets.
var wikiFormat = format{
	paragraph: escapeWiki,
	item: func(text, url string) string {
		if url == "" {
			return "* " + escapeWiki(text)
		}
		return "* " + escapeWiki(text) + " ([open|" + url + "])"
	},
	join: joinBlocks,
}

func joinBlocks(paragraphs, items []string) string {
	if len(items) > 0 {
		paragraphs = append(paragraphs, strings.Join(items, "\n"))
	}
	return strings.Join(paragraphs, "\n\n")
}

// render writes a text and a list within the limit of a description. It is empty if both are.
func (f format) render(text string, items []Item) string {
	left := maxBody - 1_000 // for what joins the parts, and a marker
	var blocks, lines []string
	for _, paragraph := range paragraphs(text) {
		block := f.paragraph(paragraph)
		if left -= size(block) + 2; left < maxBody/2 {
			blocks = append(blocks, f.paragraph("…"))
			break
		}
		blocks = append(blocks, block)
	}
	for i, item := range items {
		line := f.item(cmp.Or(oneLine(item.Text, maxItem), "finding"), safeURL(item.URL))
		if left -= size(line) + 1; left < 0 {
			lines = append(lines, f.item(fmt.Sprintf("%d more", len(items)-i), ""))
			break
		}
		lines = append(lines, line)
	}
	if len(blocks)+len(lines) == 0 {
		return ""
	}
	return f.join(blocks, lines)
}

// size is the length in UTF-16 units.
func size(text string) int { return len(utf16.Encode([]rune(text))) }

var emptyLine = regexp.MustCompile(`\r?\n[ \t]*\r?\n`)

// paragraphs splits a text at empty lines. Each paragraph becomes one line.
func paragraphs(text string) (list []string) {
	for _, part := range emptyLine.Split(text, -1) {
		if part = oneLine(part, maxParagraph); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// oneLine cuts a text to a number of UTF-16 units, which are never fewer than the runes. It is one line without
// invisible characters that change how it reads.
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	text = strings.Join(strings.Fields(text), " ")
	if size(text) <= most {
		return text
	}
	n := 1 // for the sign that something is missing
	for i, r := range text {
		if n += utf16.RuneLen(r); n > most {
			return text[:i] + "…"
		}
	}
	return text
}

// title is one line. Titles have no code spans: GitLab finds mentions, references and URLs in them.
func title(kind Kind, text string) string {
	if kind == GitHub || kind == GitLab {
		text = divide(oneLine(text, maxTitle))
	}
	return oneLine(text, maxTitle)
}

// reference matches the sign of a mention or reference before its name, and the middle of a URL.
var reference = regexp.MustCompile(`([@#!&])([\pL\pN_])|:(//)`)

// divide breaks mentions, references and URLs of a title.
func divide(text string) string {
	return reference.ReplaceAllStringFunc(text, func(match string) string { return match[:1] + joiner + match[1:] })
}

// wikiBlock matches the beginning of a heading or quote.
var wikiBlock = regexp.MustCompile(`^(h[1-6]|bq)\.`)

// escapeWiki makes a line plain text in Jira's wiki text: no macros, mentions, links, images and formats.
func escapeWiki(text string) string {
	var b strings.Builder
	if wikiBlock.MatchString(text) {
		b.WriteString(joiner)
	}
	for _, r := range strings.ReplaceAll(text, "://", ":"+joiner+"//") {
		switch {
		case r == '\\': // two are a line break
			b.WriteString("&#92;")
		case strings.ContainsRune("{}[]()*_?~^+-#!|@%", r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// safeURL is a URL that ends no link of Markdown or wiki text; empty if it is not a web address.
func safeURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	var b strings.Builder
	for _, c := range []byte(u.String()) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("()[]{}<>|\\^`\"", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	if b.Len() > maxURL {
		return ""
	}
	return b.String()
}
