package list

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
)

// chosen are the conditions of a filter in the form that the database serves best. With projects a page is put together
// from theirs.
type chosen struct {
	filter   *Filter
	where    []predicate.Finding
	projects []int64
}

// choose gives the conditions of a filter their form. With dedup a finding that several refs have is there once.
func (l *Lister) choose(ctx context.Context, f *Filter, list []condition, dedup bool) (chosen, error) {
	projects, err := f.heads(ctx, l.store.Reader, list)
	if err != nil {
		return chosen{}, err
	}
	c := chosen{filter: f, projects: projects}
	switch {
	case projects != nil:
		c.where = f.ofHeads(list)
	case l.store.Postgres():
		c.where = f.merged(list)
	default:
		c.where = f.plain(list)
	}
	if dedup {
		c.where = append(c.where, firstOfIdentity(f.plain(list)))
	}
	return c, nil
}

// and adds conditions.
func (c chosen) and(more ...predicate.Finding) chosen {
	c.where = append(slices.Clip(c.where), more...)
	return c
}

// newest queries so many of the newest findings.
func (c chosen) newest(db *ent.Client, rows int) *ent.FindingQuery {
	where := c.where
	if c.projects != nil {
		where = []predicate.Finding{newestOfEach(c.projects, rows, c.where)}
	}
	return db.Finding.Query().Where(where...).Order(newest(rows))
}
