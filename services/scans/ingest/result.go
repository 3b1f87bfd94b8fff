package ingest

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// What is stored of a dependency or a secret about which the report says no more.
const (
	UnknownExposure = "unknown"
	NoProbability   = "none"
	NoValidator     = "no_validator"
)

// Analysis is what one report replaces: the results of one tool and category on one ref of a project, of the products
// that the report speaks of (see replaces).
type Analysis struct{ Tool, Category string }

// Source is where the results of a scan come from: a SARIF report, or what a scanner sent.
type Source interface {
	// Each passes all results in one order, and may be called again; yield may keep and change what it gets.
	Each(ctx context.Context, yield func(*Result) error) error
	// Coverages say what each analysis of the scan looked at, those without a result included. It is called after Each has
	// come to its end.
	Coverages() (map[Analysis]*Coverage, error)
}

// Result is a result on its way to a finding, whatever format its report has.
type Result struct {
	Group    Analysis
	Product  string // sast, sca or secrets
	Severity string // low, medium, high or critical
	Rule     *Rule
	// Content is what the report says: location, message, snippet, the tool's own ids and hashes and so on. The evidence
	// of the identity is taken from it. The ingest adds the ids that the tool does not give, and the commit.
	Content *storev1.FindingContent
	// Suppressed in the code itself: the finding is muted; Content has the reason.
	Suppressed bool

	// Columns of findings; empty means null.
	Exposure, Transitivity, EPSSProbability, Package, Advisory string // sca
	ValidationState                                            string // secrets
	PolicyMode                                                 string // empty keeps what is stored
	Historical, Malicious                                      bool

	// Set by the ingest.
	of          *group
	matches     *matches // while it is written
	result      int      // index in the group
	ruleName    string   // present name
	path        string   // as in content
	evidence    identity.Evidence
	ownID       bool   // the tool gives a match-based id
	birthName   string // what the identity is called if it is a new one
	fingerprint string // what it is called
	elsewhere   bool   // findings of that name are stored
	contentHash int64
	ruleID      int64
	encoded     []byte // the content with the commit
}

// Rule is what a report says about a rule. Results of one rule may share it; nobody changes it.
type Rule struct {
	// Name is as the tool writes it; the ingest applies the aliases.
	Name string
	// Text has at least category and confidence; its name is set by the ingest.
	Text *findingsv1.FindingRule
	// Stub: the report does not describe the rule, so that a stored text stays.
	Stub bool
}

// identityText is by what a finding with this content is recognised. It is the same for a result and for the finding
// that was stored of it, so that stored findings can be hashed anew.
func identityText(rule string, c *storev1.FindingContent) identity.Text {
	text := identity.Text{
		Rule: rule, Path: c.GetLocation().GetFilePath(), ToolFingerprint: c.GetToolFingerprint(), PatternHash: c.GetPatternHash(),
		CodeHash: c.GetCodeHash(), Snippet: c.GetSnippet(), Message: c.GetMessage(),
		Line: int(c.GetLocation().GetLine()), Column: int(c.GetLocation().GetColumn()), EndLine: int(c.GetLocation().GetEndLine()),
	}
	// The id of a finding whose tool gives none is our own, and says no more than the rest.
	if c.GetIdentityRung() == "" || c.GetIdentityRung() == identity.RungMatchBasedID {
		text.MatchBasedID = c.GetMatchBasedId()
	}
	return text
}

// nameVersion is the version of the names that identities get.
const nameVersion = 1

// identify sets the ids that the finding gets if it is a new one. Their version is that of the names, which stays when
// the ladder gets a new one: the content is hashed with it.
func (i *Result) identify(id identity.Identity) {
	i.birthName, i.ownID = id.Fingerprint, i.Content.GetMatchBasedId() != ""
	if i.Content.MatchBasedId = id.MatchBasedID; i.Content.GetSyntacticId() == "" {
		i.Content.SyntacticId = id.SyntacticID
	}
	i.Content.IdentityRung, i.Content.IdentityVersion = id.Rung, nameVersion
}

// encode renders the blob into a buffer, and the hash that says whether a later scan brings news. The commit is not
// part of the hash: the same finding at the next commit is not news.
func (i *Result) encode(buffer []byte, commit string) (_ []byte, err error) {
	i.Content.Commit = commit
	if i.encoded, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(buffer, i.Content); err != nil {
		return nil, err
	}
	i.contentHash = i.hash()
	return i.encoded, nil
}

// hash is that of the encoded content, of the id of its rule, and of the columns.
func (i *Result) hash() int64 {
	start, end := commitIn(i.encoded)
	h := xxhash.New()
	_, _ = h.Write(i.encoded[:start]) // a hash never fails
	_, _ = h.Write(i.encoded[end:])
	_, _ = h.WriteString(i.Severity)
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], uint64(i.ruleID))
	_, _ = h.Write(id[:])
	_, _ = h.WriteString(i.columns())
	return int64(h.Sum64())
}

// commitIn says where the commit is in an encoded content. Fields stand in the order of their numbers.
func commitIn(encoded []byte) (start, end int) {
	for start < len(encoded) {
		number, _, n := protowire.ConsumeField(encoded[start:])
		switch {
		case n < 0 || number > commitField:
			return start, start
		case number == commitField:
			return start, start + n
		}
		start += n
	}
	return start, start
}

// commitField is the number of FindingContent.commit.
const commitField = 9

// columns are what the columns say beyond the content; empty where they are what they are without a word of the report.
func (i *Result) columns() string {
	var b strings.Builder
	for _, column := range []struct{ name, value, usual string }{
		{"exposure", i.Exposure, UnknownExposure},
		{"validation_state", i.ValidationState, NoValidator},
		{"epss_probability", i.EPSSProbability, NoProbability},
		{"policy_mode", i.PolicyMode, ""},
	} {
		if column.value != "" && column.value != column.usual {
			b.WriteString("\x00" + column.name + "=" + column.value)
		}
	}
	if i.Malicious {
		b.WriteString("\x00malicious")
	}
	return b.String()
}

// state is what the scan says about a finding that it reports.
func (i *Result) state() string {
	if i.Suppressed {
		return lifecycle.Muted
	}
	return lifecycle.Unresolved
}
