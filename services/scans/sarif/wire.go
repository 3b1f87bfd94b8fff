package sarif

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The wire types have only the parts of the format that are used. The decoder skips the rest.

// keptItems is how many elements of a list inside one value are kept; the rest is skipped. Otherwise a few megabytes of
// "{}," would become hundreds of megabytes of structs. GitHub keeps 100 locations per result.
const keptItems = 1000

// capped is a list that keeps only the first keptItems elements. null is an empty list.
type capped[T any] []T

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (c *capped[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return wrongType(dec, "an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if len(*c) >= keptItems {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var item T
		if err := json.UnmarshalDecode(dec, &item); err != nil {
			return err
		}
		*c = append(*c, item)
	}
	_, err := dec.ReadToken()
	return err
}

// dict is an object that keeps only the first keptItems members.
type dict[T any] map[string]T

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (d *dict[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
	default:
		return wrongType(dec, "an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*d = dict[T]{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if len(*d) >= keptItems {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var item T
		if err := json.UnmarshalDecode(dec, &item); err != nil {
			return err
		}
		(*d)[key] = item
	}
	_, err := dec.ReadToken()
	return err
}

// maxInt bounds every number that is read, so that it fits any integer column.
const maxInt = 1<<31 - 1

// integer is a number that some tools write as 12.0.
type integer int

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (n *integer) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '0':
	default:
		return wrongType(dec, "an integer")
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	f, err := token.Float()
	if err != nil || f != float64(int64(f)) || f > maxInt || f < -maxInt {
		return expectation("an integer of at most 2147483647")
	}
	*n = integer(f)
	return nil
}

// expectation is an error that names the expected type. [describe] adds the field.
type expectation string

func (e expectation) Error() string { return "want " + string(e) }

// wrongType reports the type of the next value. It does not keep the value, which may be a secret.
func wrongType(dec *jsontext.Decoder, want string) error {
	got := kindName(dec.PeekKind())
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	return mismatch{got: got, want: want}
}

type mismatch struct{ got, want string }

func (m mismatch) Error() string { return "is " + m.got + ", want " + m.want }

type wireText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown"`
}

type wireMessage struct {
	Text      string         `json:"text"`
	Markdown  string         `json:"markdown"`
	ID        string         `json:"id"`
	Arguments capped[string] `json:"arguments"`
}

type wireComponentRef struct {
	Name  string   `json:"name"`
	GUID  string   `json:"guid"`
	Index *integer `json:"index"`
}

type wireDescriptorRef struct {
	ID            string            `json:"id"`
	GUID          string            `json:"guid"`
	Index         *integer          `json:"index"`
	ToolComponent *wireComponentRef `json:"toolComponent"`
}

type wireArtifactLocation struct {
	URI       string   `json:"uri"`
	URIBaseID string   `json:"uriBaseId"`
	Index     *integer `json:"index"`
}

type wireRegion struct {
	StartLine   integer   `json:"startLine"`
	StartColumn integer   `json:"startColumn"`
	EndLine     integer   `json:"endLine"`
	EndColumn   integer   `json:"endColumn"`
	Snippet     *wireText `json:"snippet"`
}

type wirePhysicalLocation struct {
	ArtifactLocation *wireArtifactLocation `json:"artifactLocation"`
	Region           *wireRegion           `json:"region"`
	ContextRegion    *wireRegion           `json:"contextRegion"`
}

type wireLocation struct {
	ID               *integer              `json:"id"`
	PhysicalLocation *wirePhysicalLocation `json:"physicalLocation"`
}

type wireSuppression struct {
	Kind          string `json:"kind"`
	Status        string `json:"status"`
	Justification string `json:"justification"`
}

type wireResult struct {
	RuleID           string                `json:"ruleId"`
	RuleIndex        *integer              `json:"ruleIndex"`
	Rule             *wireDescriptorRef    `json:"rule"`
	Kind             string                `json:"kind"`
	Level            string                `json:"level"`
	BaselineState    string                `json:"baselineState"`
	Message          *wireMessage          `json:"message"`
	Locations        capped[wireLocation]  `json:"locations"`
	AnalysisTarget   *wireArtifactLocation `json:"analysisTarget"`
	RelatedLocations capped[struct {
		ID *integer `json:"id"`
	}] `json:"relatedLocations"`
	Fingerprints        dict[string]            `json:"fingerprints"`
	PartialFingerprints dict[string]            `json:"partialFingerprints"`
	Suppressions        capped[wireSuppression] `json:"suppressions"`
	Provenance          *struct {
		InvocationIndex *integer `json:"invocationIndex"`
	} `json:"provenance"`
	Properties bag `json:"properties"`
}

type wireConfiguration struct {
	Level string `json:"level"`
}

type wireRule struct {
	ID                   string             `json:"id"`
	GUID                 string             `json:"guid"`
	Name                 string             `json:"name"`
	ShortDescription     *wireText          `json:"shortDescription"`
	FullDescription      *wireText          `json:"fullDescription"`
	Help                 *wireText          `json:"help"`
	HelpURI              string             `json:"helpUri"`
	DefaultConfiguration *wireConfiguration `json:"defaultConfiguration"`
	MessageStrings       dict[wireText]     `json:"messageStrings"`
	DeprecatedIDs        capped[string]     `json:"deprecatedIds"`
	Relationships        capped[struct {
		Target wireDescriptorRef `json:"target"`
	}] `json:"relationships"`
	Properties bag `json:"properties"`
}

// wireTaxon is a rule-shaped entry of a taxonomy such as CWE.
type wireTaxon struct {
	ID               string    `json:"id"`
	Name             string    `json:"name"`
	ShortDescription *wireText `json:"shortDescription"`
}

type wireOverride struct {
	Descriptor    wireDescriptorRef  `json:"descriptor"`
	Configuration *wireConfiguration `json:"configuration"`
}

type wireArtifact struct {
	Location *wireArtifactLocation `json:"location"`
	Roles    capped[string]        `json:"roles"`
	Hashes   dict[string]          `json:"hashes"`
}

type wireNotification struct {
	Level          string               `json:"level"`
	Locations      capped[wireLocation] `json:"locations"`
	AssociatedRule *wireDescriptorRef   `json:"associatedRule"`
}
