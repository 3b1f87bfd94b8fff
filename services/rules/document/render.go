package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// render encodes a value as JSON without blanks, with keys in source order and the digits of the source. sorted sorts
// the keys, so that equal values have equal bytes.
func (v *value) render(out []byte, sorted bool) []byte {
	switch v.kind {
	case null:
		return append(out, "null"...)
	case boolean, number:
		return append(out, v.text...)
	case text:
		return appendText(out, v.text)
	case array:
		out = append(out, '[')
		for i, item := range v.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.render(out, sorted)
		}
		return append(out, ']')
	}
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	if sorted {
		slices.SortFunc(order, func(a, b int) int { return bytes.Compare([]byte(v.keys[a]), []byte(v.keys[b])) })
	}
	out = append(out, '{')
	for n, i := range order {
		if n > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, v.keys[i]), ':')
		out = v.items[i].render(out, sorted)
	}
	return append(out, '}')
}

// appendText encodes a JSON string without HTML escaping: patterns contain many such characters.
func appendText(out []byte, s string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // strings always encode
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func (v *value) digest() []byte {
	sum := sha256.Sum256(v.render(nil, true))
	return sum[:]
}

// Annotation is the metadata that the server adds to a rule for scanners, and reads back from findings.
type Annotation struct {
	// Product is sast, sca or secrets.
	Product string
	// Actions are the actions on findings: none, comment or block.
	Actions []string
	// RuleID, VersionID, Name, Origin and URL identify the rule; an empty URL is omitted.
	RuleID, VersionID int64
	Name, Origin, URL string
	PolicyID          int64
	PolicyName        string
	PolicySlug        string
	// KeepValidityActions keeps the rule's own actions for valid and invalid secrets.
	KeepValidityActions bool
}

// Metadata keys that scanners act upon.
const (
	keyActions         = "dev.semgrep.actions"
	keyValidityActions = "dev.semgrep.validation_state.actions"
	keyRule            = "semgrep.dev"
	keyPolicy          = "semgrep.policy"
	keyProduct         = "product"
)

// member is a member of a JSON object with its raw value.
type member struct {
	key   string
	value json.RawMessage
}

// Annotate adds plant to the metadata of a document from Parse. It replaces existing values of the same keys: rules
// copied from elsewhere contain values of another server.
func Annotate(document []byte, plant Annotation) ([]byte, error) {
	members, err := membersOf(document)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(members, func(m member) bool { return m.key == "metadata" })
	if at < 0 {
		at = len(members)
		members = append(members, member{"metadata", json.RawMessage("{}")})
	}
	var metadata []member
	if string(members[at].value) != "null" {
		if metadata, err = membersOf(members[at].value); err != nil {
			return nil, err
		}
	}
	metadata = slices.DeleteFunc(metadata, func(m member) bool {
		switch m.key {
		case keyActions, keyRule, keyPolicy, keyProduct:
			return true
		case keyValidityActions:
			return !plant.KeepValidityActions
		}
		return false
	})
	metadata = append(metadata, plant.members()...)
	members[at].value = appendMembers(nil, metadata)
	return appendMembers(make([]byte, 0, len(document)+512), members), nil
}

func (p Annotation) members() []member {
	actions := []byte{'['}
	for i, action := range p.Actions {
		if i > 0 {
			actions = append(actions, ',')
		}
		actions = appendText(actions, action)
	}
	rule := []member{
		{"origin", appendText(nil, p.Origin)},
		{"r_id", strconv.AppendInt(nil, p.RuleID, 10)},
		{"rule_id", fmt.Appendf(nil, `"%d"`, p.RuleID)},
		{"rule_name", appendText(nil, p.Name)},
		{"rv_id", strconv.AppendInt(nil, p.VersionID, 10)},
		{"version_id", fmt.Appendf(nil, `"%d"`, p.VersionID)},
	}
	if p.URL != "" {
		rule = append(rule, member{"url", appendText(nil, p.URL)})
	}
	policy := appendMembers(nil, []member{
		{"id", strconv.AppendInt(nil, p.PolicyID, 10)},
		{"name", appendText(nil, p.PolicyName)},
		{"slug", appendText(nil, p.PolicySlug)},
	})
	return []member{
		{keyProduct, appendText(nil, p.Product)},
		{keyActions, append(actions, ']')},
		{keyRule, appendMembers(nil, []member{{"rule", appendMembers(nil, rule)}, {"policy", policy}})},
		{keyPolicy, policy}, // for older scanners
	}
}

// membersOf splits an object, one level deep.
func membersOf(raw []byte) ([]member, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("the document of a rule is not a JSON object")
	}
	var out []member
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return nil, err
		}
		name, _ := key.(string)
		out = append(out, member{name, item})
	}
	return out, nil
}

func appendMembers(out []byte, members []member) []byte {
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, m.key), ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}
