package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/findings/printout"
	"github.com/palisade/palisade/services/rules/ruleset"
)

func newRulesList(std streams) *cobra.Command {
	var flags clientFlags
	var filter rulesFilter
	var output string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the rules of the deployment, oldest first",
		Example: `  palisade rules list --mode block,comment
  palisade rules list --language ts --query injection
  palisade rules list -o json | jq -r '.rules[] | select(.severity == "ERROR") | .name'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			if limit < 0 {
				return usagef("--limit: got %d, want at least 0", limit)
			}
			book, err := openRulebook(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			list, more, err := book.list(cmd.Context(), filter, limit)
			if err != nil {
				return err
			}
			if output == "json" {
				err = json.NewEncoder(std.out).Encode(map[string]any{"rules": list})
			} else {
				err = printRules(std.out, list)
			}
			if filter.quarantined && output == "table" {
				_, _ = fmt.Fprint(std.err, quarantineLimit(list))
			}
			rows := listing{output: output, limit: limit}
			return errors.Join(err, rows.more(std, more))
		},
	}
	flags.add(cmd)
	cmd.Flags().StringSliceVar(&filter.products, "product", nil, "only rules of these products: sast, sca, secrets")
	cmd.Flags().StringSliceVar(&filter.modes, "mode", nil, "only rules in these modes: monitor, comment, block, off")
	cmd.Flags().StringSliceVar(&filter.origins, "origin", nil, "only rules of these origins: starter, import, publish")
	cmd.Flags().StringVar(&filter.language, "language", "", "only rules of this language: python, go, ts, …")
	cmd.Flags().StringVar(&filter.query, "query", "", "only rules with this text in their name")
	cmd.Flags().BoolVar(&filter.quarantined, "quarantined", false, "only rules in quarantine: scans do not get them")
	cmd.Flags().IntVar(&limit, "limit", 0, "maximum number of rules; 0: all; exit status 4 if there are more")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// quarantineLimit says that the rules in quarantine reach the limit; empty if they do not.
func quarantineLimit(quarantined []shownRule) string {
	if len(quarantined) < ruleset.MaxQuarantined {
		return ""
	}
	return fmt.Sprintf("the limit of %d rules in quarantine is reached: scans get further broken rules\n", ruleset.MaxQuarantined)
}

// shownRuleDetails is the response for one rule.
type shownRuleDetails struct {
	Rule     shownRule
	Document json.RawMessage
	Versions []struct {
		ID        string `json:"id"`
		Version   int32  `json:"version"`
		Digest    string `json:"digest"`
		CreatedAt string `json:"createdAt"`
	}
}

func newRulesShow(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	var document bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a rule: its state, its document and its versions",
		Example: `  palisade rules show palisade.python.command-injection
  palisade rules show acme.python.eval --document > eval.json   # a file to edit and import`,
		Args: exactlyOne("the name of a rule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			book, err := openRulebook(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var answer shownRuleDetails
			raw, err := book.call(cmd.Context(), http.MethodGet, nil, nil, &answer, "rules", args[0])
			switch {
			case err != nil:
				return err
			case document:
				return printDocument(std.out, []byte(`{"rules":[`+string(answer.Document)+`]}`))
			case output == "json":
				return printJSON(std.out, raw)
			}
			return answer.print(std.out)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&document, "document", false, "print only the rule, as a file that can be imported")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	cmd.MarkFlagsMutuallyExclusive("document", "output")
	return cmd
}

// printDocument pretty-prints JSON.
func printDocument(out io.Writer, raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, b.String())
	return err
}

func (s *shownRuleDetails) print(out io.Writer) error {
	r := s.Rule
	_, _ = fmt.Fprintf(out, "%s: mode %s, version %d, %s, severity %s, %s, origin %s\n", printable(r.Name), r.mode(), r.Version,
		plain(r.Product, "RULE_PRODUCT_"), printable(r.Severity), printable(strings.Join(r.Languages, ", ")), plain(r.Origin, "RULE_ORIGIN_"))
	if q := r.Quarantine; q != nil {
		_, _ = fmt.Fprintf(out, "in quarantine since %s, by scan %s: %s\nimport a corrected version, or, if it is right: palisade rules release %s\n",
			printable(q.Since), printable(q.ScanID), printable(q.Reason), printable(r.Name))
	}
	if err := printDocument(out, s.Document); err != nil {
		return err
	}
	table := printout.NewTable(out)
	_, _ = fmt.Fprintln(table, "VERSION\tSTORED\tDIGEST")
	for _, v := range s.Versions {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%.12s\n", v.Version, printable(v.CreatedAt), printable(v.Digest))
	}
	return table.Flush()
}
