package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/findings/printout"
)

// shownAlias is a former name of a rule as the API returns it.
type shownAlias struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Name      string `json:"name"`
	Canonical string `json:"canonical"`
	Source    string `json:"source"`
	CreatedAt string `json:"createdAt"`
}

func newRulesAlias(std streams) *cobra.Command {
	var flags clientFlags
	var tool string
	cmd := &cobra.Command{
		Use:   "alias OLD NEW --tool TOOL",
		Short: "Register the new name of a rule, so that its findings keep their identity",
		Long: `Register the new name of a tool's rule. The next scan matches findings of the new name to findings of the old name:
triage, comments and history are kept. Aliases do not form chains: aliases of the old name are redirected to the new
one.`,
		Example: `  palisade rules alias G104 errors.unhandled --tool gosec
  palisade rules alias acme.eval acme.python.eval --tool semgrep`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("want the old and the new name of a rule, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			book, err := openRulebook(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var answer struct{ Alias shownAlias }
			body := map[string]string{"tool": tool, "name": args[0], "canonical": args[1]}
			if _, err := book.call(cmd.Context(), http.MethodPost, nil, body, &answer, "aliases"); err != nil {
				return err
			}
			a := answer.Alias
			_, err = fmt.Fprintf(std.out, "%s of %s is now %s\n", printable(a.Name), printable(a.Tool), printable(a.Canonical))
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "name of the tool, as its reports have it (required)")
	_ = cmd.MarkFlagRequired("tool")
	return cmd
}

func newRulesUnalias(std streams) *cobra.Command {
	var flags clientFlags
	var tool string
	cmd := &cobra.Command{
		Use:     "unalias OLD --tool TOOL",
		Short:   "Delete an old name of a rule; findings that were matched by it stay matched",
		Example: "  palisade rules unalias G104 --tool gosec",
		Args:    exactlyOne("the old name of a rule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			book, err := openRulebook(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			all, _, err := book.aliases(cmd.Context(), tool, &listing{})
			if err != nil {
				return err
			}
			for _, a := range all {
				if a.Name != args[0] {
					continue
				}
				if _, err := book.call(cmd.Context(), http.MethodDelete, nil, nil, &json.RawMessage{}, "aliases", a.ID); err != nil {
					return err
				}
				_, err := fmt.Fprintf(std.out, "%s of %s is no longer an alias\n", printable(a.Name), printable(a.Tool))
				return err
			}
			return fmt.Errorf("%s of %s is not an alias; see: palisade rules aliases --tool %s", printable(args[0]), printable(tool), printable(tool))
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "name of the tool (required)")
	_ = cmd.MarkFlagRequired("tool")
	return cmd
}

func newRulesAliases(std streams) *cobra.Command {
	var flags clientFlags
	var l listing
	var tool string
	cmd := &cobra.Command{
		Use:     "aliases",
		Short:   "List the old names of rules",
		Example: "  palisade rules aliases --tool gosec",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			book, err := openRulebook(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			all, more, err := book.aliases(cmd.Context(), tool, &l)
			if err != nil {
				return err
			}
			if l.output == "json" {
				if err := json.NewEncoder(std.out).Encode(map[string]any{"aliases": all}); err != nil {
					return err
				}
				return l.more(std, more)
			}
			table := printout.NewTable(std.out)
			_, _ = fmt.Fprintln(table, "TOOL\tOLD NAME\tNAME\tSAID BY")
			for _, a := range all {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", printable(a.Tool), printable(a.Name), printable(a.Canonical), plain(a.Source, "RULE_ALIAS_SOURCE_"))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			return l.more(std, more)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "only aliases of this tool")
	cmd.Flags().StringVarP(&l.output, "output", "o", "table", "table or json")
	l.addLimit(cmd, "names")
	return cmd
}

// aliases reads the aliases of a tool; "" means all tools. more says that the limit left some out.
func (b *rulebook) aliases(ctx context.Context, tool string, l *listing) (list []shownAlias, more bool, err error) {
	list = []shownAlias{}
	for cursor := ""; ; {
		query := url.Values{"limit": {strconv.Itoa(l.next(len(list), 1000))}}
		for key, value := range map[string]string{"tool": tool, "cursor": cursor} {
			if value != "" {
				query.Set(key, value)
			}
		}
		var page struct {
			Aliases []shownAlias
			Cursor  string
		}
		if _, err := b.call(ctx, http.MethodGet, query, nil, &page, "aliases"); err != nil {
			return nil, false, err
		}
		list = append(list, page.Aliases...)
		if cursor = page.Cursor; cursor == "" || l.next(len(list), 1) <= 0 {
			return list, cursor != "", nil
		}
	}
}
