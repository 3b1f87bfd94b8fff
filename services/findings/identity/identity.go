package identity

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Version is the version of the ladder, which is stored with the evidence of each finding.
const Version = 2

// namesVersion is the version of the forms of names, which stay what they were at birth.
const namesVersion = 1

// The rungs of the ladder, the strongest first: which evidence joined a result to a finding. The first five are exact: rule and
// path are the same, too. In front of those that joined it in another file stands MovedFile or Moved.
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
	// Fingerprint is the name: 32 hexadecimal digits, unique among the results of one [Assigner], and equal for equal results on
	// any ref.
	Fingerprint string
	// Rung is the evidence that was used, one of the Rung constants.
	Rung string
	// Occurrence counts the results of equal evidence in file order, from 0.
	Occurrence int
	// SyntacticID is 32 hexadecimal digits over rule, path and code (the message where there is no code), and how many equal
	// ones came before: it changes with any edit of the code.
	SyntacticID string
	// MatchBasedID is the tool's, else 128 hexadecimal digits, an underscore and the occurrence.
	MatchBasedID string
}

// Assigner gives names to the results of one analysis, which is one tool and category of one project and ref. Results have
// to come in file order. It is not safe for concurrent use and takes about 50 bytes for each distinct piece of evidence.
type Assigner struct {
	seen   map[[16]byte]uint32
	digest hash.Hash
}

// NewAssigner starts an analysis.
func NewAssigner() *Assigner {
	return &Assigner{seen: make(map[[16]byte]uint32), digest: sha256.New()}
}

// Assign names the next result of a tool (its stable name, without its version). The same results in the same order always get
// the same names.
func (a *Assigner) Assign(tool string, e Text) Identity {
	rung, evidence := climb(e)
	tool = strings.ToLower(strings.TrimSpace(tool))
	key := a.sum("finding", tool, e.Rule, e.Path, rung, evidence)
	id := Identity{Rung: rung, Occurrence: a.count(key)}
	id.Fingerprint = a.final(key, id.Occurrence)

	// Where the code is the evidence already, so is its count: a second entry for each result is saved.
	codeRung, codeEvidence := code(e)
	nth := id.Occurrence
	if codeRung != rung {
		nth = a.count(a.sum("code", tool, e.Rule, e.Path, codeRung, codeEvidence))
	}
	id.SyntacticID = a.final(a.sum("syntactic", e.Rule, e.Path, codeRung, codeEvidence), nth)

	if id.MatchBasedID = strings.TrimSpace(e.MatchBasedID); id.MatchBasedID == "" {
		long := sha512.New()
		fields(long, "match", tool, e.Rule, e.Path, rung, evidence)
		id.MatchBasedID = hex.EncodeToString(long.Sum(nil)) + "_" + strconv.Itoa(id.Occurrence)
	}
	return id
}

// climb chooses the strongest evidence.
func climb(e Text) (rung, evidence string) {
	for _, rung := range []string{RungMatchBasedID, RungToolFingerprint} {
		if evidence := evidenceOf(rung, e); evidence != "" {
			return rung, evidence
		}
	}
	return code(e)
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
		return collapse(replaceNumbers(lineNumbers, e.Snippet, ""))
	}
	return collapse(replaceNumbers(position, e.Message, "#"))
}

// position finds the line numbers that messages speak of ("declared at 5959:23", "see line 12"): they move with the code.
var position = regexp.MustCompile(`(?i)\b\d+:\d+\b|:\d+\b|\b(?:lines?|columns?|col\.?)[ :#]+\d+(?:\s*(?:-|to|and|–)\s*\d+)?`)

// lineNumbers finds those that some tools write before each line of a snippet ("156: x := y").
var lineNumbers = regexp.MustCompile(`(?m)^[ \t]*\d+[:|][ \t]`)

// replaceNumbers replaces what an expression finds that looks for digits. Most texts have none, which is seen much faster.
func replaceNumbers(expression *regexp.Regexp, text, by string) string {
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	return expression.ReplaceAllString(text, by)
}

// collapse makes texts equal that differ in white space only.
func collapse(s string) string { return strings.Join(strings.Fields(s), " ") }

func (a *Assigner) sum(parts ...string) [16]byte {
	a.digest.Reset()
	fields(a.digest, parts...)
	var full [sha256.Size]byte
	a.digest.Sum(full[:0])
	return [16]byte(full[:16])
}

// fields writes the version and each part with its length before it, so that no two lists of parts look the same.
func fields(w io.Writer, parts ...string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], namesVersion)
	_, _ = w.Write(length[:])
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = w.Write(length[:])
		_, _ = io.WriteString(w, part)
	}
}

func (a *Assigner) count(key [16]byte) int {
	n := a.seen[key]
	a.seen[key] = n + 1
	return int(n)
}

func (a *Assigner) final(key [16]byte, occurrence int) string {
	var in [20]byte
	copy(in[:], key[:])
	binary.BigEndian.PutUint32(in[16:], uint32(occurrence))
	sum := sha256.Sum256(in[:])
	return hex.EncodeToString(sum[:16])
}
