package snapshots

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/palisade/palisade/services/findings/columns"
)

// joined joins findings with their histories, both sorted by id. The transitions of a row are valid until the next
// call.
func joined(rows *cursor[columns.Row], history *cursor[event]) func() (columns.Row, bool) {
	var transitions []columns.Transition
	return func() (columns.Row, bool) {
		first := rows.peek()
		if first == nil {
			return columns.Row{}, false
		}
		r := *first
		rows.batch = rows.batch[1:]
		transitions = transitions[:0]
		for e := history.peek(); e != nil && e.finding <= r.ID; e = history.peek() {
			if e.finding == r.ID {
				transitions = append(transitions, e.Transition)
			}
			history.batch = history.batch[1:]
		}
		r.Transitions = transitions
		return r, true
	}
}

// cursor iterates over rows that arrive in batches.
type cursor[T any] struct {
	batch []T
	more  <-chan []T // nil if batch is everything
}

func (c *cursor[T]) add(one T) error {
	c.batch = append(c.batch, one)
	return nil
}

// peek returns the next row without consuming it; nil at the end.
func (c *cursor[T]) peek() *T {
	for len(c.batch) == 0 {
		if c.more == nil {
			return nil
		}
		batch, ok := <-c.more
		if !ok {
			return nil
		}
		c.batch = batch
	}
	return &c.batch[0]
}

// batchSize is the number of rows passed between goroutines at a time.
const batchSize = 4096

// readBatches reads in a goroutine of the group, which receives its error.
func readBatches[T any](ctx context.Context, group *errgroup.Group, read func(give func(T) error) error) *cursor[T] {
	full := make(chan []T, 4)
	group.Go(func() error {
		defer close(full)
		batch := make([]T, 0, batchSize)
		send := func() error {
			select {
			case full <- batch:
				batch = make([]T, 0, batchSize)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := read(func(one T) error {
			if batch = append(batch, one); len(batch) < batchSize {
				return nil
			}
			return send()
		})
		if err != nil {
			return err
		}
		return send()
	})
	return &cursor[T]{more: full}
}
