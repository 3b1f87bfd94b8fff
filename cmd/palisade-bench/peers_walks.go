package main

import (
	"context"
	"fmt"
)

// walksBefore is how many pages before the deep one a walk is joined.
const walksBefore = 50

// walks are clients that read page after page, each another list as far as the server can know: the "since" that makes it
// another one lets all findings pass.
type walks struct {
	client      *client
	first, last int // pages; behind the last a walk goes on with the first
	lists       int // that were asked for so far
	resting     chan *walkStep
}

// walkStep is where one walk is.
type walkStep struct{ since, page int }

// newWalks are as many as the client has connections.
func newWalks(client *client, deep, last int) *walks {
	w := &walks{client: client, first: max(1, deep-walksBefore), last: last, resting: make(chan *walkStep, manyConnections)}
	for range manyConnections {
		w.resting <- &walkStep{}
	}
	return w
}

// lay gives each walk a list that was never asked for, and reads the page before its first: all that the server knows of
// a list whose pages up to there were read is where that one ended.
func (w *walks) lay(ctx context.Context) error {
	for range cap(w.resting) {
		one := <-w.resting
		w.lists++
		*one = walkStep{since: w.lists, page: w.first}
		w.resting <- one
		if err := w.read(ctx, w.first-1, one.since); err != nil {
			return err
		}
	}
	return nil
}

// step reads the next page of one walk.
func (w *walks) step(ctx context.Context) error {
	one := <-w.resting
	page := one.page
	if one.page++; one.page > w.last {
		one.page = w.first
	}
	err := w.read(ctx, page, one.since)
	w.resting <- one // now: nobody reads two pages of a walk at once
	return err
}

func (w *walks) read(ctx context.Context, page, since int) error {
	return w.client.get(w.client.findingsPath(pageQuery{Status: "open", Page: page, Since: since}), "", 0)(ctx)
}

// span says which pages so many requests are.
func (w *walks) span(requests int) string {
	return fmt.Sprintf("pages %d to %d of %d walks", w.first, min(w.last, w.first+(requests-1)/cap(w.resting)), cap(w.resting))
}
