package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	// skewedFilters is the number of random filters, each requested skewedRequests times.
	skewedFilters  = 600
	skewedRequests = 3
)

// filter returns a random list query with one to four documented parameters. Half of the values are drawn with the
// distribution of the findings, so mostly frequent ones; half uniformly, so mostly rare ones.
func (s *skew) filter() url.Values {
	query := url.Values{"page_size": {"100"}}
	word := func(parameter string, list []string) {
		if s.IntN(2) == 0 {
			query.Set(parameter, s.word(list))
		} else {
			query.Set(parameter, list[s.IntN(len(list))])
		}
	}
	named := func(parameter string, n int, name func(int) string) {
		if s.IntN(2) == 0 {
			query.Add(parameter, name(s.below(n)))
		} else {
			query.Add(parameter, name(s.IntN(n)))
		}
	}
	prefixed := func(prefix string) func(int) string { return func(n int) string { return prefix + strconv.Itoa(n) } }
	conditions := []func(){
		func() { word("status", skewedStatuses) },
		func() { word("severities", skewedSeverities) },
		func() { named("repos", skewedProjects, prefixed("bench/skewed-")) },
		func() { named("ref", skewedRefs, func(n int) string { return skewedRef(n) }) },
		func() { named("component_tags", skewedTags, prefixed("tag-")) },
		func() { word("severities", skewedSeverities); query.Add("severities", s.word(skewedSeverities)) },
		func() {
			named("repos", skewedProjects, prefixed("bench/skewed-"))
			named("repos", skewedProjects, prefixed("bench/skewed-"))
		},
		func() {
			named("component_tags", skewedTags, prefixed("tag-"))
			named("component_tags", skewedTags, prefixed("tag-"))
		},
		func() { query.Set("dedup", "true") },
	}
	switch kind := []string{"sast", "sast", "sca", "ai_sast"}[s.IntN(4)]; kind {
	case "sast":
		conditions = append(conditions,
			func() { named("rules", skewedRules, prefixed("fill.rule-")) },
			func() {
				named("rules", skewedRules, prefixed("fill.rule-"))
				named("rules", skewedRules, prefixed("fill.rule-"))
			},
			func() { query.Set("confidence", "low") },
			func() { word("policies", skewedPolicies) },
			func() { word("autotriage_verdict", skewedVerdicts) },
			func() { word("click_to_fix_pr_state", skewedFixes) },
		)
	case "sca":
		query.Set("issue_type", kind)
		conditions = append(conditions,
			func() { word("exposures", skewedExposures) },
			func() { word("transitivities", skewedWays) },
			func() { query.Set("is_malicious", "true") },
			func() { word("click_to_fix_pr_state", skewedFixes) },
		)
	default:
		query.Set("issue_type", kind)
	}
	for _, i := range s.Perm(len(conditions))[:1+s.IntN(4)] {
		conditions[i]()
	}
	return query
}

// measureSkewed requests lists with random filters in a separate store with skewed values: a few values have many
// findings, most have few. It supports only SQLite: PostgreSQL has statistics of frequent values and combines indexes.
func (b *bench) measureSkewed(ctx context.Context) (rows []row, err error) {
	if b.db.postgres() {
		return nil, nil
	}
	data := filepath.Join(b.dir, "skewed")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	settings := childSettings{Data: data, Token: b.token}
	b.progress("skewed: fill %d findings", b.findings)
	err = b.fillStore(ctx, settings, func(db *database) error { return b.fillSkewed(ctx, db, b.findings) })
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, rolePalisade, settings, b.stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	c := newClient(server.ready.HTTP, b.token, 1)
	defer c.close()
	return b.askSkewed(ctx, c)
}

func (b *bench) askSkewed(ctx context.Context, c *client) ([]row, error) {
	draw := newSkew(2)
	cases := make([]*filterCase, skewedFilters)
	for i := range cases {
		cases[i] = &filterCase{path: "/" + deployment + "/findings?" + draw.filter().Encode()}
	}
	if err := b.askLists(ctx, c, skewedRequests, cases); err != nil {
		return nil, err
	}
	all := make([]float64, 0, len(cases)*skewedRequests)
	for _, one := range cases {
		all = append(all, one.wait...)
	}
	slices.Sort(all)
	return []row{{
		what: "random filters of skewed findings: p95", value: sample{nthPercent(all, 95)}, unit: millis, bar: within(filterBar, "ms"),
		note: fmt.Sprintf("%d lists, each %d times; p50 %.1f ms, p99 %.1f ms, slowest %.1f ms: %s",
			len(cases), skewedRequests, nthPercent(all, 50), nthPercent(all, 99), all[len(all)-1], cases[0].name()),
	}}, nil
}
