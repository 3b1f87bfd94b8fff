package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/cmd/palisade/printout"
)

func newRules(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Import the rules that scanners get, and say what happens to their findings",
		Long: `Scanners that ask this server what to run get the rules of the deployment. They come from files in YAML or JSON with a list
under the key rules; a first set comes with the product. Each rule has a mode: monitor lists its findings, comment tells
them to the authors of pull requests as well, block fails the scan, off keeps the rule from scanners. See docs/rules.md.`,
		Example: `  palisade rules validate ./rules                  # needs no server
  palisade rules import ./rules
  palisade rules mode block acme.python.eval 'acme.go.*'
  palisade rules list --product sast --mode block`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRulesImport(std), newRulesValidate(std), newRulesList(std), newRulesShow(std), newRulesMode(std), newRulesDelete(std),
		newRulesAlias(std), newRulesUnalias(std), newRulesAliases(std))
	return cmd
}

// shownRule is a rule as the API answers it.
type shownRule struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Origin     string   `json:"origin"`
	Product    string   `json:"product"`
	Severity   string   `json:"severity"`
	Languages  []string `json:"languages"`
	Mode       string   `json:"mode"`
	Visibility string   `json:"visibility"`
	Version    int32    `json:"version"`
	CreatedAt  string   `json:"createdAt"`
	UpdatedAt  string   `json:"updatedAt"`
}

// plain is a word of the API without its prefix: block for RULE_MODE_BLOCK.
func plain(word, prefix string) string {
	return printable(strings.ToLower(strings.TrimPrefix(word, prefix)))
}

func printRules(out io.Writer, rules []shownRule) error {
	table := printout.NewTable(out)
	_, _ = fmt.Fprintln(table, "NAME\tMODE\tPRODUCT\tSEVERITY\tLANGUAGES\tORIGIN\tVERSION")
	for _, r := range rules {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", printable(r.Name), plain(r.Mode, "RULE_MODE_"), plain(r.Product, "RULE_PRODUCT_"),
			printable(r.Severity), printable(strings.Join(r.Languages, ",")), plain(r.Origin, "RULE_ORIGIN_"), r.Version)
	}
	return table.Flush()
}

// rulebook is the rules of one deployment.
type rulebook struct{ *deploymentClient }

func openRulebook(ctx context.Context, flags clientFlags, std streams) (*rulebook, error) {
	d, err := openDeployment(ctx, flags, std)
	return &rulebook{d}, err
}

// call sends a request; body may be nil. The answer comes back raw, and decoded into result.
func (b *rulebook) call(ctx context.Context, method string, query url.Values, body, result any, path ...string) (json.RawMessage, error) {
	return b.ask(ctx, method, "api/rules/v1", query, body, result, path...)
}

// rulesFilter is which rules are listed.
type rulesFilter struct {
	products, modes, origins []string
	language, query          string
}

func (f rulesFilter) values() url.Values {
	values := url.Values{}
	for key, list := range map[string][]string{"products": f.products, "modes": f.modes, "origins": f.origins} {
		for _, word := range list {
			values.Add(key, word)
		}
	}
	for key, value := range map[string]string{"language": f.language, "query": f.query} {
		if value != "" {
			values.Set(key, value)
		}
	}
	return values
}

// list reads as many pages as the limit takes; 0 is no limit.
func (b *rulebook) list(ctx context.Context, filter rulesFilter, limit int) ([]shownRule, error) {
	const most = 1000 // of one page
	list := []shownRule{}
	for cursor := ""; ; {
		query := filter.values()
		size := most
		if limit > 0 {
			size = min(limit-len(list), most)
		}
		query.Set("limit", strconv.Itoa(size))
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var page struct {
			Rules  []shownRule
			Cursor string
		}
		if _, err := b.call(ctx, http.MethodGet, query, nil, &page, "rules"); err != nil {
			return nil, err
		}
		list = append(list, page.Rules...)
		if cursor = page.Cursor; cursor == "" || limit > 0 && len(list) >= limit {
			return list, nil
		}
	}
}
