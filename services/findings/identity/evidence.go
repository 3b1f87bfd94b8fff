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

// Text is what a tool reports about one result, as far as matching uses it.
type Text struct {
	// Rule is the current name of the rule; callers resolve aliases first. Path is relative to the checkout.
	Rule, Path string
	// MatchBasedID and ToolFingerprint are the tool's ids. PatternHash is its hash of the rule's formula with the bound
	// values, CodeHash its hash of the matched code. Each may be empty.
	MatchBasedID, ToolFingerprint, PatternHash, CodeHash string
	// Fingerprints are further fingerprints of the tool that identify the result, each as "name:value".
	Fingerprints []string
	// Logical is the name of the place in the program or resource, such as a method or "Deployment/web". LogicalKind is
	// KindResource, KindCode or empty.
	Logical, LogicalKind string
	// Snippet is the code. Message is the text for people.
	Snippet, Message string
	// Line, Column and EndLine are 1-based.
	Line, Column, EndLine int
}

// Evidence is what a result is recognised by: hashes, 0 for an absent part, and a location, which counts only together
// with other evidence. It has no text, so that hundreds of thousands fit into memory.
type Evidence struct {
	// Rule and Path are always present.
	Rule, Path uint64
	// MatchBased excludes the trailing number, which only gives the order in the file.
	MatchBased, ToolFingerprint, Pattern, Code uint64
	// Snippet is the matched lines with collapsed white space. Shape is the same with names, numbers and strings
	// replaced. Without code both come from the message.
	Snippet, Shape, Message uint64
	// Logical is the name of the place. Resource says that it does not name code. See logicalOf.
	Logical  uint64
	Resource bool
	// Prints are the fingerprints that identify the result, by name. Two of the same name must not differ. See printsOf.
	Prints       [maxPrints]mark
	Line, Column int32
	// Base is the last part of the path, Parent the one before, Dir everything before the last. A file that moves tends
	// to keep one of them.
	Base, Parent, Dir uint32
	// Specific says that the code is long enough to be recognised in another file.
	Specific bool
}

// EvidenceOf hashes the text of one result.
func EvidenceOf(t Text) Evidence { return (*Hasher)(nil).EvidenceOf(t) }

// Hasher computes EvidenceOf for many results. It caches the hashes of rules and directories, which most results share.
// A nil Hasher caches nothing. It is not safe for concurrent use.
type Hasher struct {
	rules map[string]uint64
	dirs  map[string]dirHashes
}

type dirHashes struct{ dir, parent uint32 }

// maxCached bounds each cache of a Hasher.
const maxCached = 2000

func (h *Hasher) rule(name string) uint64 {
	if h == nil {
		return hashOf("rule", name)
	}
	hash, known := h.rules[name]
	if !known {
		hash = hashOf("rule", name)
		h.rules = cacheHash(h.rules, name, hash)
	}
	return hash
}

func (h *Hasher) dir(dir string) (hashes dirHashes) {
	if h != nil {
		known, ok := h.dirs[dir]
		if ok {
			return known
		}
		defer func() { h.dirs = cacheHash(h.dirs, dir, hashes) }()
	}
	return dirHashes{dir: uint32(hashOf("dir", dir)), parent: uint32(hashOf("parent", path.Base(dir)))}
}

func cacheHash[T any](known map[string]T, name string, value T) map[string]T {
	if known == nil || len(known) >= maxCached {
		known = map[string]T{}
	}
	known[strings.Clone(name)] = value
	return known
}

// EvidenceOf hashes the text of one result.
func (h *Hasher) EvidenceOf(t Text) Evidence {
	dir := h.dir(path.Dir(t.Path))
	e := Evidence{
		Rule:       h.rule(t.Rule),
		Path:       PathHash(t.Path),
		Base:       uint32(hashOf("base", path.Base(t.Path))),
		Parent:     dir.parent,
		Dir:        dir.dir,
		MatchBased: hashOf("match", matchBase(t.MatchBasedID)),
		Prints:     printsOf(t.ToolFingerprint, t.Fingerprints),
		Pattern:    hashOf("pattern", strings.TrimSpace(t.PatternHash)),
		Code:       hashOf("code", strings.TrimSpace(t.CodeHash)),
		Line:       clamp(t.Line),
		Column:     clamp(t.Column),
	}
	snippet := collapse(matchedLines(t.Snippet, t.Line, t.EndLine))
	message := collapse(withoutPositions(t.Message))
	e.Snippet, e.Message = hashOf("snippet", snippet), hashOf("message", message)
	e.Shape = hashOf("shape", shape(snippet))
	e.Logical, e.Resource = logicalOf(t.Logical, t.Path, t.LogicalKind)
	name, value, lines := fingerprintOf(t.ToolFingerprint)
	switch {
	case value == "":
	case lines && snippet == "" && e.Code == 0:
		e.Code = hashOf("code", name+":"+value)
	default:
		e.ToolFingerprint = hashOf("tool", name+":"+value)
	}
	e.Specific = specific(snippet) || snippet == "" && e.Code != 0
	if snippet == "" {
		e.Shape = hashOf("message shape", messageShape(message))
	}
	return e
}

// PathHash is the hash of a path, as Evidence has it.
func PathHash(p string) uint64 { return hashOf("path", p) }

// Rung is the strongest rung that has evidence.
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

// Key combines the strongest evidence with rule and path, without the location. It is used to look up the same finding
// on other refs. Equal results of one file have equal keys.
func (e Evidence) Key() int64 { return int64(mix(e.Rule, e.Path, e.of(e.Rung()))) }

// of returns the evidence of one rung, or 0 if there is none.
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
		if e.hasCode() {
			return 0 // many results of a tool have the same message
		}
		return e.Message
	}
	return e.Shape
}

// hashes returns the stored parts in their stored order. Changing the order needs a new Version.
func (e *Evidence) hashes() []*uint64 {
	return []*uint64{
		&e.Rule, &e.Path, &e.MatchBased, &e.ToolFingerprint, &e.Pattern, &e.Code, &e.Snippet, &e.Shape, &e.Message,
		&e.Logical, &e.Prints[0], &e.Prints[1], &e.Prints[2], &e.Prints[3],
	}
}

const (
	resourceBit = 1 << 14
	specificBit = 1 << 15
)

// Encode returns the stored form: the version, a mask of the present parts, the parts, and the location.
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
	if e.Resource {
		mask |= resourceBit
	}
	binary.BigEndian.PutUint16(b[1:], mask)
	for _, part := range []uint32{e.Base, e.Parent, e.Dir} {
		b = binary.BigEndian.AppendUint32(b, part)
	}
	b = binary.AppendUvarint(b, uint64(max(e.Line, 0)))
	return binary.AppendUvarint(b, uint64(max(e.Column, 0)))
}

// Decode reads what Encode wrote. It returns an error for evidence of another version, which has to be recomputed.
func Decode(b []byte) (e Evidence, version int, err error) {
	if len(b) < 3 {
		return e, 0, errors.New("evidence is truncated")
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
			return Evidence{}, version, errors.New("evidence is truncated")
		}
		*part, b = binary.BigEndian.Uint64(b), b[8:]
	}
	if len(b) < 12 {
		return Evidence{}, version, errors.New("evidence is truncated")
	}
	e.Specific, e.Resource = mask&specificBit != 0, mask&resourceBit != 0
	for _, part := range []*uint32{&e.Base, &e.Parent, &e.Dir} {
		*part, b = binary.BigEndian.Uint32(b), b[4:]
	}
	for _, place := range []*int32{&e.Line, &e.Column} {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > math.MaxInt32 {
			return Evidence{}, version, errors.New("evidence has no location")
		}
		*place, b = int32(v), b[n:]
	}
	if len(b) > 0 {
		return Evidence{}, version, errors.New("evidence is too long")
	}
	return e, version, nil
}

// hashOf is the first 64 bits of the SHA-256 of a kind and a text, and 0 for an empty text.
func hashOf(kind, text string) uint64 {
	if text == "" {
		return 0
	}
	var stack [512]byte // most texts fit
	b := append(append(append(stack[:0], kind...), 0), text...)
	sum := sha256.Sum256(b)
	return max(binary.BigEndian.Uint64(sum[:8]), 1)
}

// mix combines hashes into one. Their order matters.
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
