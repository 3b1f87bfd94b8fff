package identity

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// Version is the version of the ladder, which is stored with the evidence of each finding.
const Version = 2

// namesVersion is the version of the forms of names, which stay what they were at birth.
const namesVersion = 1

// The rungs of the ladder, the strongest first: which evidence joined a result to a finding. The first five are exact:
// rule and path are the same, too. In front of those that joined it in another file stands MovedFile or Moved.
const (
	RungMatchBasedID    = "match_based_id"
	RungToolFingerprint = "tool_fingerprint"
	RungCode            = "code"
	RungSnippet         = "snippet"
	RungMessage         = "message"
	RungShape           = "shape"
	RungLine            = "line"

	// MovedFile is before the rung of a finding whose whole file moved, Moved of one that moved by itself.
	MovedFile = "moved_file:"
	Moved     = "moved:"
)

// Exact reports whether a rung is evidence by itself: nothing has to be explained about such a join.
func Exact(rung string) bool {
	switch rung {
	case RungMatchBasedID, RungToolFingerprint, RungCode, RungSnippet, RungMessage:
		return true
	}
	return false
}

// Identity is what a finding is called that was never seen before.
type Identity struct {
	// Fingerprint is the name: 32 hexadecimal digits, unique among the results of one [Assigner], and equal for equal
	// results on any ref.
	Fingerprint string
	// Rung is the evidence that was used, one of the Rung constants.
	Rung string
	// Occurrence counts the results of equal evidence in file order, from 0.
	Occurrence int
	// SyntacticID is 32 hexadecimal digits over rule, path and code (the message where there is no code), and how many
	// equal ones came before: it changes with any edit of the code.
	SyntacticID string
	// MatchBasedID is the tool's, else 128 hexadecimal digits, an underscore and the occurrence.
	MatchBasedID string
}

// Assigner gives names to the results of one analysis, which is one tool and category of one project and ref. Results
// have to come in file order. It is not safe for concurrent use and takes about 16 bytes for each distinct piece of
// evidence.
type Assigner struct {
	seen   occurrences
	buffer []byte
}

// NewAssigner starts an analysis.
func NewAssigner() *Assigner { return &Assigner{} }

// Assign names the next result of a tool (its stable name, without its version). The same results in the same order
// always get the same names.
func (a *Assigner) Assign(tool string, e Text) Identity {
	codeRung, codeEvidence := code(e)
	rung, evidence := climb(e)
	if rung == "" {
		rung, evidence = codeRung, codeEvidence
	}
	tool = strings.ToLower(strings.TrimSpace(tool))
	key := a.sum("finding", tool, e.Rule, e.Path, rung, evidence)
	id := Identity{Rung: rung, Occurrence: a.seen.count(key)}
	id.Fingerprint = final(key, id.Occurrence)

	// Where the code is the evidence already, so is its count: a second entry for each result is saved.
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

// climb chooses the strongest of the tool's own ids; none: rung is empty.
func climb(e Text) (rung, evidence string) {
	for _, rung := range [...]string{RungMatchBasedID, RungToolFingerprint} {
		if evidence := evidenceOf(rung, e); evidence != "" {
			return rung, evidence
		}
	}
	return "", ""
}

// code is the evidence that does not depend on the tool's own ids.
func code(e Text) (rung, evidence string) {
	if evidence := evidenceOf(RungSnippet, e); evidence != "" {
		return RungSnippet, evidence
	}
	return RungMessage, evidenceOf(RungMessage, e)
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

// fields appends the version and each part with its length before it, so that no two lists of parts look the same.
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
