package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
)

// Text is what a tool says about one result, as far as it helps to recognise it.
type Text struct {
	// Rule is the present name of the rule: former names are replaced before. Path is relative to the checkout.
	Rule, Path string
	// MatchBasedID and ToolFingerprint are the tool's ids; PatternHash and CodeHash its hashes of the rule's formula with
	// its values and of the matched code. Each may be empty.
	MatchBasedID, ToolFingerprint, PatternHash, CodeHash string
	// Snippet is the code; Message the text for people.
	Snippet, Message string
	// Line, Column and EndLine are 1-based.
	Line, Column, EndLine int
}

// Evidence is by what a result is recognised: hashes, 0 for what is not there, and its place, which is evidence only
// together with others. It holds no text, so that hundreds of thousands fit into memory.
type Evidence struct {
	// Rule and Path are always there.
	Rule, Path uint64
	// MatchBased is without its trailing number, which only says the order in the file.
	MatchBased, ToolFingerprint, Pattern, Code uint64
	// Snippet is the matched lines without regard to white space; Shape is the same with names, numbers and strings
	// replaced. Without code both are of the message.
	Snippet, Shape, Message uint64
	Line, Column            int32
	// Base and Parent are the last and the last but one part of the path, and Dir is all before the last: files that moved
	// tend to keep one of them.
	Base, Parent, Dir uint32
	// Specific says that the code is long enough to be recognised in another file.
	Specific bool
}

// EvidenceOf hashes what a tool says.
func EvidenceOf(t Text) Evidence { return (*Hasher)(nil).EvidenceOf(t) }

// Hasher is EvidenceOf for many results: it remembers hashes of rules and directories, which most results share. A nil
// one remembers nothing. It is not safe for concurrent use.
type Hasher struct {
	rules map[string]uint64
	dirs  map[string]dirHashes
}

type dirHashes struct{ dir, parent uint32 }

// maxRemembered bounds what a Hasher remembers of each kind.
const maxRemembered = 2000

func (h *Hasher) rule(name string) uint64 {
	if h == nil {
		return hashOf("rule", name)
	}
	hash, known := h.rules[name]
	if !known {
		hash = hashOf("rule", name)
		h.rules = remember(h.rules, name, hash)
	}
	return hash
}

func (h *Hasher) dir(dir string) (hashes dirHashes) {
	if h != nil {
		known, ok := h.dirs[dir]
		if ok {
			return known
		}
		defer func() { h.dirs = remember(h.dirs, dir, hashes) }()
	}
	return dirHashes{dir: uint32(hashOf("dir", dir)), parent: uint32(hashOf("parent", path.Base(dir)))}
}

func remember[T any](known map[string]T, name string, value T) map[string]T {
	if known == nil || len(known) >= maxRemembered {
		known = map[string]T{}
	}
	known[strings.Clone(name)] = value
	return known
}

// EvidenceOf hashes what a tool says.
func (h *Hasher) EvidenceOf(t Text) Evidence {
	dir := h.dir(path.Dir(t.Path))
	e := Evidence{
		Rule:            h.rule(t.Rule),
		Path:            PathHash(t.Path),
		Base:            uint32(hashOf("base", path.Base(t.Path))),
		Parent:          dir.parent,
		Dir:             dir.dir,
		MatchBased:      hashOf("match", matchBase(t.MatchBasedID)),
		ToolFingerprint: hashOf("tool", strings.TrimSpace(t.ToolFingerprint)),
		Pattern:         hashOf("pattern", strings.TrimSpace(t.PatternHash)),
		Code:            hashOf("code", strings.TrimSpace(t.CodeHash)),
		Line:            clamp(t.Line),
		Column:          clamp(t.Column),
	}
	snippet := collapse(ownLines(t.Snippet, t.Line, t.EndLine))
	message := collapse(withoutPositions(t.Message))
	e.Snippet, e.Message = hashOf("snippet", snippet), hashOf("message", message)
	e.Specific = specific(snippet) || snippet == "" && e.Code != 0
	e.Shape = hashOf("shape", shape(snippet))
	if snippet == "" {
		e.Shape = hashOf("message shape", messageShape(message))
	}
	return e
}

// PathHash is the hash of a path, as Evidence has it.
func PathHash(p string) uint64 { return hashOf("path", p) }

// Rung is the strongest evidence at hand.
func (e Evidence) Rung() string {
	switch {
	case e.MatchBased != 0:
		return RungMatchBasedID
	case e.ToolFingerprint != 0:
		return RungToolFingerprint
	case e.Code != 0 || e.Pattern != 0:
		return RungCode
	case e.Snippet != 0:
		return RungSnippet
	}
	return RungMessage
}

// Key is the strongest evidence with rule and path, but without the place: by it the same finding is looked up on other
// refs. Equal ones in a file have equal keys.
func (e Evidence) Key() int64 { return int64(mix(e.Rule, e.Path, e.of(e.Rung()))) }

// of is the evidence of one rung; 0 if there is none.
func (e Evidence) of(rung string) uint64 {
	switch rung {
	case RungMatchBasedID:
		return e.MatchBased
	case RungToolFingerprint:
		return e.ToolFingerprint
	case RungCode:
		if e.Code == 0 && e.Pattern == 0 {
			return 0
		}
		return mix(e.Code, e.Pattern)
	case RungSnippet:
		return e.Snippet
	case RungMessage:
		if e.Snippet != 0 || e.Code != 0 || e.Pattern != 0 {
			return 0 // tools say the same of many places
		}
		return e.Message
	}
	return e.Shape
}

// hashes are the parts that are stored, in their stored order: never change it without a new Version.
func (e *Evidence) hashes() []*uint64 {
	return []*uint64{
		&e.Rule, &e.Path, &e.MatchBased, &e.ToolFingerprint, &e.Pattern, &e.Code, &e.Snippet, &e.Shape, &e.Message,
	}
}

const specificBit = 1 << 15

// Encode is the stored form: the version, which parts there are, the parts, and the place.
func (e Evidence) Encode() []byte {
	parts := e.hashes()
	b := make([]byte, 3, 3+8*len(parts)+12+2*binary.MaxVarintLen32)
	b[0] = Version
	mask := uint16(0)
	for i, part := range parts {
		if *part != 0 {
			mask |= 1 << i
			b = binary.BigEndian.AppendUint64(b, *part)
		}
	}
	if e.Specific {
		mask |= specificBit
	}
	binary.BigEndian.PutUint16(b[1:], mask)
	for _, part := range []uint32{e.Base, e.Parent, e.Dir} {
		b = binary.BigEndian.AppendUint32(b, part)
	}
	b = binary.AppendUvarint(b, uint64(max(e.Line, 0)))
	return binary.AppendUvarint(b, uint64(max(e.Column, 0)))
}

// Decode reads what Encode wrote. Evidence of another version is not read: it has to be made anew.
func Decode(b []byte) (e Evidence, version int, err error) {
	if len(b) < 3 {
		return e, 0, errors.New("evidence is cut off")
	}
	version = int(b[0])
	if version != Version {
		return e, version, fmt.Errorf("evidence is of version %d, not %d", version, Version)
	}
	mask := binary.BigEndian.Uint16(b[1:])
	b = b[3:]
	for i, part := range e.hashes() {
		if mask&(1<<i) == 0 {
			continue
		}
		if len(b) < 8 {
			return Evidence{}, version, errors.New("evidence is cut off")
		}
		*part, b = binary.BigEndian.Uint64(b), b[8:]
	}
	if len(b) < 12 {
		return Evidence{}, version, errors.New("evidence is cut off")
	}
	e.Specific = mask&specificBit != 0
	for _, part := range []*uint32{&e.Base, &e.Parent, &e.Dir} {
		*part, b = binary.BigEndian.Uint32(b), b[4:]
	}
	for _, place := range []*int32{&e.Line, &e.Column} {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > math.MaxInt32 {
			return Evidence{}, version, errors.New("evidence has no place")
		}
		*place, b = int32(v), b[n:]
	}
	if len(b) > 0 {
		return Evidence{}, version, errors.New("evidence is too long")
	}
	return e, version, nil
}

// hashOf is the beginning of the SHA-256 of a text and what it is; 0 for an empty one.
func hashOf(kind, text string) uint64 {
	if text == "" {
		return 0
	}
	var near [512]byte // most texts fit, and need no memory of their own
	b := append(append(append(near[:0], kind...), 0), text...)
	sum := sha256.Sum256(b)
	return max(binary.BigEndian.Uint64(sum[:8]), 1)
}

// mix combines hashes into one; their order counts.
func mix(hashes ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, v := range hashes {
		h ^= v + 0x9e3779b97f4a7c15 + h<<6 + h>>2
		h *= 0xff51afd7ed558ccd
		h ^= h >> 33
	}
	return max(h, 1)
}

func clamp(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
