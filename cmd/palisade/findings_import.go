package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

func newFindingsImport(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import findings from an NDJSON export, with their decisions and history",
		Long: `Import a file of "palisade findings export --format ndjson": its projects, rules, scans and findings, with
decisions, history and identity. Use it to move findings to another server or deployment. Scans after
the import recognise the findings, so decisions last.

Findings that exist are left as they are. So an import that was interrupted can be repeated, and
importing into a deployment that is in use changes none of its findings. Decisions keep the names of their
authors. The token needs the role of an administrator. "-" reads standard input; gzip files are sent as they are.`,
		Example: `  palisade findings import backup.ndjson.gz --server https://new.acme.test
  palisade findings export --format ndjson -o - | palisade findings import - --server https://new.acme.test --token "$NEW_TOKEN"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("want one file, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runImport(cmd.Context(), std, flags, args[0]) },
	}
	flags.add(cmd)
	return cmd
}

func runImport(ctx context.Context, std streams, flags clientFlags, name string) error {
	c, err := flags.newClient(std)
	if err != nil {
		return err
	}
	deployment, err := c.resolveDeployment(ctx, flags.deployment)
	if err != nil {
		return err
	}
	file, err := openReport(std, name)
	if err != nil {
		return fmt.Errorf("%s: %w", printable(name), err)
	}
	defer file.close()
	body := file.compressed()
	req, err := c.request(ctx, http.MethodPost, nil, body, "api", "agent", "deployments", url.PathEscape(deployment), "findings", "import")
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("Expect", "100-continue")
	var done findingsv1.ImportFindingsResponse
	var raw json.RawMessage
	err = c.do(req, &raw)
	_ = body.Close() // ends the compressor, after which the file's error is final
	file.finish()
	if failure := file.readError(); err != nil && failure != nil {
		return failure
	}
	if err != nil {
		return err
	}
	if err := decode(raw, &done); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%d findings imported, %d existed; %d projects, %d rules and %d scans are new\n",
		done.GetFindings(), done.GetExisting(), done.GetProjects(), done.GetRules(), done.GetScans())
	return err
}
