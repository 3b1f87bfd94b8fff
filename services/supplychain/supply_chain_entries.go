package supplychain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/tenant"
)

// selectivity caches whether conditions match at most a given number of dependencies, so that not each page counts
// them. A stale entry costs time, but does not change answers.
type selectivity struct {
	known *expirable.LRU[[sha256.Size]byte, countResult]
}

// countResult is the cached result of a count.
type countResult struct {
	few bool
	at  time.Time
}

const (
	// manyTTL is the TTL of the result that a condition matches many.
	manyTTL = 10 * time.Minute
	// fewTTL is the TTL of the result "matches few"; these entries are then read completely. It is longer than the time
	// between two pages of a client, and short enough that scans add only few matches until it expires.
	fewTTL = time.Minute
)

func newSelectivity() *selectivity {
	return &selectivity{known: expirable.NewLRU[[sha256.Size]byte, countResult](10_000, nil, manyTTL)}
}

// atMost reports whether a condition has an index and matches at most this number of dependencies in all projects.
func (s *selectivity) atMost(ctx context.Context, db *ent.Client, c condition, most int) (few bool, err error) {
	if c.index == nil || c.haveEntries {
		return c.haveEntries && len(c.entries) <= most, nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	// The key includes the caller's visibility, because conditions contain the versions visible to the caller.
	key := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d/%s", deploymentID, tenant.Visibility(ctx), most, c.key))
	if last, ok := s.known.Get(key); ok && (!last.few || time.Since(last.at) < fewTTL) {
		return last.few, nil
	}
	matches := db.Dependency.Query().Where(dependency.DeploymentID(deploymentID), c.index).Offset(most).Limit(1)
	if c.singleValue {
		matches.Order(dependency.ByID()) // the order of the index, so that PostgreSQL uses it
	}
	more, err := matches.IDs(tenant.System(ctx))
	if err != nil {
		return false, err
	}
	few = len(more) == 0
	s.known.Add(key, countResult{few, time.Now()})
	return few, nil
}

// entry is an index entry of a dependency. project is 0 if it was not read.
type entry struct{ id, project int64 }

// readEntries reads all index entries of a condition in the projects visible to the caller, unordered. packIDs or
// packAll selects the fields.
func (c condition) readEntries(ctx context.Context, db *ent.Client, pack []ent.AggregateFunc) ([]entry, error) {
	if c.haveEntries {
		return c.entries, nil
	}
	var rows []packedEntries
	if err := db.Dependency.Query().Where(c.index).Aggregate(pack...).Scan(ctx, &rows); err != nil {
		return nil, err
	}
	return rows[0].appendTo(nil)
}

// intersection returns the entries in both lists.
func intersection(entries, other []entry) []entry {
	has := make(map[int64]struct{}, len(other))
	for _, e := range other {
		has[e.id] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		_, both := has[e.id]
		return !both
	})
}

// packedEntries holds many entries in one row, because a database reads index entries faster than a driver fetches
// rows. Ids and projects are in the same order.
type packedEntries struct {
	IDs      []byte `sql:"ids"`
	Projects []byte `sql:"projects"`
}

// packIDs and packAll aggregate the rows of a query or group to packedEntries. SQLite concatenates texts with commas.
// PostgreSQL uses eight bytes per number: formatting numbers as text takes three times as long as reading the entries;
// packing bytes takes as long as reading.
var (
	packIDs = []ent.AggregateFunc{packed(dependency.FieldID, "ids")}
	packAll = []ent.AggregateFunc{packed(dependency.FieldID, "ids"), packed(dependency.FieldProjectID, "projects")}
)

func packed(column, as string) ent.AggregateFunc {
	return func(s *entsql.Selector) string {
		list := "group_concat(" + s.C(column) + ")"
		if s.Dialect() == dialect.Postgres {
			list = "string_agg(int8send(" + s.C(column) + "), ''::bytea)"
		}
		return entsql.As(list, as)
	}
}

// appendTo unpacks the entries and appends them.
func (p packedEntries) appendTo(to []entry) ([]entry, error) {
	ids, projects, next := p.IDs, p.Projects, nextText
	if len(ids) > 0 && ids[0] == 0 { // a text begins with a digit, eight bytes with zero: no table has 2^56 rows
		next = nextBytes
	}
	for len(ids) > 0 {
		var e entry
		var err, err2 error
		e.id, ids, err = next(ids)
		if p.Projects != nil {
			e.project, projects, err2 = next(projects)
		}
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		to = append(to, e)
	}
	return to, nil
}

func nextText(list []byte) (n int64, rest []byte, err error) {
	number, rest, _ := bytes.Cut(list, []byte{','})
	n, err = strconv.ParseInt(string(number), 10, 64)
	return n, rest, err
}

func nextBytes(list []byte) (n int64, rest []byte, err error) {
	if len(list) < 8 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return int64(binary.BigEndian.Uint64(list)), list[8:], nil
}
