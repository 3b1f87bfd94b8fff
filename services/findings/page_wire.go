package findings

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/reply"
)

// moved gives, by the number of a field of FindingContent, the number of the field of Finding that shows it, for each
// kind of finding. The types are the same, so that the bytes move from one message to the other as they are, but for packed
// texts, which count as the text that they hold.
var moved = func() map[string][]protowire.Number {
	every := map[protowire.Number]protowire.Number{
		contentLocation: 21, contentMessage: 20, 4: 5 /* syntactic_id */, 5: 6, /* match_based_id */
		13: 8 /* review_comments */, 14: 7, /* external_ticket */
	}
	code := map[protowire.Number]protowire.Number{10: 28 /* assistant */, 11: 29 /* click_to_fix_prs */, 12: 30 /* click_to_fix_failures */}
	packages := map[protowire.Number]protowire.Number{
		16: 32 /* epss_score */, 17: 33 /* fix_recommendations */, contentDependency: 34, 19: 37 /* reachable_condition */, 20: 38 /* usage */, 21: 39, /* vulnerability_identifier */
	}
	table := func(sets ...map[protowire.Number]protowire.Number) []protowire.Number {
		out := make([]protowire.Number, 64)
		for _, set := range sets {
			for from, to := range set {
				out[from] = to
			}
		}
		return out
	}
	return map[string][]protowire.Number{
		sast: table(every, code), sca: table(every, packages),
		aiSast: table(every, code, map[protowire.Number]protowire.Number{15: 31 /* ai_impact */}),
	}
}()

// Numbers of fields of FindingContent that are looked into.
const (
	contentLocation   protowire.Number = 1
	contentMessage    protowire.Number = 2
	contentCommit     protowire.Number = 9
	contentDependency protowire.Number = 18
)

// Parts of findings that are always the same.
var (
	encodedBoards            = encodedPolicies()
	encodedUnknownDependency = mustEncode(&findingsv1.Finding{FoundDependency: unknownDependency})
	encodedNoLocation        = protowire.AppendBytes(protowire.AppendTag(nil, 21, protowire.BytesType), nil)
)

func encodedPolicies() map[string][]byte {
	encoded := map[string][]byte{}
	for mode, board := range boards {
		encoded[mode] = mustEncode(&findingsv1.Finding{SourcingPolicy: board})
	}
	encoded[""] = encoded[monitored]
	return encoded
}

func mustEncode(part *findingsv1.Finding) []byte {
	encoded, err := proto.Marshal(part)
	if err != nil {
		panic(err) // a constant of this package is no text
	}
	return encoded
}

// encodePage makes a ListFindingsResponse of a page. Its findings are in the response as they are sent, without having
// been messages: gRPC sends them so, and the gateway turns them into JSON. What the response is in belongs to the call.
func encodePage(ctx context.Context, issueType string, rows []listed, rules, projects parts) (*findingsv1.ListFindingsResponse, error) {
	size := 0
	for i := range rows {
		size += len(rows[i].content) + len(rules[i].encoded) + 320
	}
	buffer := reply.Take(size)
	page := *buffer
	for i := range rows {
		var err error
		page = append(page, 1<<3|byte(protowire.BytesType), 0, 0) // the length mostly takes two bytes
		start := len(page)
		if page, err = appendFinding(page, issueType, &rows[i], rules[i], projects[i]); err != nil {
			return nil, fmt.Errorf("content of finding %d: %w", rows[i].id, err)
		}
		length := protowire.AppendVarint(make([]byte, 0, 10), uint64(len(page)-start))
		page = slices.Replace(page, start-2, start, length...)
	}
	*buffer = page
	response := &findingsv1.ListFindingsResponse{}
	reply.Encoded(ctx, response, buffer)
	return response, nil
}

// appendFinding appends an encoded Finding.
func appendFinding(b []byte, issueType string, row *listed, rule, project *shownPart) ([]byte, error) {
	b = appendText(b, 1, issueType)
	b = appendNumber(b, 2, uint64(row.id))
	b = appendText(b, 3, row.facts.Ref)
	b = appendNumber(b, 4, uint64(row.facts.FirstSeenScanID))
	b = appendText(b, 11, row.triageState)
	b = appendText(b, 12, row.state)
	b = appendText(b, 13, row.status)
	b = appendText(b, 14, row.facts.Severity)
	b = appendTime(b, 17, row.facts.CreatedAt)
	b = appendTime(b, 18, row.relevantSince)
	if row.triagedAt != 0 {
		b = appendTime(b, 22, row.triagedAt)
	}
	b = appendText(b, 23, row.triageComment)
	b = appendText(b, 24, row.triageReason)
	b = appendTime(b, 25, row.stateUpdatedAt)
	b = append(append(b, rule.encoded...), project.encoded...)
	b, about, err := appendContent(b, moved[issueType], row.content)
	if err != nil {
		return nil, err
	}
	if !about.location {
		b = append(b, encodedNoLocation...) // clients index into it (contract facts 2.4)
	}
	if project.links.Known() && len(about.path) > 0 {
		commit, err := about.commit()
		if err != nil {
			return nil, err
		}
		if commit != "" {
			b = appendText(b, 10, project.links.Line(commit, string(about.path), int32(about.line)))
		}
	}
	if issueType != sca {
		return append(b, encodedBoards[string(row.policyMode)]...), nil
	}
	if !about.dependency {
		b = append(b, encodedUnknownDependency...) // its key lockfile_line_url must be there (contract facts 2.4)
	}
	if row.malicious {
		b = appendNumber(b, 35, 1)
	}
	reachability, known := reachabilities[string(row.exposure)]
	if !known {
		reachability = "no reachability analysis"
	}
	return appendText(b, 36, reachability), nil
}

// contentFacts is what is noticed while a content is copied.
type contentFacts struct {
	location, dependency bool
	path                 []byte
	line                 uint64
	encodedCommit        []byte // with its length
	commitPacked         bool
}

// commit is most often not asked for.
func (f *contentFacts) commit() (string, error) {
	value := f.encodedCommit
	if f.commitPacked {
		var err error
		if value, err = blob.AppendText(nil, protowire.BytesType, value); err != nil {
			return "", err
		}
	}
	text, _ := protowire.ConsumeBytes(value)
	return string(text), nil
}

// appendContent appends the fields of a FindingContent that a kind of finding shows.
func appendContent(b []byte, numbers []protowire.Number, content []byte) (_ []byte, about contentFacts, err error) {
	for len(content) > 0 {
		number, wireType, n := protowire.ConsumeTag(content)
		if n < 0 {
			return nil, about, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, wireType, content[n:])
		if size < 0 {
			return nil, about, protowire.ParseError(size)
		}
		value := content[n : n+size]
		content = content[n+size:]
		text, packed := blob.TextOf(number)
		if packed {
			number = text
		}
		switch number {
		case contentCommit:
			if wireType == protowire.BytesType {
				about.encodedCommit, about.commitPacked = value, packed
			}
		case contentLocation:
			about.location = true
			location, _ := protowire.ConsumeBytes(value)
			about.path, about.line = placeOf(location)
		case contentDependency:
			about.dependency = true
		}
		if int(number) >= len(numbers) || numbers[number] == 0 {
			continue
		}
		b = protowire.AppendTag(b, numbers[number], wireType)
		if !packed {
			b = append(b, value...)
		} else if b, err = blob.AppendText(b, wireType, value); err != nil {
			return nil, about, err
		}
	}
	return b, about, nil
}

// placeOf reads the path and the line of an encoded FindingLocation.
func placeOf(location []byte) (path []byte, line uint64) {
	for len(location) > 0 {
		number, wireType, n := protowire.ConsumeTag(location)
		if n < 0 {
			return nil, 0
		}
		location = location[n:]
		switch number {
		case 1:
			path, n = protowire.ConsumeBytes(location)
		case 2:
			line, n = protowire.ConsumeVarint(location)
		default:
			n = protowire.ConsumeFieldValue(number, wireType, location)
		}
		if n < 0 {
			return nil, 0
		}
		location = location[n:]
	}
	return path, line
}

func appendText[T string | []byte](b []byte, number protowire.Number, text T) []byte {
	if len(text) == 0 {
		return b
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(len(text)))
	return append(b, text...)
}

func appendNumber(b []byte, number protowire.Number, value uint64) []byte {
	if value == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), value)
}

// appendTime appends a google.protobuf.Timestamp.
func appendTime(b []byte, number protowire.Number, micros int64) []byte {
	seconds, rest := micros/1_000_000, micros%1_000_000
	if rest < 0 {
		seconds, rest = seconds-1, rest+1_000_000
	}
	size := 0
	if seconds != 0 {
		size += 1 + protowire.SizeVarint(uint64(seconds))
	}
	if rest != 0 {
		size += 1 + protowire.SizeVarint(uint64(rest)*1000)
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(size))
	return appendNumber(appendNumber(b, 1, uint64(seconds)), 2, uint64(rest)*1000)
}
