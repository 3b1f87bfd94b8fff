package packages

import (
	"cmp"
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/supplychain/matching"
)

// affected is a place with an advisory about it.
type affected struct {
	place *Place
	by    *matching.Hit
}

// Match writes the problems that the advisories of the context's deployment name in packages, and returns their number.
// Advisories that are withdrawn do not count.
func Match(ctx context.Context, db *ent.Client, places []Place, w *formats.Writer) (n int, err error) {
	wanted := make([]matching.Package, len(places))
	for i, p := range places {
		wanted[i], _ = matching.Normal(p.Ecosystem, p.Name, p.Version)
	}
	hits, err := matching.Find(ctx, db, wanted)
	if err != nil {
		return 0, err
	}
	var found []affected
	var ids []int64
	for i := range places {
		by, err := hits.Affecting(wanted[i])
		if err != nil {
			return 0, err
		}
		for _, hit := range by {
			if !hit.Withdrawn {
				found, ids = append(found, affected{&places[i], hit}), append(ids, hit.ID)
			}
		}
	}
	slices.Sort(ids)
	details, err := matching.Details(ctx, db, slices.Compact(ids))
	if err != nil {
		return 0, err
	}
	for len(found) > 0 {
		same := slices.IndexFunc(found, func(a affected) bool { return a.place != found[0].place })
		if same < 0 {
			same = len(found)
		}
		for _, r := range results(found[:same], details) {
			if err := w.Result(r); err != nil {
				return n, err
			}
			n++
		}
		found = found[same:]
	}
	return n, nil
}

// results are the problems of one place: advisories that share an identifier are one problem.
func results(found []affected, details map[int64]*storev1.AdvisoryDetails) (list []*formats.Result) {
	var groups [][]advisory
	for _, a := range found {
		next := []advisory{{a.by, details[a.by.ID]}}
		groups = slices.DeleteFunc(groups, func(g []advisory) bool {
			if !overlap(g, next) {
				return false
			}
			next = append(g, next...)
			return true
		})
		groups = append(groups, next)
	}
	for _, g := range groups {
		list = append(list, result(found[0].place, g))
	}
	return list
}

// advisory is an advisory with its details, which may be nil.
type advisory struct {
	*matching.Hit
	details *storev1.AdvisoryDetails
}

func (a advisory) ids() []string { return append([]string{a.OsvID}, a.details.GetAliases()...) }

func ids(group []advisory) (all []string) {
	for _, a := range group {
		all = append(all, a.ids()...)
	}
	return formats.SortAdvisories(all)
}

func overlap(a, b []advisory) bool {
	of := ids(a)
	return slices.ContainsFunc(ids(b), func(id string) bool { return slices.Contains(of, id) })
}

// result is the problem as OSV-Scanner reports it.
func result(p *Place, group []advisory) *formats.Result {
	v, malicious := formats.Vulnerability{IDs: ids(group)}, false
	for _, a := range group {
		malicious = malicious || a.Malicious
		v.ID, v.Summary, v.Details = cmp.Or(v.ID, a.OsvID), cmp.Or(v.Summary, a.Title), cmp.Or(v.Details, a.details.GetText())
		v.Severity, v.Score = cmp.Or(v.Severity, a.details.GetSeverity()), cmp.Or(v.Score, a.details.GetCvss())
		v.CWE, v.References = append(v.CWE, a.details.GetCwe()...), append(v.References, a.details.GetReferences()...)
		v.Upstream, v.Fixed = append(v.Upstream, a.details.GetUpstream()...), append(v.Fixed, a.Fixed()...)
	}
	if malicious {
		v.Severity = "critical"
	}
	slices.Sort(v.Fixed)
	v.Fixed = slices.Compact(v.Fixed)
	out := v.Result(&formats.Package{
		Name: p.Name, Version: p.Version, Ecosystem: p.Ecosystem, Transitivity: p.Transitivity, Malicious: malicious, Lockfile: p.Lockfile, LockfileLine: p.Line,
	})
	out.Path, out.Line = p.Lockfile, p.Line
	return out
}
