package sarif

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// bag is a property bag (SARIF 3.8). It is free-form, so values of any type are accepted, and read as far as they make
// sense. Only known names are kept, by what they are about; see [propertyFacts].
type bag struct{ texts [facts]loose }

// UnmarshalJSONFrom implements [json.UnmarshalerFrom]. Anything but an object is an empty bag.
func (b *bag) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	return b.object(dec, inside, 0)
}

// maxBagDepth bounds the objects in objects that are read.
const maxBagDepth = 4

// object reads the members of an object that is the value of a property about a fact.
func (b *bag) object(dec *jsontext.Decoder, of fact, depth int) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue() // unlike ReadToken, this allocates nothing
		if err != nil {
			return err
		}
		f, year := factOf(name, of), ""
		if of == factOWASP && f == factOWASP && len(name) == len(`"2021"`) {
			year = string(name[1:5])
		}
		if err := b.value(dec, f, year, depth); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// value reads a value about a fact: a scalar, an object, or a list of these.
func (b *bag) value(dec *jsontext.Decoder, f fact, year string, depth int) error {
	switch dec.PeekKind() {
	case '{':
		if f == noFact || depth >= maxBagDepth {
			return dec.SkipValue()
		}
		return b.object(dec, f&^onlyObjects, depth+1)
	case '[':
		if f == noFact || depth >= maxBagDepth {
			return dec.SkipValue()
		}
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		for dec.PeekKind() != ']' {
			if err := b.value(dec, f, year, depth+1); err != nil {
				return err
			}
		}
		_, err := dec.ReadToken()
		return err
	case '"', '0':
		if f == noFact || f == inside || f&onlyObjects != 0 {
			return dec.SkipValue()
		}
		return b.scalar(dec, f, year)
	case 't':
		if f == factMalicious {
			return b.scalar(dec, f, year)
		}
	}
	return dec.SkipValue()
}

// maxLoose bounds how many texts of one fact are kept. A rule with 20 tags is already unusual.
const maxLoose = 200

// maxText bounds a text.
const maxText = 500

// scalar keeps a string or a number. The year of an OWASP list belongs to its entries.
func (b *bag) scalar(dec *jsontext.Decoder, f fact, year string) error {
	if len(b.texts[f]) >= maxLoose {
		return dec.SkipValue()
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	text := strings.TrimSpace(redactTokens(jsonstream.Clean(token.String())))
	if text == "" {
		return nil
	}
	if year != "" && owaspShort.MatchString(text) {
		text += ":" + year
	}
	limit := maxText
	if f == factReference {
		limit = maxURL // and several in one text
	}
	b.texts[f] = append(b.texts[f], strings.Clone(jsonstream.Cut(text, limit)))
	return nil
}

// first returns the first text of the first non-empty list.
func first(all ...loose) string {
	for _, l := range all {
		if len(l) > 0 {
			return l[0]
		}
	}
	return ""
}
