package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

const (
	// taskPoll is how often the command asks whether the file is complete.
	taskPoll = time.Second
	// downloadTries is how often a download continues after the connection broke.
	downloadTries = 5
)

type exportOptions struct {
	client                       clientFlags
	format, output, task         string
	filter, since, status        string
	types, severities, exposures []string
	repos, refs, rules, teams    []string
}

func newFindingsExport(std streams) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export --format FORMAT --output FILE",
		Short: "Write all findings to a file: CSV, NDJSON, SARIF, OpenVEX or CycloneDX",
		Long: `Write findings to a file. The server writes it in the background, without a limit of findings, and the
command downloads it and checks its SHA-256. A download continues where it broke off. After an
interruption, the same command with the --task that it printed continues too.

The file has what the token may see. The formats:
  csv        a table for spreadsheets; no cell is a formula
  ndjson     everything, for "palisade findings import": decisions, history and identity
  sarif      what the latest scans report, with decisions as suppressions
  openvex    what is known about vulnerable packages: affected, not affected, fixed, under investigation
  cyclonedx  the same as a CycloneDX VEX document

The filters are those of the list of issues; --filter takes any filter of the API as JSON.`,
		Example: `  palisade findings export --format csv --output findings.csv --severities high,critical
  palisade findings export --format ndjson --output - | gzip > backup.ndjson.gz
  palisade findings export --format sarif --repos acme/web --ref main --output web.sarif
  palisade findings export --format openvex --issue-type sca --output acme.openvex.json
  palisade findings export --filter '{"repositoryTags":["pci"],"tab":"ISSUE_TAB_OPEN"}' --output pci.csv`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), std) },
	}
	o.client.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&o.format, "format", "csv", "csv, ndjson, sarif, openvex or cyclonedx")
	fs.StringVarP(&o.output, "output", "o", "", "`file` to write, or - for standard output")
	fs.StringVar(&o.task, "task", "", "`token` of an export that was started before")
	fs.StringVar(&o.filter, "filter", "", "filter of the API, as `JSON`; other filter flags add to it")
	fs.StringVar(&o.since, "since", "", "only findings relevant since this time: 7d, 2026-05-04, 2026-05-04T10:20:30Z or epoch seconds")
	fs.StringSliceVar(&o.types, "issue-type", nil, "sast, sca, secrets, ai_sast; default: all")
	fs.StringVar(&o.status, "status", "", "open, fixed, ignored, reviewing, fixing, provisionally_ignored")
	fs.StringSliceVar(&o.severities, "severities", nil, "low, medium, high, critical")
	fs.StringSliceVar(&o.exposures, "exposures", nil, "reachable, always_reachable, conditionally_reachable, unreachable, unknown (sca)")
	fs.StringArrayVar(&o.repos, "repos", nil, "project names")
	fs.StringArrayVar(&o.refs, "ref", nil, "branches or full refs; _default for the primary branch")
	fs.StringArrayVar(&o.rules, "rules", nil, "rule names")
	fs.StringArrayVar(&o.teams, "teams", nil, "team names")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

// request is the body of the API. Only the server validates the words, because it may know more of them.
func (o *exportOptions) request(now time.Time) (map[string]any, error) {
	filter := map[string]any{}
	if o.filter != "" {
		if err := json.Unmarshal([]byte(o.filter), &filter); err != nil {
			return nil, usagef("--filter: want a JSON object of the API's filter: %v", err)
		}
	}
	for name, values := range map[string][]string{
		"repositoryNames": o.repos, "refs": o.refs, "rules": o.rules, "teamNames": o.teams, "exposures": o.exposures,
		"severities": capitals("SEVERITY_", o.severities),
	} {
		if len(values) > 0 {
			filter[name] = values
		}
	}
	if o.status != "" {
		filter["tab"] = "ISSUE_TAB_" + strings.ToUpper(o.status)
	}
	if o.since != "" {
		text, err := parseMoment(o.since, now)
		if err != nil {
			return nil, err
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, usagef("--since: got %q", printable(o.since))
		}
		filter["since"] = time.UnixMicro(int64(seconds * 1e6)).UTC().Format(time.RFC3339Nano)
	}
	return map[string]any{
		"format": "EXPORT_FORMAT_" + strings.ToUpper(o.format), "filter": filter, "issueTypes": capitals("ISSUE_TYPE_", o.types),
	}, nil
}

// capitals are words in the form of enums.
func capitals(prefix string, words []string) []string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = prefix + strings.ToUpper(strings.TrimSpace(word))
	}
	return list
}

func (o *exportOptions) run(ctx context.Context, std streams) error {
	if err := oneOf("format", o.format, "csv", "ndjson", "sarif", "openvex", "cyclonedx"); err != nil {
		return err
	}
	body, err := o.request(std.now())
	if err != nil {
		return err
	}
	d, err := openDeployment(ctx, o.client, std)
	if err != nil {
		return err
	}
	if o.task == "" {
		var started findingsv1.ExportIssuesResponse
		raw, err := d.send(ctx, http.MethodPost, "api/agent", nil, body, "issues", "export")
		if err != nil {
			return err
		}
		if err := protojson.Unmarshal(raw, &started); err != nil {
			return fmt.Errorf("unexpected response: %w", err)
		}
		o.task = started.GetTaskTokenJwt()
	}
	file, err := o.wait(ctx, std, d)
	if err != nil {
		return err
	}
	if err := o.save(ctx, std, d, file); err != nil {
		return fmt.Errorf("%w\n  To continue: palisade findings export --output %s --task %s", err, o.output, o.task)
	}
	_, _ = fmt.Fprintf(std.err, "%d findings, %d bytes, SHA-256 %s\n", file.GetRowCount(), file.GetSize(), file.GetSha256())
	return nil
}

// wait polls the task until the file is complete, and shows how many findings it has.
func (o *exportOptions) wait(ctx context.Context, std streams, d *deploymentClient) (*findingsv1.ExportResult, error) {
	for shown := int64(0); ; {
		req, err := d.request(ctx, http.MethodGet, nil, nil, "api", "tasks", "v2", o.task)
		if err != nil {
			return nil, err
		}
		var task struct {
			Status string
			Result struct{ ResultString string } `json:"taskResult"`
		}
		if err := d.do(req, &task); err != nil {
			return nil, err
		}
		if task.Status == "TASK_STATUS_FAILED" || task.Status == "TASK_STATUS_TERMINATED" {
			return nil, fmt.Errorf("the export failed: %s", printable(task.Result.ResultString))
		}
		file := &findingsv1.ExportResult{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(task.Result.ResultString), file); err != nil {
			return nil, fmt.Errorf("the task is no export of findings: %w", err)
		}
		if task.Status == "TASK_STATUS_COMPLETED" {
			return file, nil
		}
		if rows := file.GetRowCount(); rows > shown {
			shown = rows
			_, _ = fmt.Fprintf(std.err, "%d findings …\n", rows)
		}
		select {
		case <-time.After(taskPoll):
		case <-ctx.Done():
			return nil, errors.New("interrupted")
		}
	}
}

// save downloads the file, and checks it. Until then it has another name, so that nobody takes a part for the whole.
func (o *exportOptions) save(ctx context.Context, std streams, d *deploymentClient, file *findingsv1.ExportResult) error {
	if o.output == "-" {
		sum := sha256.New()
		if err := d.download(ctx, file, 0, io.MultiWriter(std.out, sum)); err != nil {
			return err
		}
		return same(sum.Sum(nil), file)
	}
	name := o.output + ".part"
	part, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = part.Close() }()
	have, err := part.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have > file.GetSize() { // of another export
		if have, err = 0, part.Truncate(0); err != nil {
			return err
		}
	}
	if _, err := part.Seek(have, io.SeekStart); err != nil {
		return err
	}
	if err := d.download(ctx, file, have, part); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(sum, part); err != nil {
		return err
	}
	if err := same(sum.Sum(nil), file); err != nil {
		_ = os.Remove(name)
		return err
	}
	return os.Rename(name, o.output)
}

func same(sum []byte, file *findingsv1.ExportResult) error {
	if hex.EncodeToString(sum) != file.GetSha256() {
		return errors.New("the file does not have the SHA-256 of the export; it is not kept")
	}
	return nil
}

// download appends the rest of a file, and continues where the connection breaks.
func (d *deploymentClient) download(ctx context.Context, file *findingsv1.ExportResult, have int64, to io.Writer) error {
	for try := 1; have < file.GetSize(); try++ {
		n, err := d.downloadFrom(ctx, file, have, to)
		have += n
		var refused *apiError
		switch {
		case err == nil:
		case errors.As(err, &refused), ctx.Err() != nil, try == downloadTries:
			return err
		}
	}
	return nil
}

func (d *deploymentClient) downloadFrom(ctx context.Context, file *findingsv1.ExportResult, have int64, to io.Writer) (int64, error) {
	id := strconv.FormatInt(file.GetExportId(), 10)
	req, err := d.request(ctx, http.MethodGet, nil, nil, "api", "agent", "deployments", d.deploymentID, "exports", id, "file")
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "*/*")
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		req.Header.Set("If-Range", `"`+file.GetSha256()+`"`)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return 0, d.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusPartialContent && have > 0, resp.StatusCode == http.StatusOK && have == 0:
		return io.Copy(to, resp.Body)
	case resp.StatusCode == http.StatusOK:
		return 0, errors.New("the server sent another file than before")
	}
	return 0, readAPIError(resp)
}
