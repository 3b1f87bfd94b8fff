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

	"github.com/palisade/palisade/services/findings/printout"
)

func newRules(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Manage the rules of scanners, and the modes of their findings",
		Long: `Scanners that get their configuration from this server run the rules of the deployment. Rules come from YAML or JSON
files with a list under the key rules; a starter set ships with the product. Each rule has a mode: monitor lists its
findings, comment also shows them to the authors of pull requests, block also fails the scan, off withholds the rule
from scanners. See docs/rules.md.`,
		Example: `  palisade rules validate ./rules                  # needs no server
  palisade rules import ./rules
  palisade rules mode block acme.python.eval 'acme.go.*'
  palisade rules list --product sast --mode block`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRulesImport(std), newRulesValidate(std), newRulesList(std), newRulesShow(std), newRulesMode(std), newRulesRelease(std), newRulesDelete(std),
		newRulesAlias(std), newRulesUnalias(std), newRulesAliases(std))
	return cmd
}

// shownRule is a rule as the API returns it.
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
	Quarantine *struct {
		Reason string `json:"reason"`
		ScanID string `json:"scanId"`
		Since  string `json:"since"`
	} `json:"quarantine,omitempty"`
}

// mode says what happens to the rule's findings.
func (r *shownRule) mode() string {
	if r.Quarantine != nil {
		return plain(r.Mode, "RULE_MODE_") + ", quarantined"
	}
	return plain(r.Mode, "RULE_MODE_")
}

// plain removes the prefix of an API word: block for RULE_MODE_BLOCK.
func plain(word, prefix string) string {
	return printable(strings.ToLower(strings.TrimPrefix(word, prefix)))
}

func printRules(out io.Writer, rules []shownRule) error {
	table := printout.NewTable(out)
	_, _ = fmt.Fprintln(table, "NAME\tMODE\tPRODUCT\tSEVERITY\tLANGUAGES\tORIGIN\tVERSION")
	for _, r := range rules {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", printable(r.Name), r.mode(), plain(r.Product, "RULE_PRODUCT_"),
			printable(r.Severity), printable(strings.Join(r.Languages, ",")), plain(r.Origin, "RULE_ORIGIN_"), r.Version)
	}
	return table.Flush()
}

// rulebook calls the rules API of one deployment.
type rulebook struct{ *deploymentClient }

func openRulebook(ctx context.Context, flags clientFlags, std streams) (*rulebook, error) {
	d, err := openDeployment(ctx, flags, std)
	return &rulebook{d}, err
}

// call sends a request; body may be nil. It returns the raw response, and decodes it into result.
func (b *rulebook) call(ctx context.Context, method string, query url.Values, body, result any, path ...string) (json.RawMessage, error) {
	return b.ask(ctx, method, "api/rules/v1", query, body, result, path...)
}

// rulesFilter has the filters of the list.
type rulesFilter struct {
	products, modes, origins []string
	language, query          string
	quarantined              bool
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
	if f.quarantined {
		values.Set("quarantined", "true")
	}
	return values
}

// list reads pages until it has limit rules, and says whether there are more; 0 means no limit.
func (b *rulebook) list(ctx context.Context, filter rulesFilter, limit int) (list []shownRule, more bool, err error) {
	const most = 1000 // page size
	list = []shownRule{}
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
			return nil, false, err
		}
		list = append(list, page.Rules...)
		if cursor = page.Cursor; cursor == "" || limit > 0 && len(list) >= limit {
			return list, cursor != "", nil
		}
	}
}
