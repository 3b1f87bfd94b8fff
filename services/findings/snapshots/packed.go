package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/findings/columns"
)

// In SQLite, which is a library, stepping to and fetching a row takes several times as long as reading it from an
// index. So reads of all findings are packed, packedIDs of them in one row: numbers as a list, and refs as JSON,
// because a ref may contain any separator.

// packedIDs is the number of ids per row.
const (
	packedIDs  = 1 << packedBits
	packedBits = 10
)

// firstIDs is the table expression of the first ids of the rows. It skips ids that the deployment does not have.
func firstIDs(table, id string) string {
	return fmt.Sprintf(`WITH RECURSIVE part(b) AS (SELECT MIN(%[2]s) FROM %[1]s WHERE deployment_id = ?1 UNION ALL
		SELECT (SELECT MIN(%[2]s) FROM %[1]s WHERE deployment_id = ?1 AND %[2]s >= part.b + %[3]d) FROM part WHERE part.b IS NOT NULL) `, table, id, packedIDs)
}

// Aggregates keep the order of the inner SELECT.
var (
	packedFindings = firstIDs("findings", "id") + fmt.Sprintf(`SELECT b, (
		SELECT group_concat(packed) || char(10) || group_concat(project_id) || char(10) || group_concat(rule_id) || char(10) ||
			group_concat(relevant_since) || char(10) || json_group_array(ref) FROM (
			SELECT (%[1]s) * %[2]d + id - b AS packed, project_id, rule_id, relevant_since, ref FROM findings
			WHERE deployment_id = ?1 AND id >= b AND id < b + %[2]d ORDER BY id)) FROM part WHERE b IS NOT NULL`, facts, packedIDs)
	packedEvents = firstIDs("finding_events", "finding_id") + fmt.Sprintf(`SELECT b, (
		SELECT group_concat(packed) FROM (
			SELECT (%[1]s) * %[2]d + finding_id - b AS packed FROM finding_events
			WHERE deployment_id = ?1 AND finding_id >= b AND finding_id < b + %[2]d ORDER BY finding_id, id)) FROM part WHERE b IS NOT NULL`, transition, packedIDs)
)

// packed passes the rows of a statement to unpack.
func (l loader) packed(ctx context.Context, query string, unpack func(base int64, text string) error) error {
	rows, err := l.query(ctx, query, "")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var base int64
		var text string
		if err := rows.Scan(&base, &text); err != nil {
			return err
		}
		if err := unpack(base, text); err != nil {
			return err
		}
	}
	return rows.Err()
}

// errPacked: a list has another length than the parallel one.
var errPacked = errors.New("lists of different lengths")

// packedFindings reads all findings, like findings.
func (l loader) packedFindings(ctx context.Context, table *columns.Table, give func(columns.Row) error) error {
	err := l.packed(ctx, packedFindings, func(base int64, text string) error {
		lists := strings.SplitN(text, "\n", 5)
		if len(lists) != 5 {
			return errPacked
		}
		refs := refList{rest: strings.TrimPrefix(lists[4], "[")}
		var place, rule uint32
		var before [2]int64 // the previous project and rule
		for known := false; lists[0] != ""; known = true {
			var numbers [4]int64 // packed, project, rule, since
			var err error
			for i := range numbers {
				if numbers[i], lists[i], err = number(lists[i]); err != nil {
					return err
				}
			}
			same, err := refs.next()
			if err != nil {
				return err
			}
			if !known || !same || numbers[1] != before[0] {
				place = table.Place(numbers[1], refs.ref)
			}
			if !known || numbers[2] != before[1] {
				rule = table.Rule(numbers[2])
			}
			before = [2]int64{numbers[1], numbers[2]}
			kind, attr := table.Kind(columns.Facts(numbers[0] / packedIDs))
			if err := give(columns.Row{ID: base + numbers[0]%packedIDs, Place: place, Rule: rule, Kind: kind, Attr: attr, Since: numbers[3]}); err != nil {
				return err
			}
		}
		if lists[1]+lists[2]+lists[3]+refs.rest != "" {
			return errPacked
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read findings for columns: %w", err)
	}
	return nil
}

// packedEvents reads all events, like events.
func (l loader) packedEvents(ctx context.Context, give func(event) error) error {
	err := l.packed(ctx, packedEvents, func(base int64, text string) error {
		for text != "" {
			p, rest, err := number(text)
			if err != nil {
				return err
			}
			if err := give(event{base + p&(packedIDs-1), columns.TransitionOf(p >> packedBits)}); err != nil {
				return err
			}
			text = rest
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read events for columns: %w", err)
	}
	return nil
}

// number parses the first number of a list.
func number(list string) (n int64, rest string, err error) {
	i := 0
	for ; i < len(list) && i < 18 && '0' <= list[i] && list[i] <= '9'; i++ {
		n = n*10 + int64(list[i]-'0')
	}
	if i > 0 && i == len(list) {
		return n, "", nil
	}
	if i > 0 && list[i] == ',' {
		return n, list[i+1:], nil
	}
	text, rest, _ := strings.Cut(list, ",") // long, or negative
	n, err = strconv.ParseInt(text, 10, 64)
	return n, rest, err
}

// refList parses refs from the rest of a JSON array.
type refList struct {
	rest string
	raw  string // the previous one in JSON
	ref  string // the previous one
}

// next parses the next ref; same reports that it equals the previous one.
func (l *refList) next() (same bool, err error) {
	if same = l.raw != "" && strings.HasPrefix(l.rest, l.raw); !same {
		end := 1
		for ; end < len(l.rest) && l.rest[end] != '"'; end++ {
			if l.rest[end] == '\\' {
				end++
			}
		}
		if end >= len(l.rest) {
			return false, errPacked
		}
		l.raw = l.rest[:end+1]
		if err := json.Unmarshal([]byte(l.raw), &l.ref); err != nil {
			return false, err
		}
	}
	l.rest = l.rest[len(l.raw):]
	if l.rest == "" {
		return false, errPacked
	}
	l.rest = l.rest[1:] // a comma or the closing bracket
	return same, nil
}
