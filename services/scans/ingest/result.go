package ingest

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/findings/vocabulary"
)

// The values of a dependency or a secret if the report does not give any.
const (
	UnknownExposure = "unknown"
	NoValidator     = "no_validator"
)

// Analysis is what one report replaces: the results of one tool and category on one ref of a project, for the products
// that the report covers (see replaces).
type Analysis struct{ Tool, Category string }

// Source provides the results of a scan, for example a SARIF report or the results that a scanner sent.
type Source interface {
	// Each yields all results in a fixed order, and may be called again. yield may keep and change a result.
	Each(ctx context.Context, yield func(*Result) error) error
	// Coverages returns the coverage of each analysis of the scan, also of analyses without results. It is called after
	// Each has completed.
	Coverages() (map[Analysis]*Coverage, error)
}

// Result is a result in any format, before it becomes a finding.
type Result struct {
	Group    Analysis
	Product  string // sast, sca, secrets or ai_sast
	Severity string // low, medium, high or critical
	Rule     *Rule
	// Content is what the report says: location, message, snippet, the tool's own ids and hashes, and more. Evidence is
	// computed from it. The ingest adds the commit, and ids if the tool gives none.
	Content *storev1.FindingContent
	// Suppressed says that the code suppresses the finding. It is muted; Content has the reason.
	Suppressed bool

	// Columns of findings; empty means null.
	Exposure, Transitivity, Package, Advisory string // sca
	ValidationState                           string // secrets
	PolicyMode                                string // empty keeps the stored value
	Historical, Malicious                     bool

	// Set by the ingest.
	of                 *group
	matches            *matches // while it is written
	result             int      // index in the group
	ruleName           string   // current name
	path               string   // as in content
	evidence           identity.Evidence
	ownID              bool   // the tool gives a match-based id
	ownSyntax          bool   // the tool gives a syntactic id
	timed              bool   // the content has the time of the commit
	ignored            bool   // a policy ignores the path, and the code does not suppress the finding
	pattern            string // of the policy, while it is written
	initialFingerprint string // the fingerprint of the identity if it is new
	fingerprint        string // the fingerprint
	elsewhere          bool   // findings with this fingerprint are stored
	contentHash        int64
	ruleID             int64
	encoded            []byte // the content with the commit
}

// Rule is what a report says about a rule. Results may share it; it is read-only.
type Rule struct {
	// Name is the tool's name of the rule. The ingest applies aliases.
	Name string
	// Text has at least category and confidence. The ingest sets its name.
	Text *findingsv1.FindingRule
	// Origin is custom, community or pro_rules; empty if the report does not say.
	Origin string
	// Stub says that the report does not describe the rule. A stored text is kept.
	Stub bool
}

// identityText converts content to the input of evidence. A result and its stored finding convert equally, so that
// stored findings can be hashed again.
func identityText(rule string, c *storev1.FindingContent) identity.Text {
	text := identity.Text{
		Rule: rule, Path: c.GetLocation().GetFilePath(), ToolFingerprint: c.GetToolFingerprint(), PatternHash: c.GetPatternHash(),
		Logical: placeName(c), CodeHash: c.GetCodeHash(), Snippet: c.GetSnippet(), Message: c.GetMessage(),
		Line: int(c.GetLocation().GetLine()), Column: int(c.GetLocation().GetColumn()), EndLine: int(c.GetLocation().GetEndLine()),
	}
	text.Fingerprints, text.LogicalKind = splitKind(c.GetFingerprints())
	// If the tool gives no id, the stored id is ours and adds no evidence.
	if c.GetIdentityRung() == "" || c.GetIdentityRung() == identity.RungMatchBasedID {
		text.MatchBasedID = c.GetMatchBasedId()
	}
	return text
}

// kindName is the name of the entry that has the kind of the logical location among the fingerprints of a content.
const kindName = "logical location is:"

// SetFingerprints sets the fingerprints that identify a result. kind is what the report says about the kind of its
// logical location; it is stored only if it adds to the name and the file, which must be set.
func SetFingerprints(c *storev1.FindingContent, fingerprints []string, kind string) {
	if kind = identity.KindOf(c.GetLogicalLocation(), c.GetLocation().GetFilePath(), kind); kind != "" {
		fingerprints = append(slices.Clip(fingerprints), kindName+kind)
	}
	c.Fingerprints = fingerprints
}

// splitKind separates the kind of the logical location, which is last.
func splitKind(stored []string) (fingerprints []string, kind string) {
	if n := len(stored) - 1; n >= 0 {
		if kind, found := strings.CutPrefix(stored[n], kindName); found {
			return stored[:n], kind
		}
	}
	return stored, ""
}

// placeName is the name of the place, which distinguishes results of one message. For a dependency without one it is
// the package, unless the tool tells results apart itself: by the package in the message, or by hashes of code. The
// prefix says that it is not the name of code.
func placeName(c *storev1.FindingContent) string {
	name := c.GetFoundDependency().GetPackage()
	switch {
	case c.GetLogicalLocation() != "":
		return c.GetLogicalLocation()
	case name == "", c.GetPatternHash() != "", c.GetCodeHash() != "", strings.Contains(c.GetMessage(), name):
		return ""
	}
	return "package " + name
}

// nameVersion is the version of fingerprints.
const nameVersion = 1

// identify sets the ids that the finding gets if it is new. They have the version of fingerprints, which does not
// change with the ladder, because the ids are part of the content hash.
func (i *Result) identify(id identity.Identity) {
	i.initialFingerprint, i.ownID = id.Fingerprint, i.Content.GetMatchBasedId() != ""
	i.Content.MatchBasedId = id.MatchBasedID
	if i.ownSyntax = i.Content.GetSyntacticId() != ""; !i.ownSyntax {
		i.Content.SyntacticId = id.SyntacticID
	}
	i.Content.IdentityRung, i.Content.IdentityVersion = id.Rung, nameVersion
}

// encode appends the encoded content to a buffer, and sets the hash that tells whether a later scan changes the
// finding. The commit is not part of the hash: the same finding at the next commit is unchanged. The time of the
// commit, in microseconds since 1970, is stored for dependencies, which show it.
func (i *Result) encode(buffer []byte, commit string, at int64) (_ []byte, err error) {
	i.Content.Commit = commit
	if i.timed = at != 0 && i.Product == vocabulary.SCA; i.timed {
		i.Content.CommittedAt = at
	}
	if i.encoded, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(buffer, i.Content); err != nil {
		return nil, err
	}
	i.contentHash = i.hash()
	return i.encoded, nil
}

// ContentHash is the hash of a finding that another server stored, with the id of its rule here: a scan that reports
// the same finds it unchanged. It ignores what does not come from scans.
func ContentHash(i *Result, ruleID int64) (int64, error) {
	same := *i
	same.Content, same.ruleID = proto.CloneOf(i.Content), ruleID
	verdict.Keep(&storev1.FindingContent{}, same.Content)
	_, err := same.encode(nil, same.Content.GetCommit(), same.Content.GetCommittedAt())
	return same.contentHash, err
}

// hash covers the encoded content without the commit, the rule id, and the columns.
func (i *Result) hash() int64 {
	start, end := commitIn(i.encoded)
	last := len(i.encoded)
	if i.timed {
		last -= timeSize
	}
	h := xxhash.New()
	_, _ = h.Write(i.encoded[:start]) // a hash never fails
	_, _ = h.Write(i.encoded[end:last])
	_, _ = h.WriteString(i.Severity)
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], uint64(i.ruleID))
	_, _ = h.Write(id[:])
	_, _ = h.WriteString(i.columns())
	return int64(h.Sum64())
}

// commitIn returns the range of the commit in encoded content. Fields are in the order of their numbers.
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

// timeSize is the size of FindingContent.committed_at, the last field of encoded content.
const timeSize = 10

// columns returns the columns that are not part of the content. Columns with their default value are omitted.
func (i *Result) columns() string {
	var b strings.Builder
	for _, column := range []struct{ name, value, usual string }{
		{"exposure", i.Exposure, UnknownExposure},
		{"validation_state", i.ValidationState, NoValidator},
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

// state is the state of the finding: what the scan reports, unless a policy ignores the path.
func (i *Result) state() string {
	if i.ignored {
		return lifecycle.Muted
	}
	return i.reportedState()
}

// reportedState is the state that the scan reports for a finding.
func (i *Result) reportedState() string {
	if i.Suppressed {
		return lifecycle.Muted
	}
	return lifecycle.Unresolved
}
