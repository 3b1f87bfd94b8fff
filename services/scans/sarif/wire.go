package sarif

import "github.com/palisade/palisade/services/scans/jsonstream"

// The wire types have only the parts of the format that are used. The decoder skips the rest.

// The types that read lists, tables and numbers of a report within limits.
type (
	capped[T any] = jsonstream.List[T]
	dict[T any]   = jsonstream.Map[T]
	integer       = jsonstream.Integer
	loose         = jsonstream.Texts
)

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
	StartLine   *integer  `json:"startLine"`
	StartColumn integer   `json:"startColumn"`
	EndLine     integer   `json:"endLine"`
	EndColumn   integer   `json:"endColumn"`
	CharOffset  *integer  `json:"charOffset"`
	ByteOffset  *integer  `json:"byteOffset"`
	Snippet     *wireText `json:"snippet"`
}

type wirePhysicalLocation struct {
	ArtifactLocation *wireArtifactLocation `json:"artifactLocation"`
	Region           *wireRegion           `json:"region"`
	ContextRegion    *wireRegion           `json:"contextRegion"`
}

type wireLocation struct {
	ID               *integer                    `json:"id"`
	Message          *wireMessage                `json:"message"`
	PhysicalLocation *wirePhysicalLocation       `json:"physicalLocation"`
	LogicalLocations capped[wireLogicalLocation] `json:"logicalLocations"`
	Properties       *bag                        `json:"properties"`
}

type wireLogicalLocation struct {
	FullyQualifiedName string   `json:"fullyQualifiedName"`
	DecoratedName      string   `json:"decoratedName"`
	Name               string   `json:"name"`
	Kind               string   `json:"kind"`
	Index              *integer `json:"index"`
	ParentIndex        *integer `json:"parentIndex"`
}

type wireFix struct {
	Description *wireText              `json:"description"`
	Changes     capped[wireFileChange] `json:"artifactChanges"`
}

type wireFileChange struct {
	ArtifactLocation *wireArtifactLocation   `json:"artifactLocation"`
	Replacements     capped[wireReplacement] `json:"replacements"`
}

type wireReplacement struct {
	Deleted  *wireRegion `json:"deletedRegion"`
	Inserted *wireText   `json:"insertedContent"`
}

type wireSuppression struct {
	Kind          string `json:"kind"`
	Status        string `json:"status"`
	Justification string `json:"justification"`
	Properties    *bag   `json:"properties"`
}

type wireResult struct {
	RuleID              string                    `json:"ruleId"`
	RuleIndex           *integer                  `json:"ruleIndex"`
	Rule                *wireDescriptorRef        `json:"rule"`
	Kind                string                    `json:"kind"`
	Level               string                    `json:"level"`
	BaselineState       string                    `json:"baselineState"`
	Message             *wireMessage              `json:"message"`
	Locations           capped[wireLocation]      `json:"locations"`
	AnalysisTarget      *wireArtifactLocation     `json:"analysisTarget"`
	RelatedLocations    capped[wireLocation]      `json:"relatedLocations"`
	CodeFlows           wireCodeFlows             `json:"codeFlows"`
	Fingerprints        dict[string]              `json:"fingerprints"`
	PartialFingerprints dict[string]              `json:"partialFingerprints"`
	Suppressions        capped[wireSuppression]   `json:"suppressions"`
	Fixes               capped[wireFix]           `json:"fixes"`
	Taxa                capped[wireDescriptorRef] `json:"taxa"`
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
	Descriptor     *wireDescriptorRef   `json:"descriptor"`
	Message        *wireText            `json:"message"`
	Locations      capped[wireLocation] `json:"locations"`
	AssociatedRule *wireDescriptorRef   `json:"associatedRule"`
}

// wireNotice is a rule-shaped entry that describes a kind of notification.
type wireNotice struct {
	ID                   string             `json:"id"`
	GUID                 string             `json:"guid"`
	DefaultConfiguration *wireConfiguration `json:"defaultConfiguration"`
}
