package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/findings/printout"
	"github.com/palisade/palisade/services/scans/formats"
)

func newFormats(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "formats",
		Short: "List the formats of reports, and teach the server new ones",
		Long: `The server recognises the format of a report by its content. For a JSON format that it does not know, write a mapping:
a YAML file that says where the results are, and where each fact of a result is. Test it with a report, then add it to
the deployment. See docs/report-formats.md.`,
		Example: `  palisade formats list
  palisade formats test report.json --mapping acme-lint.yaml   # needs no server
  palisade formats add acme-lint.yaml
  palisade upload report.json --project acme/web --ref main`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFormatsList(std), newFormatsAdd(std), newFormatsDelete(std), newFormatsTest(std))
	return cmd
}

// shownFormat is a format as the API returns it.
type shownFormat struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Mapping   string `json:"mapping"`
	CreatedAt string `json:"createdAt,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"`
}

// callFormats calls the API of report formats.
func callFormats(ctx context.Context, flags clientFlags, std streams, method string, body, result any, path ...string) error {
	d, err := openDeployment(ctx, flags, std)
	if err != nil {
		return err
	}
	_, err = d.ask(ctx, method, "api/scans/v1", url.Values{}, body, result, append([]string{"report-formats"}, path...)...)
	return err
}

func newFormatsList(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the formats that uploads may have",
		Example: `  palisade formats list
  palisade formats list -o json | jq -r '.formats[] | select(.name == "acme-lint") | .mapping'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			var answer struct {
				Formats []shownFormat `json:"formats"`
			}
			if err := callFormats(cmd.Context(), flags, std, http.MethodGet, nil, &answer); err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(std.out).Encode(answer)
			}
			table := printout.NewTable(std.out)
			_, _ = fmt.Fprintln(table, "NAME\tTITLE\tREAD BY\tUPDATED")
			for _, f := range answer.Formats {
				by := "Palisade"
				if f.Mapping != "" {
					by = "a mapping"
				}
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", printable(f.Name), printable(f.Title), by, printable(f.UpdatedAt))
			}
			return table.Flush()
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func newFormatsAdd(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:     "add FILE",
		Short:   "Add a mapping to the deployment, or replace the one of the same name",
		Example: "  palisade formats add acme-lint.yaml",
		Args:    exactlyOne("a file with a mapping"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, _, err := readMapping(args[0])
			if err != nil {
				return err
			}
			var answer struct{ Format shownFormat }
			body := map[string]string{"mapping": string(text)}
			if err := callFormats(cmd.Context(), flags, std, http.MethodPost, body, &answer); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "uploads may now have the format %s\n", printable(answer.Format.Name))
			return err
		},
	}
	flags.add(cmd)
	return cmd
}

func newFormatsDelete(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a mapping; findings of its reports stay",
		Example: "  palisade formats delete acme-lint",
		Args:    exactlyOne("the name of a mapping"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := callFormats(cmd.Context(), flags, std, http.MethodDelete, nil, &json.RawMessage{}, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(std.out, "%s is deleted\n", printable(args[0]))
			return err
		},
	}
	flags.add(cmd)
	return cmd
}

// readMapping reads a file and checks it, so that errors name the file and the line.
func readMapping(name string) ([]byte, *formats.Mapping, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	mapping, err := formats.ParseMapping(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", printable(name), err)
	}
	return text, mapping, nil
}
