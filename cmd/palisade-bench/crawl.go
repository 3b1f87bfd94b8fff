package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
)

// crawlQuery is the list that is read during imports. It is long enough for several uploads.
var crawlQuery = pageQuery{Status: "open", Severity: "high", Size: 1000, Since: 7}

// measureCrawl reads a whole list while reports are imported. It counts the findings that existed before and were
// missed or returned twice.
func (b *bench) measureCrawl(ctx context.Context) ([]row, error) {
	before, err := b.idsOf(ctx, crawlQuery)
	if err != nil {
		return nil, err
	}
	crawl, stop := context.WithCancel(ctx)
	defer stop()
	imported := make(chan error, 1)
	var uploads atomic.Int64
	first := make(chan struct{})
	go func() { imported <- b.importUntil(crawl, &uploads, first) }()
	seen := map[int64]int{}
	select {
	case <-first:
		err = b.crawl(ctx, seen)
	case err = <-imported:
		imported <- nil
	}
	stop()
	err = errors.Join(err, <-imported)
	if err != nil {
		return nil, err
	}
	missed, doubled := 0, 0
	for id := range before {
		switch {
		case seen[id] == 0:
			missed++
		case seen[id] > 1:
			doubled++
		}
	}
	note := fmt.Sprintf("of %d, during %d uploads of %d", len(before), uploads.Load(), b.crawlResults())
	return []row{
		{what: "crawl during an import: missed", value: sample{float64(missed)}, unit: plainNumber, bar: always(0, " "), note: note},
		{what: "crawl during an import: doubled", value: sample{float64(doubled)}, unit: plainNumber, bar: always(0, " "), note: note},
	}, nil
}

func (b *bench) crawlResults() int { return min(advanceResults, b.results) }

// importUntil uploads new findings until ctx ends. It closes first after the first upload.
func (b *bench) importUntil(ctx context.Context, uploads *atomic.Int64, first chan<- struct{}) error {
	c := newClient(b.server.ready.HTTP, b.token, 1)
	defer c.close()
	for n := 0; ; n++ {
		report, err := makeReport(uint64(70_000+n), b.crawlResults())
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		// Not ctx: a started upload is completed.
		if _, err := c.upload(context.WithoutCancel(ctx), fmt.Sprintf("bench/crawl-%02d", n%10), "main", fmt.Sprintf("crawl-%d", n), report); err != nil {
			return err
		}
		b.stored += b.crawlResults()
		uploads.Add(1)
		if n == 0 {
			close(first)
		}
	}
}

// crawl reads all pages like a client that does not know about the imports.
func (b *bench) crawl(ctx context.Context, seen map[int64]int) error {
	for page := 0; ; page++ {
		q := crawlQuery
		q.Page = page
		body, err := b.client.page(ctx, q)
		if err != nil {
			return err
		}
		var answer struct {
			Findings []struct {
				ID int64 `json:"id"`
			} `json:"findings"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return fmt.Errorf("page %d: %w", page, err)
		}
		for _, f := range answer.Findings {
			seen[f.ID]++
		}
		if len(answer.Findings) < q.size() {
			return nil
		}
	}
}

// idsOf returns the ids of a list from the database.
func (b *bench) idsOf(ctx context.Context, q pageQuery) (_ map[int64]bool, err error) {
	rows, err := b.db.QueryContext(ctx, fmt.Sprintf("SELECT id FROM findings WHERE issue_type = 'sast' AND status = '%s' AND severity = '%s'", q.Status, q.Severity))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	ids := map[int64]bool{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids[id] = true
	}
	return ids, rows.Err()
}
