package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// errMore ends a list with exit status 4: --limit left entries out.
var errMore = errors.New("there are more")

// listing has the flags of a list that the API returns in pages.
type listing struct {
	output string
	limit  int
	shown  int // rows of a table without --limit
}

func (l *listing) add(cmd *cobra.Command, shown int, noun string) {
	l.shown = shown
	cmd.Flags().IntVar(&l.limit, "limit", 0, fmt.Sprintf("maximum number of %s; exit status %d if there are more (default: %d in a table, all as JSON)", noun, exitMore, shown))
	cmd.Flags().StringVarP(&l.output, "output", "o", "table", "table or json")
}

func (l *listing) check(cmd *cobra.Command) error {
	if err := oneOf("output", l.output, "table", "json"); err != nil {
		return err
	}
	return checkLimit(cmd, l.limit)
}

func checkLimit(cmd *cobra.Command, limit int) error {
	if cmd.Flags().Changed("limit") && limit < 1 {
		return usagef("--limit: got %d, want at least 1", limit)
	}
	return nil
}

// addLimit adds --limit to a list that prints everything without it.
func (l *listing) addLimit(cmd *cobra.Command, noun string) {
	cmd.Flags().IntVar(&l.limit, "limit", 0, fmt.Sprintf("maximum number of %s; exit status %d if there are more (default: all)", noun, exitMore))
}

// next returns the size of the next page after some rows, at most a size; 0 if the limit is reached.
func (l *listing) next(rows, size int) int {
	if l.limit == 0 {
		return size
	}
	return min(size, l.limit-rows)
}

// size returns how many rows to read; 0 means all.
func (l *listing) size() int {
	if l.limit == 0 && l.output == "table" {
		return l.shown
	}
	return l.limit
}

// print reads pages of at most size rows, each with its rows in a field and the cursor of the next page. As JSON, it
// writes one object like a page as the pages arrive. A table gets all rows in one page.
func (l *listing) print(std streams, query url.Values, field string, size int, read func(url.Values) (json.RawMessage, error), table func(page json.RawMessage) error) error {
	var all bytes.Buffer
	out := io.Writer(&all)
	if l.output == "json" {
		out = std.out
	}
	cursor, err := l.pages(out, query, field, size, read)
	if err != nil {
		return err
	}
	if l.output == "table" {
		if err := table(all.Bytes()); err != nil {
			return err
		}
	}
	return l.more(std, cursor != "")
}

// pages writes one object with the rows of all pages and returns the cursor of the first row that is left out.
func (l *listing) pages(out io.Writer, query url.Values, field string, size int, read func(url.Values) (json.RawMessage, error)) (cursor string, err error) {
	rows, limit := 0, l.size()
	for begun := false; ; begun = true {
		query.Set("limit", strconv.Itoa(size))
		if limit > 0 {
			query.Set("limit", strconv.Itoa(min(size, limit-rows)))
		}
		raw, err := read(query)
		if err != nil {
			return "", err
		}
		var items []json.RawMessage
		if items, cursor, err = pageOf(raw, field); err != nil {
			return "", fmt.Errorf("unexpected response: %w", err)
		}
		if !begun {
			_, _ = fmt.Fprintf(out, `{"%s":[`, field)
		}
		for _, item := range items {
			if rows++; rows > 1 {
				item = append([]byte(","), item...)
			}
			if _, err := out.Write(item); err != nil {
				return "", err
			}
		}
		if cursor == "" || limit > 0 && rows >= limit {
			end, err := json.Marshal(cursor)
			if err == nil {
				_, err = fmt.Fprintf(out, "],\"cursor\":%s}\n", end)
			}
			return cursor, err
		}
		query.Set("cursor", cursor)
	}
}

func pageOf(raw json.RawMessage, field string) (items []json.RawMessage, cursor string, err error) {
	var page map[string]json.RawMessage
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, "", err
	}
	for name, into := range map[string]any{field: &items, "cursor": &cursor} {
		if text, there := page[name]; there {
			err = errors.Join(err, json.Unmarshal(text, into))
		}
	}
	return items, cursor, err
}

// more says that the list has more rows than were printed.
func (l *listing) more(std streams, more bool) error {
	if !more {
		return nil
	}
	_, _ = fmt.Fprintf(std.err, "There are more than %d: raise --limit, or leave it out with -o json for all.\n", l.size())
	if l.limit > 0 {
		return errMore
	}
	return nil
}
