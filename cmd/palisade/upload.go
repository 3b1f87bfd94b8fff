package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/scans/formats"
)

type uploadOptions struct {
	client                                          clientFlags
	project, ref, commit, category, product, format string
	checkoutRoot, pathPrefix, repoURL, commitTime   string
	output, wait                                    string
	gate                                            bool
}

func newUpload(std streams) *cobra.Command {
	var o uploadOptions
	cmd := &cobra.Command{
		Use:   "upload FILE… --project NAME --ref REF",
		Short: "Upload scanner reports and print the outcome",
		Long: `Upload scanner reports (SARIF 2.1.0, or a format of --format) of one project and ref. Plain files are compressed while they are
uploaded, gzip files are sent unchanged, and "-" reads standard input. The output has, for each file, the
numbers of created, updated, unchanged, reopened and fixed findings, and the skipped results with reasons.

Uploading the same report again changes nothing, except that a second report in a row confirms closes that the
first one held (see "palisade closes"). If one tool scans parts of a project separately (directories
of a monorepo, for example), give each part a category: only scans of its category close a finding.

Uploads may arrive in another order than the commits. With --commit-time, a report of an older commit than that of
an earlier upload closes and reopens nothing that the newer one covered. Without it, the time of the run in the report
decides, if it has one.

Paths become relative to the repository if the report says where that is, or if it is the usual directory of a
CI service, which the output then says. Otherwise --checkout-root names the directory of the checkout, and
--path-prefix the directory of the repository that the report's paths begin at.

With --gate, the command fails if remediation policies block what a report has; the output names them.

Exit status: 0 all files are stored; 1 they are, and with --gate, a policy blocks; 2 an error, or a run in a file
was rejected.`,
		Example: `  palisade upload gosec.sarif --project acme/web --ref main
  palisade upload build/*.sarif --project acme/web --ref refs/pull/7/merge --commit "$(git rev-parse HEAD)"
  gosec -fmt sarif ./... | palisade upload - --project acme/web --ref main --category backend
  palisade upload kics.sarif --project acme/web --ref main --checkout-root /path --path-prefix deploy
  palisade upload trivy.json --project acme/web --ref refs/pull/7/merge --gate
  palisade upload licences.sarif.gz --project acme/web --ref main --product sca -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("want at least one report file, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), std, args) },
	}
	o.client.add(cmd)
	cmd.Flags().StringVar(&o.project, "project", "", "`name` of the project, usually owner/repository; created if it does not exist")
	cmd.Flags().StringVar(&o.ref, "ref", "", "scanned branch or full ref: main, refs/heads/main, refs/pull/7/merge")
	cmd.Flags().StringVar(&o.commit, "commit", "", "full `SHA` of the scanned commit")
	cmd.Flags().StringVar(&o.commitTime, "commit-time", "", "`time` of that commit, RFC 3339 (git show -s --format=%cI): a report of an older commit closes nothing")
	cmd.Flags().StringVar(&o.category, "category", "", "part of the project that the report covers, if one tool writes several reports")
	cmd.Flags().StringVar(&o.product, "product", "", "sast, sca, secrets or ai_sast; when absent, the report says it, or the tool")
	cmd.Flags().StringVar(&o.format, "format", "", "`name` of the format, if the content does not tell: "+strings.Join(formats.Names(), ", "))
	cmd.Flags().StringVar(&o.checkoutRoot, "checkout-root", "", "absolute `directory` of the checkout where the scanner ran: paths below it become relative")
	cmd.Flags().StringVar(&o.pathPrefix, "path-prefix", "", "`directory` of the repository that the relative paths of the report begin at")
	cmd.Flags().StringVar(&o.repoURL, "repo-url", "", "`URL` of the repository, for links to the code; stored with the project")
	cmd.Flags().BoolVar(&o.gate, "gate", false, "fail with exit status 1 if a remediation policy blocks")
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table, or json for the server's responses, one per line")
	cmd.Flags().StringVar(&o.wait, "wait", "", "maximum `duration` to wait until the server is ready, such as 30s")
	_ = cmd.MarkFlagRequired("project")
	_ = cmd.MarkFlagRequired("ref")
	return cmd
}

func (o *uploadOptions) run(ctx context.Context, std streams, files []string) error {
	if err := oneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	for i, file := range files {
		for _, other := range files[:i] {
			if file == "-" && other == "-" {
				return usagef("standard input (-) can be read only once")
			}
		}
	}
	c, err := o.client.newClient(std)
	if err != nil {
		return err
	}
	if _, err := time.Parse(time.RFC3339, o.commitTime); o.commitTime != "" && err != nil {
		return usagef("--commit-time: got %q, want a time such as 2026-11-20T21:57:51+01:00", o.commitTime)
	}
	if o.wait != "" {
		timeout, err := config.ParseDuration(o.wait)
		if err != nil || timeout <= 0 {
			return usagef("--wait: got %q, want a duration such as 30s", o.wait)
		}
		if err := c.waitReady(ctx, timeout); err != nil {
			return err
		}
	}
	deployment, err := c.resolveDeployment(ctx, o.client.deployment)
	if err != nil {
		return err
	}
	return o.uploadAll(ctx, std, c, deployment, files)
}

// uploadAll uploads the files in order, and continues after a failure: the reports are independent.
func (o *uploadOptions) uploadAll(ctx context.Context, std streams, c *client, deployment string, files []string) error {
	failed, blocked := 0, false
	for _, file := range files {
		raw, err := o.send(ctx, std, c, deployment, file)
		var result uploadResult
		if err == nil {
			err = o.print(std, file, raw, &result)
		}
		blocked = blocked || result.Blocked
		switch {
		case err != nil && len(files) == 1:
			return fmt.Errorf("%s: %w", printable(file), err)
		case err != nil:
			_, _ = fmt.Fprintf(std.err, "palisade: %s: %v\n", printable(file), err)
			failed++
		case result.rejectedRuns() > 0:
			_, _ = fmt.Fprintf(std.err, "palisade: %s: %d of its runs were rejected, see above\n", printable(file), result.rejectedRuns())
			failed++
		}
		if ctx.Err() != nil {
			return errReported
		}
	}
	if failed > 0 && len(files) > 1 {
		return fmt.Errorf("%d of %d files failed", failed, len(files))
	}
	if failed > 0 {
		return errReported
	}
	if o.gate && blocked {
		return errNo
	}
	return nil
}

// send posts one report and returns the raw response.
func (o *uploadOptions) send(ctx context.Context, std streams, c *client, deployment, file string) (json.RawMessage, error) {
	report, err := openReport(std, file)
	if err != nil {
		return nil, err
	}
	defer report.close()
	query := url.Values{"project": {o.project}, "ref": {o.ref}}
	for name, value := range map[string]string{
		"commit": o.commit, "category": o.category, "product": o.product, "format": o.format,
		"checkout_root": o.checkoutRoot, "path_prefix": o.pathPrefix, "repo_url": o.repoURL,
		"commit_time": o.commitTime,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	body := report.compressed()
	req, err := c.request(ctx, http.MethodPost, query, body, "api", "v1", "deployments", url.PathEscape(deployment), "reports")
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/sarif+json")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("Expect", "100-continue") // see newClient
	var raw json.RawMessage
	err = c.do(req, &raw)
	_ = body.Close() // ends the compressor, after which the report's error is final
	report.finish()
	if failure := report.readError(); err != nil && failure != nil {
		return nil, failure // the cause; the failed request is only its effect
	}
	return raw, err
}

func (o *uploadOptions) print(std streams, file string, raw json.RawMessage, result *uploadResult) error {
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("the response is not the expected JSON: %w", err)
	}
	if o.output == "json" {
		_, err := fmt.Fprintf(std.out, "%s\n", raw)
		return err
	}
	return result.print(std.out, file)
}
