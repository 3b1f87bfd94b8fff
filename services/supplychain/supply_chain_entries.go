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

// sizes remembers whether a condition chooses at most so many dependencies, so that it is not counted for each page. It
// may be outdated: that costs time and changes no answer.
type sizes struct {
	known *expirable.LRU[[sha256.Size]byte, counted]
}

// counted is what was found when a condition was counted.
type counted struct {
	few bool
	at  time.Time
}

const (
	// manyKept is how long it is remembered that a condition chooses many.
	manyKept = 10 * time.Minute
	// fewKept is how long it is remembered that it chooses few, which are read as a whole: longer than a client takes from
	// one page to the next, and not so long that scans bring very many in the meantime.
	fewKept = time.Minute
)

func newSizes() *sizes {
	return &sizes{known: expirable.NewLRU[[sha256.Size]byte, counted](10_000, nil, manyKept)}
}

// atMost reports whether a condition is known by an index and chooses at most so many dependencies of all projects.
func (s *sizes) atMost(ctx context.Context, db *ent.Client, c condition, most int) (few bool, err error) {
	if c.by == nil || c.read {
		return c.read && len(c.entries) <= most, nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	// What the caller sees is in the key because conditions name the versions that he sees.
	key := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d/%s", deploymentID, tenant.Visibility(ctx), most, c.named))
	if last, ok := s.known.Get(key); ok && (!last.few || time.Since(last.at) < fewKept) {
		return last.few, nil
	}
	those := db.Dependency.Query().Where(dependency.DeploymentID(deploymentID), c.by).Offset(most).Limit(1)
	if c.one {
		those.Order(dependency.ByID()) // that of the index, which PostgreSQL reads then
	}
	more, err := those.IDs(tenant.System(ctx))
	if err != nil {
		return false, err
	}
	few = len(more) == 0
	s.known.Add(key, counted{few, time.Now()})
	return few, nil
}

// entry is what an index of lists tells of a dependency: where it is. Its project is 0 where nobody asked for it.
type entry struct{ id, project int64 }

// readEntries reads all entries that a condition has in its index, of the projects that the caller sees, in no order;
// packIDs or packAll say what of them.
func (c condition) readEntries(ctx context.Context, db *ent.Client, pack []ent.AggregateFunc) ([]entry, error) {
	if c.read {
		return c.entries, nil
	}
	var rows []packedEntries
	if err := db.Dependency.Query().Where(c.by).Aggregate(pack...).Scan(ctx, &rows); err != nil {
		return nil, err
	}
	return rows[0].appendTo(nil)
}

// common are the entries that are in both lists.
func common(entries, other []entry) []entry {
	has := make(map[int64]struct{}, len(other))
	for _, e := range other {
		has[e.id] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		_, both := has[e.id]
		return !both
	})
}

// packedEntries are those of many rows in one: a database reads an entry of an index faster than a driver gives a row.
// The lists of ids and of projects are in the same order.
type packedEntries struct {
	IDs      []byte `sql:"ids"`
	Projects []byte `sql:"projects"`
}

// packIDs and packAll make packedEntries of the rows of a query or a group: SQLite as texts with commas between,
// PostgreSQL, which takes three times as long to write numbers as to read entries, as eight bytes each, which still
// takes as long.
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

// appendTo adds the entries to others.
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
