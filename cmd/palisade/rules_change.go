package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

var ruleModes = []string{"monitor", "comment", "block", "off"}

func newRulesMode(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	cmd := &cobra.Command{
		Use:   "mode MODE NAME…",
		Short: "Set the mode of rules",
		Long: `Set the mode of rules, from the next scan on: monitor lists their findings, comment also shows them to the authors of
pull requests, block also fails the scan, off withholds the rules from scanners. A * in a name matches any text; quote
such names. If a name is unknown, nothing changes.`,
		Example: `  palisade rules mode block palisade.python.command-injection
  palisade rules mode off 'palisade.java.*' acme.go.unsafe`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("want a mode (%s) and the names of rules, got %d arguments", strings.Join(ruleModes, ", "), len(args))
			}
			return oneOfArgs("mode", args[0], ruleModes)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			book, err := openRulebook(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			names, err := book.matching(cmd, args[1:])
			if err != nil {
				return err
			}
			var answer struct{ Rules []shownRule }
			body := map[string]any{"names": names, "mode": "RULE_MODE_" + strings.ToUpper(args[0])}
			raw, err := book.call(cmd.Context(), http.MethodPatch, nil, body, &answer, "rules")
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(std.out, raw)
			}
			return printRules(std.out, answer.Rules)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// oneOfArgs validates an argument with a few allowed words.
func oneOfArgs(what, got string, allowed []string) error {
	for _, word := range allowed {
		if got == word {
			return nil
		}
	}
	return usagef("%s: got %q, want %s", what, got, strings.Join(allowed, ", "))
}

// matching expands names that contain * to the matching rule names.
func (b *rulebook) matching(cmd *cobra.Command, names []string) ([]string, error) {
	var out []string
	var all []shownRule
	for _, name := range names {
		if !strings.Contains(name, "*") {
			out = append(out, name)
			continue
		}
		if all == nil {
			var err error
			if all, _, err = b.list(cmd.Context(), rulesFilter{}, 0); err != nil {
				return nil, err
			}
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*") + "$")
		before := len(out)
		for _, rule := range all {
			if pattern.MatchString(rule.Name) {
				out = append(out, rule.Name)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("there is no rule %s", printable(name))
		}
	}
	return out, nil
}

func newRulesRelease(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "release NAME…",
		Short: "End the quarantine of rules",
		Long: `End the quarantine of rules, which a scanner could not load: the next scan gets them again. Reports of scans no longer
quarantine their present versions. A * in a name matches any text; quote such names.`,
		Example: `  palisade rules list --quarantined
  palisade rules release acme.python.eval`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs the name of a rule; see: palisade rules list --quarantined", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			book, err := openRulebook(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			names, err := book.matching(cmd, args)
			if err != nil {
				return err
			}
			var answer struct{ Rules []shownRule }
			if _, err := book.call(cmd.Context(), http.MethodPost, nil, map[string]any{"names": names}, &answer, "released-rules"); err != nil {
				return err
			}
			return printRules(std.out, answer.Rules)
		},
	}
	flags.add(cmd)
	return cmd
}

func newRulesDelete(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "delete NAME…",
		Short: "Delete rules",
		Long: `Delete rules: scanners no longer get them, and the next full scan removes their findings. To keep a rule without
running it, turn it off: palisade rules mode off NAME.`,
		Example: "  palisade rules delete acme.python.eval",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs the name of a rule; see: palisade rules list", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			book, err := openRulebook(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			for _, name := range args {
				if _, err := book.call(cmd.Context(), http.MethodDelete, nil, nil, &json.RawMessage{}, "rules", name); err != nil {
					return err
				}
				_, _ = fmt.Fprintf(std.out, "%s: deleted\n", printable(name))
			}
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}
