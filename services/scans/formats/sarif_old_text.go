package formats

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// oldText is a string in SARIF 1.0 and an object with a text in 2.0. Anything else is empty.
type oldText string

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (t *oldText) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var m oldMessage
	err := m.UnmarshalJSONFrom(dec)
	*t = oldText(m.Text)
	return err
}

// oldMessage is a message: a string in SARIF 1.0, an object in 2.0.
type oldMessage struct {
	Text      string                  `json:"text"`
	Markdown  string                  `json:"markdown"`
	RichText  string                  `json:"richText"`
	MessageID string                  `json:"messageId"`
	Arguments jsonstream.List[string] `json:"arguments"`
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (m *oldMessage) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		token, err := dec.ReadToken()
		if err == nil {
			m.Text = strings.Clone(token.String())
		}
		return err
	case '{':
		type plain oldMessage
		err := json.UnmarshalDecode(dec, (*plain)(m))
		m.Text = cmp.Or(m.Text, m.RichText, m.Markdown)
		return err
	}
	return dec.SkipValue()
}

// text renders the message of a result: its own, or a text of its rule with arguments.
func (r *oldResult) text(rule *oldRule) string {
	if r.Message.Text != "" {
		return fill(r.Message.Text, r.Message.Arguments)
	}
	id := cmp.Or(r.Message.MessageID, r.RuleMessageID, r.Formatted.FormatID)
	text := cmp.Or(rule.MessageStrings[id], rule.MessageFormats[id])
	if arguments := r.Message.Arguments; len(arguments) > 0 {
		return fill(string(text), arguments)
	}
	return fill(string(text), r.Formatted.Arguments)
}

// fill replaces the placeholders {0}, {1} … of a text.
func fill(text string, arguments []string) string {
	pairs := make([]string, 0, 2*len(arguments))
	for i, argument := range arguments {
		pairs = append(pairs, "{"+strconv.Itoa(i)+"}", argument)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
