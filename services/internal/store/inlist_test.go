package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// TestListsOfAnyLength: lists of any length match exactly their values, with any characters in a text.
func TestListsOfAnyLength(t *testing.T) {
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		ctx := tenant.NewContext(t.Context(), 1)
		stored := []string{`a`, `"quoted"`, `back\slash`, `comma, {brace}`, `NULL`, " blank ", "line\nbreak", "ä𝄞<&>", "'single'"}
		var ids []int64
		err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			ids = nil
			for i, name := range stored {
				row, err := tx.Tag.Create().SetName(name).SetCreatedAt(int64(i) + 1).Save(ctx)
				if err != nil {
					return err
				}
				ids = append(ids, row.ID)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(stored)
		find := func(what string, where func(*entsql.Selector), want []string) {
			t.Helper()
			got, err := st.Reader.Tag.Query().Where(where).Select(tag.FieldName).Strings(ctx)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
			}
		}
		for _, n := range []int{0, 1, 100, 101, testrun.Size(33_000, 100_000)} {
			others, otherIDs := make([]string, n), make([]int64, n)
			for i := range n {
				others[i], otherIDs[i] = fmt.Sprintf("other %d", i), int64(i)+1<<40
			}
			names, withIDs := append(others, stored...), append(otherIDs, ids...)
			find("names", store.OneOf(tag.FieldName, names), stored)
			find("names behind IN", func(s *entsql.Selector) {
				s.Where(entsql.P(func(b *entsql.Builder) { b.Ident(s.C(tag.FieldName)).WriteString(" IN ").Join(store.List(names)) }))
			}, stored)
			find("ids", store.OneOf(tag.FieldID, withIDs), stored)
			find("few columns", store.OneOf(tag.FieldCreatedAt, append(otherIDs, 1, 2)), []string{`"quoted"`, `a`})
			find("no names", store.OneOf(tag.FieldName, others), nil)
			find("all but names", store.NoneOf(tag.FieldName, append(others, stored[1:]...)), stored[:1])
			find("all but others", store.NoneOf(tag.FieldName, others), stored)
			find("one parameter", func(s *entsql.Selector) { s.Where(store.InOneParameter(s.C(tag.FieldName), names)) }, stored)
		}
		find("no name behind IN", func(s *entsql.Selector) {
			s.Where(entsql.P(func(b *entsql.Builder) {
				b.Ident(s.C(tag.FieldName)).WriteString(" IN ").Join(store.List([]string{}))
			}))
		}, nil)
		long := []string{strings.Repeat("x", 1<<20)}
		find("a long text", store.OneOf(tag.FieldName, slices.Repeat(long, 101)), nil)
	})
}
