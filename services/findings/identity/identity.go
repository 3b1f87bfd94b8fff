package identity

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// Version is the version of the identity ladder. It is stored with the evidence of each finding.
const Version = 4

// namesVersion is the version of the input of fingerprints. Stored fingerprints depend on it and never change.
const namesVersion = 1

// The rungs of the ladder, the strongest first. A rung names the evidence that joined a result to a finding. The first
// five are exact: the rule and the path are equal, too. MovedFile or Moved precedes the rung of a join across files.
const (
	RungMatchBasedID    = "match_based_id"
	RungToolFingerprint = "tool_fingerprint"
	RungCode            = "code"
	RungSnippet         = "snippet"
	RungMessage         = "message"
	RungLogical         = "logical"
	RungShape           = "shape"
	RungLine            = "line"

	// MovedFile precedes the rung if the whole file moved, Moved if only the finding did.
	MovedFile = "moved_file:"
	Moved     = "moved:"
)

// Exact reports whether a rung needs no explanation, because its evidence is sufficient.
func Exact(rung string) bool {
	switch rung {
	case RungMatchBasedID, RungToolFingerprint, RungCode, RungSnippet, RungMessage:
		return true
	}
	return false
}

// Identity is the identity of a finding that is new.
type Identity struct {
	// Fingerprint is 32 hexadecimal digits. It is unique among the results of one [Assigner], and equal for equal
	// results on every ref.
	Fingerprint string
	// Rung is the evidence that was used, one of the Rung constants.
	Rung string
	// Occurrence counts results of equal evidence in file order, from 0.
	Occurrence int
	// SyntacticID is 32 hexadecimal digits: a hash of the rule, the path, the code (or the message, if there is no
	// code), and the number of equal results before this one. Any edit of the code changes it.
	SyntacticID string
	// MatchBasedID is the tool's id. If there is none, it is 128 hexadecimal digits, an underscore and the occurrence.
	MatchBasedID string
}

// Assigner gives identities to the results of one analysis: one tool and category of one project and ref. Results have
// to come in file order. An Assigner is not safe for concurrent use. It takes about 16 bytes per distinct piece of
// evidence.
type Assigner struct {
	seen   occurrences
	buffer []byte
}

// NewAssigner returns an Assigner for one analysis.
func NewAssigner() *Assigner { return &Assigner{} }

// Assign returns the identity of the next result. tool is the stable name of the tool, without its version. The same
// results in the same order always get the same identities.
func (a *Assigner) Assign(tool string, e Text) Identity {
	codeRung, codeEvidence := code(e)
	rung, evidence := strongestID(e)
	if rung == "" {
		rung, evidence = codeRung, codeEvidence
	}
	tool = strings.ToLower(strings.TrimSpace(tool))
	key := a.sum("finding", tool, e.Rule, e.Path, rung, evidence)
	id := Identity{Rung: rung, Occurrence: a.seen.count(key)}
	id.Fingerprint = final(key, id.Occurrence)

	// If the code is the evidence, its count is known already. This saves a second entry for each result.
	nth := id.Occurrence
	if codeRung != rung {
		nth = a.seen.count(a.sum("code", tool, e.Rule, e.Path, codeRung, codeEvidence))
	}
	id.SyntacticID = final(a.sum("syntactic", e.Rule, e.Path, codeRung, codeEvidence), nth)

	if id.MatchBasedID = strings.TrimSpace(e.MatchBasedID); id.MatchBasedID == "" {
		a.buffer = fields(a.buffer[:0], "match", tool, e.Rule, e.Path, rung, evidence)
		long := sha512.Sum512(a.buffer)
		var text [2*sha512.Size + 11]byte
		hex.Encode(text[:], long[:])
		text[2*sha512.Size] = '_'
		id.MatchBasedID = string(strconv.AppendInt(text[:2*sha512.Size+1], int64(id.Occurrence), 10))
	}
	return id
}

// strongestID returns the strongest of the tool's own ids. rung is empty if there is none.
func strongestID(e Text) (rung, evidence string) {
	for _, rung := range [...]string{RungMatchBasedID, RungToolFingerprint} {
		if evidence := evidenceOf(rung, e); evidence != "" {
			return rung, evidence
		}
	}
	return "", ""
}

// code returns the evidence that does not depend on the tool's own ids.
func code(e Text) (rung, evidence string) {
	if evidence := evidenceOf(RungSnippet, e); evidence != "" {
		return RungSnippet, evidence
	}
	return RungMessage, evidenceOf(RungMessage, e)
}

// SyntacticID is the syntactic id of a result after n equal ones.
func SyntacticID(e Text, n int) string {
	rung, evidence := code(e)
	return final(new(Assigner).sum("syntactic", e.Rule, e.Path, rung, evidence), n)
}

// SameCode reports whether two results of one rule have the same path and code (or message, if there is no code).
func SameCode(a, b Text) bool {
	rungOfA, codeOfA := code(a)
	rungOfB, codeOfB := code(b)
	return a.Path == b.Path && rungOfA == rungOfB && codeOfA == codeOfB
}

func evidenceOf(rung string, e Text) string {
	switch rung {
	case RungMatchBasedID:
		return strings.TrimSpace(e.MatchBasedID)
	case RungToolFingerprint:
		return strings.TrimSpace(e.ToolFingerprint)
	case RungSnippet:
		return collapse(withoutLineNumbers(e.Snippet))
	}
	return collapse(withoutPositions(e.Message))
}

func (a *Assigner) sum(parts ...string) [16]byte {
	a.buffer = fields(a.buffer[:0], parts...)
	full := sha256.Sum256(a.buffer)
	return [16]byte(full[:16])
}

// fields appends the version, and each part after its length, so that different lists of parts never encode equally.
func fields(b []byte, parts ...string) []byte {
	b = binary.BigEndian.AppendUint64(b, namesVersion)
	for _, part := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

func final(key [16]byte, occurrence int) string {
	var in [20]byte
	copy(in[:], key[:])
	binary.BigEndian.PutUint32(in[16:], uint32(occurrence))
	sum := sha256.Sum256(in[:])
	return hex.EncodeToString(sum[:16])
}
