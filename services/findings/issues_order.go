package findings

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/page"
)

// issueOrder is the order of a list of issues. Findings of one word are ordered by time, the newest first. Cursors have
// the word and not its rank, because ranks change with the words that exist.
type issueOrder struct {
	columns.Order
	words []string // distinct, in ascending order
	down  bool
}

// severities and statuses are in ascending order; the most urgent is last.
var (
	severities = []string{"", vocabulary.SeverityLow, vocabulary.SeverityMedium, vocabulary.SeverityHigh, vocabulary.SeverityCritical}
	statuses   = []string{
		lifecycle.Removed, lifecycle.Fixed, lifecycle.Ignored, lifecycle.ProvisionallyIgnored, lifecycle.Fixing, lifecycle.Reviewing, lifecycle.Open,
	}
)

// orderOf returns the order that a request names.
func orderOf(
	ctx context.Context, db *ent.Client, by findingsv1.SortBy, direction findingsv1.SortDirection, of *columns.Snapshot, chosen *issuefilter.Chosen,
) (*issueOrder, error) {
	o := &issueOrder{down: direction != findingsv1.SortDirection_SORT_DIRECTION_ASC}
	switch by {
	case findingsv1.SortBy_SORT_BY_SEVERITY:
		o.Kind = o.rank(wordsOf(of.Kinds(), func(f columns.Facts) string {
			word, _, _ := f.Word("severity")
			return strconv.Itoa(slices.Index(severities, word))
		}))
	case findingsv1.SortBy_SORT_BY_STATE:
		o.Kind = o.rank(wordsOf(of.Kinds(), func(f columns.Facts) string { return strconv.Itoa(slices.Index(statuses, f.Status())) }))
	case findingsv1.SortBy_SORT_BY_REF:
		o.Place = o.rank(wordsOf(of.Places(), func(p columns.Place) string { return p.Ref }))
	case findingsv1.SortBy_SORT_BY_REPO:
		o.Place = o.rank(wordsOf(of.Places(), func(p columns.Place) string {
			if owner := chosen.Projects[p.Project]; owner != nil {
				return owner.Name
			}
			return "" // no finding of the project is chosen
		}))
	case findingsv1.SortBy_SORT_BY_RULE:
		names, err := ruleNames(ctx, db)
		if err != nil {
			return nil, err
		}
		o.Rule = o.rank(wordsOf(of.Rules(), func(id int64) string { return names[id] }))
	default:
		o.OldestFirst = !o.down
	}
	return o, nil
}

func ruleNames(ctx context.Context, db *ent.Client) (map[int64]string, error) {
	rows, err := db.Rule.Query().Select(rule.FieldID, rule.FieldName).All(ctx)
	names := make(map[int64]string, len(rows))
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, err
}

func wordsOf[T any](list []T, word func(T) string) []string {
	words := make([]string, len(list))
	for i, one := range list {
		words[i] = word(one)
	}
	return words
}

// rank returns the rank of each word.
func (o *issueOrder) rank(words []string) []int32 {
	o.words = slices.Compact(slices.Sorted(slices.Values(words)))
	ranks := make([]int32, len(words))
	for i, word := range words {
		ranks[i] = o.rankOf(word)
	}
	return ranks
}

// rankOf is the rank of a word, or of the gap where it would be: known words have odd ranks.
func (o *issueOrder) rankOf(word string) int32 {
	n, known := slices.BinarySearch(o.words, word)
	rank := int32(2 * n)
	if known {
		rank++
	}
	if o.down {
		return -rank
	}
	return rank
}

// wordOf is the word of a rank.
func (o *issueOrder) wordOf(rank int32) string {
	if len(o.words) == 0 {
		return ""
	}
	return o.words[(max(rank, -rank)-1)/2]
}

// begin continues after a cursor.
func (o *issueOrder) begin(list page.Digest, cursor string) error {
	word, key, continued, err := page.DecodeWord(list, cursor)
	if err != nil || !continued {
		return err
	}
	o.After = &columns.Key{Since: key.Order, ID: key.ID}
	if o.words != nil {
		o.After.Rank = o.rankOf(word)
	}
	return nil
}

// cursor continues after a finding.
func (o *issueOrder) cursor(list page.Digest, last columns.Key) string {
	return page.EncodeWord(list, o.wordOf(last.Rank), page.Key{Order: last.Since, ID: last.ID})
}

// groupRank orders groups: the most important first.
func groupRank(n int64, direction findingsv1.SortDirection) int64 {
	if direction == findingsv1.SortDirection_SORT_DIRECTION_ASC {
		return n
	}
	return math.MaxInt32 - n
}
