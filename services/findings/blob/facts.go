package blob

import (
	"google.golang.org/protobuf/encoding/protowire"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// factsField is the number of FindingContent.facts.
const factsField protowire.Number = 33

// Stamp returns an encoded FindingContent as it is stored: packed, with these facts in place of any it has, and in front, where lists
// find them at once. Whoever writes a row's content, or one of the columns that facts repeat, stamps the content with what the row
// then holds.
func Stamp(content []byte, f *storev1.FindingFacts) []byte {
	out := make([]byte, 0, len(content)+len(f.GetRef())+len(f.GetSeverity())+48)
	out = protowire.AppendTag(out, factsField, protowire.BytesType)
	var encoded [128]byte
	out = protowire.AppendBytes(out, appendFacts(encoded[:0], f))
	return pack(out, content, factsField)
}

// Correct is Stamp for content that may be of a version which knew no facts: that stays as it is.
func Correct(content []byte, f *storev1.FindingFacts) []byte {
	if _, ok := find(content); ok {
		return Stamp(content, f)
	}
	return content
}

// find returns the encoded facts of a content.
func find(content []byte) (encoded []byte, ok bool) {
	for len(content) > 0 {
		number, wireType, n := protowire.ConsumeTag(content)
		if n < 0 {
			return nil, false
		}
		size := protowire.ConsumeFieldValue(number, wireType, content[n:])
		if size < 0 {
			return nil, false
		}
		if number == factsField {
			encoded, _ = protowire.ConsumeBytes(content[n:])
			return encoded, true
		}
		content = content[n+size:]
	}
	return nil, false
}

func appendFacts(b []byte, f *storev1.FindingFacts) []byte {
	for number, value := range [...]int64{1: f.GetProjectId(), f.GetRuleId(), f.GetFirstSeenScanId(), f.GetCreatedAt()} {
		if value != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(number), protowire.VarintType), uint64(value))
		}
	}
	b = protowire.AppendString(protowire.AppendTag(b, 5, protowire.BytesType), f.GetRef())
	return protowire.AppendString(protowire.AppendTag(b, 6, protowire.BytesType), f.GetSeverity())
}

// Facts are those of one finding, as FindingFacts says.
type Facts struct {
	ProjectID, RuleID, FirstSeenScanID int64
	CreatedAt                          int64  // microseconds since 1970
	Ref, Severity                      []byte // parts of the content
}

// ParseFacts reads the facts of an encoded FindingContent; false: it has none, or they are broken or name no project, and none are
// left.
func ParseFacts(content []byte, into *Facts) bool {
	*into = Facts{}
	encoded, _ := find(content)
	if into.parse(encoded) && into.ProjectID != 0 {
		return true
	}
	*into = Facts{}
	return false
}

// parse reads encoded FindingFacts; false: they are broken.
func (into *Facts) parse(encoded []byte) bool {
	for len(encoded) > 0 {
		number, wireType, n := protowire.ConsumeTag(encoded)
		if n < 0 {
			return false
		}
		encoded = encoded[n:]
		var value uint64
		var text []byte
		switch wireType {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(encoded)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(encoded)
		default:
			return false
		}
		if n < 0 {
			return false
		}
		encoded = encoded[n:]
		switch number {
		case 1:
			into.ProjectID = int64(value)
		case 2:
			into.RuleID = int64(value)
		case 3:
			into.FirstSeenScanID = int64(value)
		case 4:
			into.CreatedAt = int64(value)
		case 5:
			into.Ref = text
		case 6:
			into.Severity = text
		}
	}
	return true
}
