package list

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/issuefilter"
)

// queryPlan holds the conditions of a filter in the form that the database executes fastest. With projects, a page is
// merged from the newest findings of each of them.
type queryPlan struct {
	filter   *Filter
	where    []predicate.Finding
	projects []int64
}

// plan returns the query plan of a filter. With dedup, a finding that exists on several refs is listed once.
func (l *Lister) plan(ctx context.Context, f *Filter, list []issuefilter.Condition, dedup bool) (queryPlan, error) {
	projects, err := f.topNProjects(ctx, l.store.Reader, list)
	if err != nil {
		return queryPlan{}, err
	}
	q := queryPlan{filter: f, projects: projects}
	switch {
	case projects != nil:
		q.where = f.topNPredicates(list)
	case l.store.Postgres():
		q.where = f.merged(list)
	default:
		q.where = f.plain(list)
	}
	if dedup {
		q.where = append(q.where, firstOfIdentity(f.plain(list)))
	}
	return q, nil
}

// and adds conditions.
func (q queryPlan) and(more ...predicate.Finding) queryPlan {
	q.where = append(slices.Clip(q.where), more...)
	return q
}

// newest queries the newest findings. The caller reads at most rows of them.
func (q queryPlan) newest(db *ent.Client, rows int) *ent.FindingQuery {
	where := q.where
	if q.projects != nil {
		where = []predicate.Finding{topNPerProject(q.projects, rows, q.where)}
	}
	return db.Finding.Query().Where(where...).Order(newest(rows))
}
